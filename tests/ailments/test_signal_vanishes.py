"""Does the signal shrink so much through the layers that nothing is left to learn from?"""

import pytest

from fixtures.fresh import fresh, fresh_residual, stack
from fixtures.judging import alarms

SICK = (fresh("weights too small", lambda: stack(12, weight_variance=1 / 3), optimizer="sgd", lr=0.02),)
HEALTHY = (fresh("critical weights", lambda: stack(12, weight_variance=2.0)), fresh_residual(6))


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("signal-vanishes", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("signal-vanishes", build(seed))
