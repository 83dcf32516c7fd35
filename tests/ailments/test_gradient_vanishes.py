"""Are the gradients of the first layers far smaller than those of the last?"""

import pytest
from torch import nn

from fixtures.fresh import fresh, fresh_residual, stack
from fixtures.judging import alarms

SICK = (fresh("deep sigmoid", lambda: stack(10, activation=nn.Sigmoid, weight_variance=1.0), optimizer="sgd", lr=0.05),)
HEALTHY = (
    fresh("shallow sigmoid", lambda: stack(1, activation=nn.Sigmoid), lr=1e-2),
    fresh_residual(6, optimizer="sgd", lr=0.05),
)


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("gradient-vanishes", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("gradient-vanishes", build(seed))
