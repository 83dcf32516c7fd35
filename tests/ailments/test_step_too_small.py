"""Is the learning rate so small that training gets nowhere in the steps it has?"""

from typing import Any

import pytest
import torch

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
