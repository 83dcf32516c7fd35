"""Are the weights stored in so few bits that most of each update is lost?"""

from collections.abc import Mapping
from typing import Any

import pytest
import torch

from fixtures.judging import alarms
from fixtures.silent_errors import cases_of, is_named_and_its_twin_is_not
from fixtures.trained import batches_of, clouds, network, trained


def _short_digits(seed: int, lr: float, dtype: torch.dtype = torch.bfloat16) -> Mapping[str, Any]:
    """A run with Adam."""
    x, y = clouds(seed, 1024)
    held, wanted = clouds(seed + 1000, 512)
    model = network(seed).to(dtype)
    data = batches_of(x.to(dtype), y, 32)
    stepper = torch.optim.Adam(model.parameters(), lr)
    return trained(model, stepper, data, validation=(held.to(dtype), wanted), steps=300)


SICK = (lambda seed: _short_digits(seed, 1e-4),)
HEALTHY = (lambda seed: _short_digits(seed, 3e-3), lambda seed: _short_digits(seed, 1e-3, torch.float32))


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("precision-too-low", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("precision-too-low", build(seed))


@pytest.mark.parametrize("case", cases_of("precision-too-low"))
def test_the_error_of_a_loop_is_named_and_its_twin_is_not(case):
    assert is_named_and_its_twin_is_not(case)
