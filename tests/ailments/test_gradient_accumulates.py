"""Is the gradient not cleared between steps, so that each step repeats all earlier ones?"""

from collections.abc import Mapping
from typing import Any

import pytest
import torch

from fixtures.judging import alarms
from fixtures.silent_errors import cases_of, is_named_and_its_twin_is_not
from fixtures.trained import patient


def _watched(seed: int, kept: float) -> Mapping[str, Any]:
    found = patient(seed, lambda own: torch.optim.SGD(own, 0.1), steps=60)
    return {**found, "events": {"gradient kept": kept, "optimizer steps": 60.0}}


SICK = (lambda seed: _watched(seed, 59.0),)
HEALTHY = (lambda seed: _watched(seed, 0.0),)


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("gradient-accumulates", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("gradient-accumulates", build(seed))


@pytest.mark.parametrize("case", cases_of("gradient-accumulates"))
def test_a_loop_with_the_error_is_named_and_its_twin_is_not(case):
    assert is_named_and_its_twin_is_not(case)
