"""Five scripts as people write them, run as they are and under `theodolite run`: the same output, status and randomness."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def ran(command, folder):
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, cwd=folder, timeout=280, check=False
    )


@pytest.mark.parametrize(
    ("script", "arguments", "steps", "named"),
    [
        ("plain_loop", ["1"], 48, "Sequential with SGD, loss cross_entropy"),
        ("amp_accumulation", [], 16, "Sequential with AdamW, loss cross_entropy"),
        ("digits_convnet", ["--epochs", "2", "--save"], 20, "Net with Adadelta, loss nll_loss"),
        ("lightning_fit", [], 24, "Regression with Adam, loss mse_loss"),
        ("transformers_trainer", [], 20, "GPT2LMHeadModel with AdamW, whose loss the model computes itself"),
    ],
)
def test_a_script_runs_as_it_does_alone_and_is_watched(tmp_path, warm, script, arguments, steps, named):
    path = str(EXAMPLES / f"{script}.py")
    alone = warm.ran([path, *arguments], tmp_path)
    watched = warm.ran(["-m", "theodolite", "run", "--every", "6", "--out", "seen", path, *arguments], tmp_path)
    assert alone.stdout and watched.stdout == alone.stdout, watched.stderr
    assert watched.returncode == alone.returncode
    assert f"theodolite: watching {named}" in watched.stderr
    told = json.loads((tmp_path / "seen" / "run.json").read_text())
    seen = sorted({row["step"] for row in told["readings"]})
    assert seen[-1] == steps and len(seen) >= 2
    quantities = {row["quantity"] for row in told["readings"]}
    assert "norm of the gradient on the probe" in quantities
    assert any("Hessian eigenvalue" in quantity for quantity in quantities)
    page = (tmp_path / "seen" / "run.html").read_text()
    assert "Training of " in page and 'http-equiv="refresh"' not in page


def test_findings_are_printed_while_a_hot_script_trains(tmp_path, warm):
    path = str(EXAMPLES / "plain_loop.py")
    alone = warm.ran([path, "1", "100"], tmp_path)
    watched = warm.ran(["-m", "theodolite", "run", "--every", "4", "--level", "cheap", path, "1", "100"], tmp_path)
    assert (watched.stdout, watched.returncode) == (alone.stdout, 3)
    assert re.search(r"theodolite: step \d+: step too large: ", watched.stderr) and "lr at most" in watched.stderr
    assert (tmp_path / "run" / "run.html").exists()


OWN_LOSS = """
import torch
torch.manual_seed(0)
model, own = torch.nn.Linear(3, 1), torch.nn.Parameter(torch.zeros(1))
optimizer = torch.optim.SGD([*model.parameters(), own], lr=LR)
x = torch.randn(64, 3)
for step in range(60):
    optimizer.zero_grad()
    loss = (model(x) + own - x[:, :1]).abs().pow(3).mean()  # no function of torch.nn.functional
    loss.backward()
    optimizer.step()
print(loss.item())
"""


@pytest.mark.parametrize("lr", [0.01, 2.0])
def test_a_loss_of_ones_own_is_done_again_from_what_was_written_down(tmp_path, warm, lr):
    (tmp_path / "own.py").write_text(OWN_LOSS.replace("LR", str(lr)))
    watched = warm.ran(["-m", "theodolite", "run", "--every", "5", "own.py"], tmp_path)
    assert watched.stdout == warm.ran(["own.py"], tmp_path).stdout and watched.returncode == 0
    assert "watching Linear with SGD, loss of " in watched.stderr and "done again step by step" in watched.stderr
    told = json.loads((tmp_path / "run" / "run.json").read_text())
    assert max(row["step"] for row in told["readings"]) == 60
    assert bool(told["alarms"]) == (lr > 1) == ("step too large" in watched.stderr)
    assert (tmp_path / "run" / "run.html").exists() and "findings" in told["diagnosis"]


TOLD = """
import sys, warnings
import torch
from torch.nn.functional import mse_loss
print(__file__, sys.argv, __name__, __spec__, sys.modules["__main__"].__file__)
torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(64, 3)
for step in range(20):
    optimizer.zero_grad()
    loss = mse_loss(model(x), x[:, :1]) + 1e-3 * model.weight.square().sum()
    (loss / 2).backward()
    optimizer.step()
