"""Are units copies of each other, in weights and in gradient, so that they always will be?"""

import pytest
import torch
from torch import nn

from fixtures.fresh import digits_like, stack
from fixtures.judging import alarms


def _sick(seed: int) -> dict[str, object]:
    given = digits_like(seed, lambda: stack(2), lr=1e-2)
    with torch.no_grad():
        for parameter in given["model"].parameters():
            parameter.fill_(0.01)
    return given


def _zero_head(seed: int) -> dict[str, object]:
    given = digits_like(seed, lambda: stack(2), lr=1e-2)
    with torch.no_grad():
        given["model"][-1].weight.zero_()
    return given


def _plain(seed: int) -> dict[str, object]:
    return digits_like(seed, lambda: stack(2, activation=nn.Tanh), lr=1e-2)


SICK = (_sick,)
HEALTHY = (_zero_head, _plain)


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("units-alike", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("units-alike", build(seed))


def test_units_that_were_made_equal_in_training_are_not_a_fault_of_the_start():
    """A critic whose weights are clipped comes to have all of them at the ends."""
    given = _sick(0)
    origin = {name: torch.randn_like(value) for name, value in given["model"].state_dict().items()}
    assert not alarms("units-alike", {**given, "origin": origin})
    same = {name: value.clone() for name, value in given["model"].state_dict().items()}
    assert alarms("units-alike", {**given, "origin": same})
