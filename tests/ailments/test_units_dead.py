"""Are units dead: constant on every input, so that no gradient can revive them?"""

import pytest
import torch

from fixtures.fresh import digits_like, fresh, fresh_residual, stack
from fixtures.judging import alarms


def _sick(seed: int) -> dict[str, object]:
    given = digits_like(seed, lambda: stack(2), lr=1e-3)
    with torch.no_grad():
        given["model"][0].bias.fill_(-30.0)
    return given


def _shut_output(seed: int) -> dict[str, object]:
    given = digits_like(seed, lambda: torch.nn.Sequential(stack(2), torch.nn.ReLU()), lr=1e-3)
    with torch.no_grad():
        list(given["model"].parameters())[-1].fill_(-30.0)
    return given


SICK = (_sick, _shut_output)
HEALTHY = (fresh("plain", lambda: stack(2)), fresh_residual(4))


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("units-dead", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("units-dead", build(seed))


@pytest.mark.parametrize("since", ["before", "training"])
def test_what_to_do_depends_on_when_they_died(since):
    given = _shut_output(0)
    origin = {name: value.clone() for name, value in given["model"].state_dict().items()}
    if since == "training":
        origin[list(origin)[-1]].zero_()
    remedy = alarms("units-dead", {**given, "origin": origin})[0].remedy
    assert ("before training" in remedy) == (since == "training") == ("initialize_" not in remedy)
    assert "lr=" not in remedy  # no training made them so
