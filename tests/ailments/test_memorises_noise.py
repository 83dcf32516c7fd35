"""Does the network fit its training data while its held-out answers are no better than ignoring the input?"""

import pytest
import torch

from fixtures.judging import alarms
from fixtures.trained import patient

SICK = (lambda seed: patient(seed, lambda own: torch.optim.Adam(own, 1e-2), samples=256, noise=1.0),)
HEALTHY = (lambda seed: patient(seed, lambda own: torch.optim.Adam(own, 3e-3), samples=256, noise=0.2),)


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("memorises-noise", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("memorises-noise", build(seed))
