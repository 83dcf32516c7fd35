"""What the first steps of a script show, and the watch once they have."""

import json
import subprocess
import sys


def ran(command, folder):
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, cwd=folder, timeout=280, check=False
    )


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


def test_nothing_is_left_of_the_hooks(tmp_path):
    from torch.nn.modules import module

    from theodolite.verbs.running.observing import Observer

    def hooked():
        return any(
            kept for name, kept in vars(module).items() if name.startswith("_global_") and name.endswith("_hooks")
        )

    observer = Observer(tmp_path)
    observer.install()
    assert hooked()
    observer.remove()
    assert not hooked()


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


def seen_of(tmp_path, warm, code):
    (tmp_path / "train.py").write_text(code)
    watched = warm.ran(["-m", "theodolite", "run", "--out", "seen", "train.py"], tmp_path)
    return watched, json.loads((tmp_path / "seen" / "run.json").read_text())


def test_weights_that_are_put_back_begin_trainings_of_their_own(tmp_path, warm):
    watched, told = seen_of(tmp_path, warm, BACK)
    assert "the weights were reset 6 times" in watched.stderr
    assert not told["diagnosis"]["findings"] and not told["alarms"]
