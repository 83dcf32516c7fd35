"""Losses that torch.func differentiates, run as they are and under `theodolite run`."""

import json

import pytest

FUNCTIONAL = """
import torch
from torch import nn
from torch.func import functional_call, grad_and_value
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 3))
MADE
x = torch.randn(1200, 8)
y = (x @ torch.randn(8, 3)).argmax(1)
def loss(params, x, y):
    return nn.functional.cross_entropy(functional_call(net, params, (x,)), y)
for rows in torch.arange(1200).repeat(3).split(30):
    found, value = grad_and_value(loss)(params, x[rows], y[rows])
    STEP
print(value.item())
"""


@pytest.mark.parametrize(
    ("made", "step", "stepper"),
    [
        (
            "params = {name: p.detach().clone() for name, p in net.named_parameters()}",
            "params = {name: p - 0.3 * found[name] for name, p in params.items()}",
            "steps by hand",
        ),
        (
            "params = dict(net.named_parameters()); optimizer = torch.optim.SGD(net.parameters(), 0.3)",
            "[setattr(p, 'grad', found[name]) for name, p in params.items()]; optimizer.step()",
            "SGD",
        ),
    ],
)
def test_losses_that_transforms_differentiate_are_watched(tmp_path, warm, made, step, stepper):
    """Parameters that are new tensors at every step, and gradients that a script sets itself."""
    script = FUNCTIONAL.replace("MADE", made).replace("STEP", step)
    (tmp_path / "train.py").write_text(script)
    watched = warm.ran(["-m", "theodolite", "run", "--out", "seen", "train.py"], tmp_path)
    told = json.loads((tmp_path / "seen" / "run.json").read_text())
    assert watched.stdout == warm.ran(["train.py"], tmp_path).stdout
    assert f"watching Sequential with {stepper}, loss cross_entropy" in watched.stderr, watched.stderr
    assert not told["diagnosis"]["findings"] and told["diagnosis"]["scores"]["training accuracy"] > 0.8
