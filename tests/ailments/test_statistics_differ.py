"""Does evaluation use running statistics (BatchNorm) that are not those of the data?"""

import functools
from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import nn

from fixtures.judging import alarms
from fixtures.trained import patient


class _Stretched(nn.Module):
    """Signals far from the statistics that a layer begins with."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 30 * x + 10


def _normed(momentum: float, steps: int = 200) -> Any:
    def build(seed: int) -> Mapping[str, Any]:
        norm = functools.partial(nn.BatchNorm1d, 48, momentum=momentum)
        return patient(seed, lambda own: torch.optim.Adam(own, 3e-3), _Stretched, norm, steps=steps)

    return build


SICK = (_normed(0.0), _normed(0.0, steps=120))
HEALTHY = (_normed(0.1), _normed(0.1, steps=0))


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("statistics-differ", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("statistics-differ", build(seed))