print(model.weight.tolist())
torch.zeros(2, requires_grad=True).backward() if sys.argv[1] == "-x" else sys.exit("over")
"""


def test_a_script_is_told_what_python_tells_it_and_ends_as_it_does(tmp_path, warm):
    (tmp_path / "told.py").write_text(TOLD)
    alone, watched = (
        ran([*how, "told.py", "-x", "--", "--out", "y"], tmp_path) for how in ([], ["-m", "theodolite", "run"])
    )
    assert watched.stdout == alone.stdout and "'told.py', '-x', '--', '--out', 'y'" in alone.stdout
    assert (watched.returncode, alone.returncode) == (1, 1)
    assert "loss mse_loss (a part of what it minimizes)" in watched.stderr
    trace = alone.stderr[alone.stderr.index("Traceback") :]
    assert trace in watched.stderr and "grad can be implicitly created only for scalar outputs" in trace
    ended = warm.ran(["-m", "theodolite", "run", "told.py", "no"], tmp_path)
    assert ended.returncode == 1 and "\nover\n" in ended.stderr


def test_an_interrupted_script_is_told_and_has_the_status_of_a_shell(tmp_path, warm):
    (tmp_path / "stopped.py").write_text("print('so far')\nraise KeyboardInterrupt\n")
    watched = warm.ran(["-m", "theodolite", "run", "stopped.py"], tmp_path)
    assert (watched.returncode, watched.stdout) == (130, "so far\n")
    assert 'stopped.py", line 2, in <module>' in watched.stderr and "KeyboardInterrupt" in watched.stderr


GAME = """
import torch
from torch.nn.functional import binary_cross_entropy_with_logits as judged
torch.manual_seed(0)
maker, judge = torch.nn.Linear(4, 40), torch.nn.Linear(40, 1)
both = [torch.optim.SGD(net.parameters(), lr=LR) for net, LR in ((maker, 1e-3), (judge, 0.5))]
for step in range(40):
    made = maker(torch.randn(16, 4))
    for net, optimizer in ((judge, both[1]), (maker, both[0])):
        optimizer.zero_grad()
        answers = judge(made if net is maker else made.detach())
        judged(answers, torch.full((16, 1), float(net is maker))).backward()
        optimizer.step()
print(maker.weight.sum().item(), judge.weight.sum().item())
"""


def test_of_two_that_train_against_each_other_the_larger_is_watched_and_has_no_alarm(tmp_path, warm):
    (tmp_path / "game.py").write_text(GAME)
    watched = warm.ran(["-m", "theodolite", "run", "game.py"], tmp_path)
    assert watched.stdout == warm.ran(["game.py"], tmp_path).stdout
    assert "2 calls of 2 modules" in watched.stderr  # the maker's loss goes through the judge
    told = json.loads((tmp_path / "run" / "run.json").read_text())
    assert not told["alarms"] and max(row["step"] for row in told["readings"]) == 40


BY_HAND = """
import torch
torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
x = torch.randn(64, 3)
for step in range(40):
    model.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), x[:, :1])
    loss.backward()
    STEP
print(loss.item())
"""


@pytest.mark.parametrize(
    "step",
    [
        "for p in model.parameters(): p.data.add_(p.grad, alpha=-0.1)",
        "torch._foreach_add_([p.data for p in model.parameters()], [p.grad for p in model.parameters()], alpha=-0.1)",
        "exec('with torch.no_grad():\\n for p in model.parameters(): p -= 0.1 * p.grad')",
    ],
)
def test_steps_by_hand_are_seen_with_their_size(tmp_path, warm, step):
    (tmp_path / "hand.py").write_text(BY_HAND.replace("STEP", step))
    watched = warm.ran(["-m", "theodolite", "run", "--every", "5", "hand.py"], tmp_path)
    assert watched.stdout == warm.ran(["hand.py"], tmp_path).stdout
    assert "watching Linear with steps by hand, loss mse_loss" in watched.stderr
    told = json.loads((tmp_path / "run" / "run.json").read_text())
    rates = [row["lr"] for row in told["readings"]]
    assert rates[-1] == pytest.approx(0.1, rel=1e-4) and max(row["step"] for row in told["readings"]) == 40


CHILDREN = """
import torch
import torch.multiprocessing as mp


def train(rank, model):
    torch.manual_seed(rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(30):
        x = torch.randn(16, 3)
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), x[:, :1]).backward()
        optimizer.step()


if __name__ == "__main__":
    mp.set_start_method("spawn")
    model = torch.nn.Linear(3, 1)
    model.share_memory()
    own = [mp.Process(target=train, args=(rank, model)) for rank in range(2)]
    [process.start() for process in own]
    [process.join() for process in own]
    print([process.exitcode for process in own])
