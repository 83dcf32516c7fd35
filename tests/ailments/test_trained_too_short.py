"""Did the run end while it was still learning fast?"""

from typing import Any

import pytest
import torch

from fixtures.judging import alarms
from fixtures.trained import patient


def _adam(lr: float) -> Any:
    return lambda own: torch.optim.Adam(own, lr)


SICK = (
    lambda seed: patient(seed, _adam(1e-3), steps=30),
    lambda seed: patient(seed, lambda own: torch.optim.SGD(own, 0.1), steps=30),
    lambda seed: patient(seed, _adam(3e-3), steps=6),  # a copy makes more steps than the run did
)
HEALTHY = (
    lambda seed: patient(seed, _adam(1e-3), steps=400),
    lambda seed: patient(seed, _adam(3e-3), steps=200, noise=0.6),
)


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("trained-too-short", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("trained-too-short", build(seed))
