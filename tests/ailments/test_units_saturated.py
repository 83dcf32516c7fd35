"""Are bounded activations stuck in their flat ends, where no gradient passes?"""

import pytest
import torch
from torch import nn

from fixtures.fresh import fresh, stack
from fixtures.judging import alarms, judged, subject_of
from fixtures.trained import batches_of, clouds, trained
from theodolite.verbs.diagnosing import judgement_of

SICK = (fresh("tanh with large weights", lambda: stack(3, activation=nn.Tanh, weight_variance=200.0)),)
HEALTHY = (fresh("tanh", lambda: stack(3, activation=nn.Tanh)), fresh("relu", lambda: stack(3)))


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("units-saturated", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("units-saturated", build(seed))


@pytest.mark.parametrize("since", ["before", "training"])
def test_what_to_do_depends_on_when_they_were_saturated(since):
    given = fresh("tanh", lambda: stack(3, activation=nn.Tanh, weight_variance=1e6))(0)
    origin = {
        name: value.clone() * (1e-3 if since == "training" else 1.0)
        for name, value in given["model"].state_dict().items()
    }
    (found,) = judged("units-saturated", {**given, "origin": origin})[:1]
    assert ("before training" in found.remedy) == (since == "training")
    assert "lr=" not in found.remedy  # no training made them so


def test_saturation_by_a_large_step_is_a_sign_of_the_step():
    torch.manual_seed(0)
    (x, y), validation = clouds(0, 1024), clouds(1000, 512)
    model = nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=100.0)
    given = trained(model, optimizer, batches_of(x, y, 32), validation=validation, steps=60)
    found = judgement_of(subject_of(given), budget=4.0).findings[0]
    assert found.name == "step-too-large" and "units-saturated" in found.leads_to
