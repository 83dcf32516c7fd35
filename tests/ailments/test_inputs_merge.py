"""Do different inputs become the same on their way to the last layer?"""

import pytest
from torch import nn

from fixtures.fresh import fresh, fresh_residual, stack
from fixtures.judging import alarms

SICK = (fresh("deep GELU", lambda: stack(30, activation=nn.GELU)),)
HEALTHY = (fresh("shallow GELU", lambda: stack(3, activation=nn.GELU)), fresh_residual(12))


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("inputs-merge", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("inputs-merge", build(seed))