"""


def test_the_first_of_some_child_processes_is_watched(tmp_path, warm):
    (tmp_path / "children.py").write_text(CHILDREN)
    watched = warm.ran(["-m", "theodolite", "run", "--every", "10", "--no-diagnosis", "children.py"], tmp_path)
    assert watched.stdout == "[0, 0]\n", watched.stderr
    assert watched.stderr.count("watching Linear with SGD, loss mse_loss") == 1
    assert "nothing was watched" not in watched.stderr
    assert (tmp_path / "run" / "run.html").exists()


def test_a_module_is_run_as_python_does(tmp_path, warm):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "__main__.py").write_text(
        "import sys\nfrom package import other\nprint(sys.argv[1:], __name__)\n"
    )
    (tmp_path / "package" / "other.py").write_text("")
    alone = ran(["-m", "package", "-x"], tmp_path)
    watched = warm.ran(["-m", "theodolite", "run", "-m", "package", "-x"], tmp_path)
    assert watched.stdout == alone.stdout == "['-x'] __main__\n", watched.stderr


def test_what_breaks_in_the_watching_is_a_line_and_the_script_goes_on(tmp_path, warm):
    (tmp_path / "plain.py").write_text(
        BY_HAND.replace("STEP", "pass")
        .replace("model.zero_grad()", "optimizer.step()")
        .replace("x = torch", "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nx = torch")
    )
    broken = "import theodolite.verbs.running.observing as o\no.probe_of = None\n"
    (tmp_path / "start.py").write_text(
        broken + "from theodolite.cli import main\nimport sys\nsys.exit(main(['run', 'plain.py']))\n"
    )
    watched = warm.ran(["start.py"], tmp_path)
    assert watched.returncode == 0 and watched.stdout == warm.ran(["plain.py"], tmp_path).stdout
    assert "theodolite: watching stopped: TypeError" in watched.stderr and "the script goes on" in watched.stderr


def test_what_goes_wrong_in_a_script_is_the_scripts_own(tmp_path, warm):
    (tmp_path / "broken.py").write_text("print('so far')\nraise KeyError('its own')\n")
    watched = warm.ran(["-m", "theodolite", "run", "broken.py"], tmp_path)
    assert watched.returncode == 1 and watched.stdout == "so far\n"
    assert "KeyError: 'its own'" in watched.stderr and "scripts.py" not in watched.stderr
    assert "nothing was watched" in watched.stderr
    missing = warm.ran(["-m", "theodolite", "run", "absent.py"], tmp_path)
    assert missing.returncode == 2 and "expected a script" in missing.stderr


def test_nothing_is_left_of_the_hooks(tmp_path):
    from torch.nn.modules.module import _has_any_global_hook

    from theodolite.verbs.running.observing import Observer

    observer = Observer(tmp_path)
    observer.install()
    assert _has_any_global_hook()
    observer.remove()
    assert not _has_any_global_hook()


def test_two_runs_are_laid_side_by_side(tmp_path, warm):
    for name, lr in (("small", "0.1"), ("large", "0.2")):
        (tmp_path / "hand.py").write_text(
            BY_HAND.replace("STEP", "for p in model.parameters(): p.data.add_(p.grad, alpha=-0.1)").replace(
                "-0.1", f"-{lr}"
            )
        )
        warm.ran(["-m", "theodolite", "run", "--every", "5", "--no-diagnosis", "--out", name, "hand.py"], tmp_path)
    told = warm.ran(["-m", "theodolite", "compare", "small", "large"], tmp_path)
    assert (
        told.returncode == 0
        and "First difference at step " in told.stdout
        and "learning rate 0.1 and 0.2" in told.stdout
    )
    same = warm.ran(["-m", "theodolite", "compare", "small", "small"], tmp_path)
    assert "No difference" in same.stdout
    assert warm.ran(["-m", "theodolite", "compare", "small", "none"], tmp_path).returncode == 2


CLOSURE = """
import torch
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4)).requires_grad_(False)
target = net(torch.rand(1, 6))
x = torch.rand(1, 6).requires_grad_(True)
optimizer = torch.optim.LBFGS([x])

def closure():
    optimizer.zero_grad()
    loss = ((net(x) - target) ** 2).mean() * 100
    loss.backward()
    return loss

for _ in range(4):
    print(round(float(optimizer.step(closure).detach()), 5))
