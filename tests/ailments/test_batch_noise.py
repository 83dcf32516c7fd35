"""Are the batches so small, or so badly shuffled, that their noise keeps the loss high?"""

from typing import Any

import pytest
import torch

from fixtures.judging import alarms
from fixtures.trained import patient


def _descent(lr: float, momentum: float = 0.0) -> Any:
    return lambda own: torch.optim.SGD(own, lr, momentum=momentum)


SICK = (lambda seed: patient(seed, _descent(0.02, 0.9), batch=1, steps=400, noise=0.1),)
HEALTHY = (
    lambda seed: patient(seed, _descent(0.02), batch=4, steps=600),
    lambda seed: patient(seed, _descent(0.1), batch=32, noise=0.5),
)


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("batch-noise", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("batch-noise", build(seed))
