"""Are the gradients of the first layers far larger than those of the last?"""

import pytest
from torch import nn

from fixtures.fresh import fresh, fresh_residual, stack
from fixtures.judging import alarms

SICK = (fresh("tanh with large weights", lambda: stack(16, activation=nn.Tanh, weight_variance=16.0)),)
HEALTHY = (
    fresh("tanh at its critical point", lambda: stack(12, activation=nn.Tanh, weight_variance=1.0)),
    fresh_residual(6),
)


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("gradient-explodes", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("gradient-explodes", build(seed))
