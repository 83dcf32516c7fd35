"""Are trainable parameters missing from the optimizer?"""

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import nn

from fixtures.judging import alarms
from fixtures.silent_errors import cases_of, is_named_and_its_twin_is_not
from fixtures.trained import patient


def _without_first(seed: int) -> Mapping[str, Any]:
    return patient(seed, lambda own: torch.optim.SGD(list(own)[4:], 0.1), steps=150)


def _frozen(seed: int) -> Mapping[str, Any]:
    found = patient(seed, lambda own: torch.optim.SGD(list(own)[2:], 0.1), steps=150)
    for p in list(found["model"].parameters())[:2]:
        p.requires_grad_(False)
    return found


SICK = (_without_first, lambda seed: patient(seed, lambda own: torch.optim.Adam([nn.Parameter(torch.ones(1))])))
HEALTHY = (_frozen, lambda seed: patient(seed, lambda own: torch.optim.Adam(own, 1e-3)))


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("not-in-optimizer", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("not-in-optimizer", build(seed))


class Listed(nn.Module):
    """Layers in a plain list, or registered."""

    def __init__(self, registered):
        super().__init__()
        layers = [nn.Linear(16, 16) for _ in range(2)]
        self.layers = nn.ModuleList(layers) if registered else layers
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()
        return self.head(x)


@pytest.mark.parametrize("registered", [False, True])
def test_layers_in_a_plain_list(registered):
    torch.manual_seed(0)
    model = Listed(registered)
    data = [(torch.randn(32, 16), torch.randint(0, 3, (32,)))]
    known = {"model": model, "data": data, "loss": nn.functional.cross_entropy}
    found = alarms("not-in-optimizer", {**known, "optimizer": torch.optim.Adam(model.parameters())})
    assert [finding.where for finding in found] == ([] if registered else ["layers"])


@pytest.mark.parametrize("case", cases_of("not-in-optimizer"))
def test_a_loop_with_the_error_is_named_and_its_twin_is_not(case):
    assert is_named_and_its_twin_is_not(case)


class Held(nn.Module):
    """A weight that is a tensor with a gradient, or a parameter; and what was kept of a pass."""

    def __init__(self, registered):
        super().__init__()
        weight = torch.randn(16, 8) / 4
        self.weight = nn.Parameter(weight) if registered else weight.requires_grad_()
        self.seen = torch.zeros(2, requires_grad=True)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head((x @ self.weight).relu())


@pytest.mark.parametrize("registered", [False, True])
def test_a_tensor_that_is_no_parameter(registered):
    torch.manual_seed(0)
    model = Held(registered)
    data = [(torch.randn(32, 16), torch.randint(0, 3, (32,)))]
    known = {"model": model, "data": data, "loss": nn.functional.cross_entropy}
    found = alarms("not-in-optimizer", {**known, "optimizer": torch.optim.Adam(model.parameters())})
    assert [(finding.where, finding.remedy) for finding in found] == (
        [] if registered else [("weight", "nn.Parameter(...)")]
    )
