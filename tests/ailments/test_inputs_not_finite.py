"""Are there NaN or infinite inputs or targets?"""

import math

import pytest
import torch
from torch import Tensor, nn

from fixtures.judging import alarms


def _case(seed: int, value: float | None, *, targets: bool = False, filled: bool = False) -> dict[str, object]:
    torch.manual_seed(seed)
    x, y = torch.randn(256, 8), torch.randn(256, 1)
    if value is not None:
        (y if targets else x)[100 + seed, 0] = value
    layers = [nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)]
    model = nn.Sequential(*([_Filled()] if filled else []), *layers)
    return {"model": model, "data": (x, y), "loss": nn.functional.mse_loss}


class _Filled(nn.Module):
    """What is missing becomes 0."""

    def forward(self, x: Tensor) -> Tensor:
        """The inputs, finite."""
        return torch.nan_to_num(x)


def nan_in_inputs(seed: int) -> dict[str, object]:
    return _case(seed, math.nan)


def infinite_targets(seed: int) -> dict[str, object]:
    return _case(seed, math.inf, targets=True)


def finite(seed: int) -> dict[str, object]:
    return _case(seed, 1e6)


def filled_by_the_model(seed: int) -> dict[str, object]:
    return _case(seed, math.nan, filled=True)


SICK = (nan_in_inputs, infinite_targets)
HEALTHY = (finite, filled_by_the_model)


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("inputs-not-finite", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("inputs-not-finite", build(seed))
