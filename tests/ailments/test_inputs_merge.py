"""Do different inputs become the same on their way to the last layer?"""

import pytest
import torch
from torch import nn

from fixtures.fresh import fresh, fresh_residual, stack
from fixtures.judging import alarms

SICK = (fresh("deep GELU", lambda: stack(30, activation=nn.GELU)),)


class Sums(nn.Module):
    """Sums over the members of a set, which are much alike; it learns well, and more slowly at first than one drawn otherwise."""

    def __init__(self):
        super().__init__()
        self.each = nn.Sequential(nn.Linear(4, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 32))
        self.last = nn.Sequential(nn.Linear(32, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))

    def forward(self, x):
        return self.last(self.each(x).sum(1) / 6)


def _sums(seed):
    torch.manual_seed(seed)
    x = torch.randn(2000, 12, 4)
    y = (x[..., 0] * x[..., 1]).sum(1, keepdim=True) / 3 + x[..., 2].amax(1, keepdim=True)
    model = Sums()
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    return {"model": model, "data": (x, y), "loss": nn.functional.mse_loss, "optimizer": optimizer}


HEALTHY = (fresh("shallow GELU", lambda: stack(3, activation=nn.GELU)), fresh_residual(12), _sums)


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("inputs-merge", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("inputs-merge", build(seed))
