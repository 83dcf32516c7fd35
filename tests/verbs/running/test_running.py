"""Five scripts as people write them, run as they are and under `theodolite run`: the same output, status and randomness."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    place = importlib.util.spec_from_file_location("warm", Path(__file__).with_name("warm.py"))
    module = importlib.util.module_from_spec(place)
    place.loader.exec_module(module)
    server = module.Warm(tmp_path_factory.mktemp("warm"))
    yield server.ran
    server.end()


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
    alone = warm([path, *arguments], tmp_path)
    watched = warm(["-m", "theodolite", "run", "--every", "6", "--out", "seen", path, *arguments], tmp_path)
    assert alone.stdout and watched.stdout == alone.stdout, watched.stderr
    assert watched.returncode == alone.returncode
    assert f"theodolite: watching {named}" in watched.stderr
    told = json.loads((tmp_path / "seen" / "run.json").read_text())
    seen = sorted({row["step"] for row in told["readings"]})
    assert seen[-1] == steps and len(seen) >= 3
    quantities = {row["quantity"] for row in told["readings"]}
    assert "measured over predicted change of the loss by the last step" in quantities
    assert any("Hessian eigenvalue" in quantity for quantity in quantities)
    page = (tmp_path / "seen" / "run.html").read_text()
    assert "while it trains" in page and 'http-equiv="refresh"' not in page


def test_findings_are_printed_while_a_hot_script_trains(tmp_path, warm):
    path = str(EXAMPLES / "plain_loop.py")
    alone = warm([path, "1", "100"], tmp_path)
    watched = ran(["-m", "theodolite", "run", "--every", "4", "--level", "cheap", path, "1", "100"], tmp_path)
    assert (watched.stdout, watched.returncode) == (alone.stdout, 3)
    assert "theodolite: step 4: step too large: " in watched.stderr and "lr at most" in watched.stderr
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
def test_a_loss_of_ones_own_is_watched_by_its_values(tmp_path, warm, lr):
    (tmp_path / "own.py").write_text(OWN_LOSS.replace("LR", str(lr)))
    watched = warm(["-m", "theodolite", "run", "--every", "5", "own.py"], tmp_path)
    assert watched.stdout == warm(["own.py"], tmp_path).stdout and watched.returncode == 0
    assert "the values of the loss are watched alone" in watched.stderr
    told = json.loads((tmp_path / "run" / "run.json").read_text())
    assert told["losses"][-1]["step"] == 60
    assert bool(told["alarms"]) == (lr > 1) == ("step too large" in watched.stderr)


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
    ended = warm(["-m", "theodolite", "run", "told.py", "no"], tmp_path)
    assert ended.returncode == 1 and "\nover\n" in ended.stderr


def test_an_interrupted_script_is_told_and_has_the_status_of_a_shell(tmp_path, warm):
    (tmp_path / "stopped.py").write_text("print('so far')\nraise KeyboardInterrupt\n")
    watched = warm(["-m", "theodolite", "run", "stopped.py"], tmp_path)
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


def test_of_two_that_train_against_each_other_each_has_its_loss_and_none_an_alarm(tmp_path, warm):
    (tmp_path / "game.py").write_text(GAME)
    watched = warm(["-m", "theodolite", "run", "game.py"], tmp_path)
    assert watched.stdout == warm(["game.py"], tmp_path).stdout
    said = [line for line in watched.stderr.splitlines() if "parameters went from" in line]
    assert ["200" in said[0], "41" in said[1]] == [True, True]
    first, last = ([float(part) for part in line.split(" from ")[1].split(";")[0].split(" to ")] for line in said)
    assert first[1] > 2 * first[0] and last[1] < last[0]  # the judge wins
    told = json.loads((tmp_path / "run" / "run.json").read_text())
    assert not told["alarms"] and told["steps"] == 40


def test_what_goes_wrong_in_a_script_is_the_scripts_own(tmp_path):
    (tmp_path / "broken.py").write_text("print('so far')\nraise KeyError('its own')\n")
    watched = ran(["-m", "theodolite", "run", "broken.py"], tmp_path)
    assert watched.returncode == 1 and watched.stdout == "so far\n"
    assert "KeyError: 'its own'" in watched.stderr and "scripts.py" not in watched.stderr
    assert "nothing was watched" in watched.stderr
    missing = ran(["-m", "theodolite", "run", "absent.py"], tmp_path)
    assert missing.returncode == 2 and "expected a script" in missing.stderr


def test_nothing_is_left_of_the_hooks(tmp_path):
    from torch.nn.modules.module import _has_any_global_hook

    from theodolite.verbs.running.observing import Observer

    observer = Observer(tmp_path)
    observer.install()
    assert _has_any_global_hook()
    observer.remove()
    assert not _has_any_global_hook()