"""


def test_a_closure_on_inputs_of_a_frozen_network_is_watched_and_is_no_fault(tmp_path, warm):
    (tmp_path / "closure.py").write_text(CLOSURE)
    watched = warm.ran(["-m", "theodolite", "run", "closure.py"], tmp_path)
    assert watched.returncode == 0, watched.stderr
    assert watched.stdout == warm.ran(["closure.py"], tmp_path).stdout
    told = json.loads((tmp_path / "run" / "run.json").read_text())
    assert all(finding["severity"] == "note" for finding in told["diagnosis"]["findings"])


SCALED = """
import torch
torch.manual_seed(0)
x, y = torch.randn(64, 6), torch.arange(64) % 2
model = torch.nn.Linear(6, 2)
optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), torch.amp.GradScaler("cpu")
for step in range(20):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""

BACK = """
import copy, torch
torch.manual_seed(0)
model = torch.nn.Linear(6, 1)
for task in range(6):
    before = copy.deepcopy(model.state_dict())
    x = torch.randn(32, 6)
    y = x @ torch.randn(6, 1)
    for step in range(8):
        model.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        for p in model.parameters():
            p.data -= 0.1 * p.grad
    after = model.state_dict()
    model.load_state_dict({name: before[name] + 0.1 * (after[name] - before[name]) for name in before})
"""

BARE = """
import torch
torch.manual_seed(0)
x, w = torch.randn(40, 3), torch.zeros(3, 1, requires_grad=True)
for step in range(30):
    loss = ((x @ w - x.sum(1, keepdim=True)) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
        w.grad = None
print(round(loss.item(), 6))
"""


def seen_of(tmp_path, warm, code):
    (tmp_path / "train.py").write_text(code)
    watched = warm.ran(["-m", "theodolite", "run", "--out", "seen", "train.py"], tmp_path)
    return watched, json.loads((tmp_path / "seen" / "run.json").read_text())


def test_a_loss_that_is_scaled_for_its_gradients_is_read_as_it_is(tmp_path, warm):
    _, told = seen_of(tmp_path, warm, SCALED)
    losses = [row["measured"] for row in told["readings"] if row["quantity"] == "loss on the probe"]
    assert losses and max(losses) < 2


def test_weights_that_are_put_back_begin_trainings_of_their_own(tmp_path, warm):
    watched, told = seen_of(tmp_path, warm, BACK)
    assert "the weights were reset 6 times" in watched.stderr
    assert not told["diagnosis"]["findings"] and not told["alarms"]


def test_plain_tensors_trained_by_hand_are_watched_with_their_batches(tmp_path, warm):
    watched, told = seen_of(tmp_path, warm, BARE)
    assert "watching tensors with steps by hand" in watched.stderr
    assert watched.stdout.strip() and not told["diagnosis"]["findings"]


SECOND = """
import torch
from torch import nn
torch.manual_seed(0)
class Reader(nn.Module):
    def __init__(self, whole):
        super().__init__()
        self.whole, self.table, self.cell = whole, nn.Embedding(12, 8), nn.GRU(8, 16)
        self.out = nn.Linear(16, 12 if whole else 3)
    def forward(self, tokens, state):
        found, state = self.cell(self.table(tokens), state)
        answer = self.out(found if self.whole else found[-1])
        return (answer.reshape(-1, 12) if self.whole == "flat" else answer), state
whole = WHOLE
model = Reader(whole)
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
state = torch.zeros(1, 20, 16)
for step in range(60):
    first = torch.randint(0, 12, (1, 20))
    tokens = (first + torch.arange(7).reshape(-1, 1)) % 12  # counting on: (places, samples)
    answer, state = model(tokens[:-1], state)
    state = state.detach()
    target = tokens[1:].reshape(-1) if whole else first[0] % 3
    loss = nn.functional.cross_entropy(answer.reshape(-1, answer.shape[-1]), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("whole", [False, True, "flat"])
def test_samples_along_the_second_axis_are_samples(tmp_path, warm, whole):
    """Sequences as recurrent networks take them, with a state that is carried on; one label each, or one at each place."""
    watched, told = seen_of(tmp_path, warm, SECOND.replace("WHOLE", repr(whole)))
    assert "watching Reader with Adam, loss" in watched.stderr and "step by step" not in watched.stderr
    assert "has stopped" not in watched.stderr, watched.stderr
    scores = told["diagnosis"]["scores"]
    assert scores["training accuracy"] > 0.6 and scores["loss when ignoring the input"] > 1.0
