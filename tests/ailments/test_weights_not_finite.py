"""Are there NaN or infinite weights?"""

import math

import pytest
import torch

from fixtures.judging import alarms


def with_nan(seed: int) -> dict[str, object]:
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    with torch.no_grad():
        model.get_parameter("2.weight")[1, 3] = math.nan
    return {"model": model}


def after_a_blow_up(seed: int) -> dict[str, object]:
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.Linear(16, 2))
    with torch.no_grad():
        model.get_buffer("1.running_var").fill_(math.inf)
    return {"model": model}


def with_large_weights(seed: int) -> dict[str, object]:
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    with torch.no_grad():
        model.get_parameter("0.weight").mul_(1e30)
    return {"model": model}


SICK = (with_nan, after_a_blow_up)
HEALTHY = (with_large_weights,)


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("weights-not-finite", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("weights-not-finite", build(seed))
