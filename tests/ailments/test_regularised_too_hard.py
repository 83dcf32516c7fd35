"""Is weight decay or dropout so strong that the network cannot even fit its training data?"""

from typing import Any

import pytest
import torch
from torch import nn

from fixtures.judging import alarms
from fixtures.trained import patient


def _adam(lr: float, decay: float = 0.0) -> Any:
    return lambda own: torch.optim.AdamW(own, lr, weight_decay=decay)


SICK = (
    lambda seed: patient(seed, lambda own: torch.optim.SGD(own, 0.1, weight_decay=0.3)),
    lambda seed: patient(seed, _adam(3e-3), lambda: nn.Dropout(0.97), steps=100),
)
HEALTHY = (
    lambda seed: patient(seed, _adam(3e-3, 0.01)),
    lambda seed: patient(seed, _adam(3e-3, 0.01), lambda: nn.Dropout(0.5)),
)


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("regularised-too-hard", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("regularised-too-hard", build(seed))
