"""Does the network fit its training data at the expense of held-out data?"""

import pytest
import torch

from fixtures.judging import alarms
from fixtures.trained import patient

SICK = (lambda seed: patient(seed, lambda own: torch.optim.Adam(own, 3e-3), samples=96, steps=400, noise=0.3),)
HEALTHY = (
    lambda seed: patient(seed, lambda own: torch.optim.Adam(own, 1e-3)),
    lambda seed: patient(seed, lambda own: torch.optim.SGD(own, 0.1), noise=0.3),
)


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("overfits", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("overfits", build(seed))
