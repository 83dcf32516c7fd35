"""Are there NaN or infinite weights?"""

import math

import pytest
import torch

from fixtures.judging import alarms
from fixtures.silent_errors import cases_of, is_named_and_its_twin_is_not


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


def _alarms_of_file(tensors):
    return alarms("weights-not-finite", {"state_dict": {"a.weight": torch.ones(3, 2), **tensors}})


@pytest.mark.parametrize(
    "constant",
    [torch.full((6, 6), -math.inf).triu(1), torch.full((1, 9), -math.inf), torch.tensor(math.inf)],
    ids=["causal", "start of a maximum", "one number"],
)
def test_constants_of_a_graph_are_no_weights(constant):
    assert not _alarms_of_file({"onnx::Where_12": constant})
    assert _alarms_of_file({"b.weight": constant})
    assert _alarms_of_file({"onnx::Where_12": constant.reshape(-1)[:1] * math.nan})
    assert _alarms_of_file({"onnx::Where_12": torch.tensor([-math.inf, math.inf])})


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("weights-not-finite", build(seed))


@pytest.mark.parametrize("case", cases_of("weights-not-finite"))
def test_a_loop_with_the_error_is_named_and_its_twin_is_not(case):
    assert is_named_and_its_twin_is_not(case)
