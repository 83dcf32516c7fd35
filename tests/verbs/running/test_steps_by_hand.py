"""Steps that a script makes without an optimizer."""

import json
import subprocess
import sys

import pytest


def ran(command, folder):
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, cwd=folder, timeout=280, check=False
    )


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


def test_plain_tensors_trained_by_hand_are_watched_with_their_batches(tmp_path, warm):
    watched, told = seen_of(tmp_path, warm, BARE)
    assert "watching tensors with steps by hand" in watched.stderr
    assert watched.stdout.strip() and not told["diagnosis"]["findings"]


IDLE = """
import copy, torch
torch.manual_seed(0)
model, x = torch.nn.Linear(3, 1), torch.randn(64, 3)
old = copy.deepcopy(model)
optimizer = None
for step in range(300):
    PREPARE
    loss = torch.nn.functional.mse_loss(model(x), x[:, :1])
    loss.backward()
    STEP
"""


@pytest.mark.parametrize(
    ("prepare", "step", "found"),
    [
        ("model.zero_grad()", "q = [p - 0.1 * p.grad for p in model.parameters()]", {"step-without-effect"}),
        ("model.zero_grad()", "[p.data.sub_(0.1 * p.grad) for p in model.parameters()]", set()),
        ("model.eval(), model.zero_grad()", "pass", set()),  # what is read of a network that does not train
        ("x.requires_grad_(), model.zero_grad()", "x.data -= x.grad", set()),  # an input that is searched for
        ("pass", "pass", set()),  # gradients that are added up
        (
            "optimizer = optimizer or torch.optim.SGD(old.parameters(), 0.1)",
            "optimizer.step(), model.zero_grad()",
            {"optimizer-of-another", "step-without-effect"},
        ),
    ],
)
def test_gradients_that_change_no_weight_are_told_where_a_network_was_to_learn(tmp_path, warm, prepare, step, found):
    (tmp_path / "idle.py").write_text(IDLE.replace("PREPARE", prepare).replace("STEP", step))
    warm.ran(["-m", "theodolite", "run", "--no-diagnosis", "idle.py"], tmp_path)
    place = tmp_path / "run" / "run.json"
    findings = json.loads(place.read_text())["diagnosis"]["findings"] if place.exists() else []
    assert {finding["name"] for finding in findings if finding["severity"] == "critical"} == found


OWN_FUNCTION = """
import torch
class Cubed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 3
    @staticmethod
    def backward(ctx, slope):
        return 3 * slope * ctx.saved_tensors[0] ** 2
x = torch.linspace(-1, 1, 50)
a, b = (torch.full((), value, requires_grad=True) for value in (0.5, 0.1))
made = CALL
for step in range(40):
    loss = (made(b + a * x) - x).pow(2).sum()
    loss.backward()
    with torch.no_grad():
        for p in (a, b):
            p -= 1e-2 * p.grad
            p.grad = None
print(loss.item())
"""


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("Cubed.apply", "tensors with steps by hand"),
        ("torch.jit.script(lambda x: x**3)", "only the loss values are watched"),
    ],
)
def test_functions_that_are_none_of_torchs_are_no_reason_to_see_nothing(tmp_path, warm, call, told):
    code = "def cubed(x):\n    return x**3\n" + OWN_FUNCTION.replace("CALL", call).replace("lambda x: x**3", "cubed")
    (tmp_path / "own.py").write_text(code)
    watched = warm.ran(["-m", "theodolite", "run", "own.py"], tmp_path)
    assert watched.stdout == warm.ran(["own.py"], tmp_path).stdout
    assert told in watched.stderr and (tmp_path / "run" / "run.html").exists()
