"""Is the learning rate so small that training gets nowhere in the steps it has?"""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import theodolite as th
from fixtures.judging import alarms
from fixtures.trained import patient


def _adam(lr: float) -> Any:
    return lambda own: torch.optim.Adam(own, lr)


SICK = (
    lambda seed: patient(seed, _adam(3e-6)),
    lambda seed: patient(seed, lambda own: torch.optim.SGD(own, 1e-6), steps=0),
    lambda seed: patient(seed, lambda own: torch.optim.SGD(own, 1e-4)),
)
HEALTHY = (
    lambda seed: patient(seed, _adam(1e-3)),
    lambda seed: patient(seed, _adam(1e-3), steps=0),
    lambda seed: patient(seed, lambda own: torch.optim.SGD(own, 0.1), noise=0.5),
)


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("step-too-small", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("step-too-small", build(seed))


class Sharper(nn.Module):
    """A network that adds to its input, and is near the answer before it is trained."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 16))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.inner(x)


@pytest.mark.parametrize(("lr", "found"), [(1e-6, True), (3e-3, False)])
def test_a_network_that_begins_near_the_answer_and_stays_there_is_found(lr, found):
    torch.manual_seed(0)
    clean = torch.sin(torch.rand(1500, 1) * 6 + torch.linspace(0, 6, 16))
    data = (clean + 0.3 * torch.randn(1500, 16), clean)
    model = Sharper()
    nn.init.normal_(model.inner[2].weight, std=1e-3)
    optimizer = torch.optim.Adam(model.parameters(), lr)
    watch = th.Watch(model, optimizer=optimizer, probe=(data[0][:256], data[1][:256]), loss=nn.functional.mse_loss)
    for step in range(300):
        rows = torch.randint(0, 1500, (32,))
        optimizer.zero_grad()
        nn.functional.mse_loss(model(data[0][rows]), data[1][rows]).backward()
        optimizer.step()
        watch(step)
    alarm = [f for f in watch.diagnosis.findings if f.name == "step-too-small" and f.severity == "warning"]
    assert bool(alarm) is found
