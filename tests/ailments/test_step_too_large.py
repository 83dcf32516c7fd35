"""Is the learning rate so large that the loss does not come down, although a smaller one would work?"""

from typing import Any

import pytest
import torch

from fixtures.judging import alarms, subject_of
from fixtures.trained import patient
from theodolite import catalogue
from theodolite.core.run import Run, RunMoment
from theodolite.verbs.diagnosing import alarms_of


def _descent(lr: float, momentum: float = 0.0) -> Any:
    return lambda own: torch.optim.SGD(own, lr, momentum=momentum)


SICK = (
    lambda seed: patient(seed, _descent(30.0)),
    lambda seed: patient(seed, _descent(30.0), steps=0),
    lambda seed: patient(seed, lambda own: torch.optim.Adam(own, 1.0)),
)
HEALTHY = (
    lambda seed: patient(seed, _descent(0.5)),
    lambda seed: patient(seed, _descent(0.1, 0.9), steps=0),
    lambda seed: patient(seed, lambda own: torch.optim.Adam(own, 1e-2), noise=0.3),
)


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("step-too-large", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("step-too-large", build(seed))


@pytest.mark.parametrize(("lately", "told"), [(0.2, False), (0.9, False), (1.2, True)])
def test_an_old_batch_that_rises_while_training_does_not_is_no_alarm(lately, told):
    """Targets that move with the run, as in reinforcement learning: the first batch is no longer what is trained on."""
    facts = [
        {"step_loss": loss, "first_training_loss": 1.0, "highest_training_loss": 1.1, "last_training_loss": lately}
        for loss in (1.0, 3.0)
    ]
    run = Run(tuple(RunMoment(step, loss=own["step_loss"], lr=0.1, facts=own) for step, own in enumerate(facts)))
    assert any(finding.name == "step-too-large" for finding in alarms_of(run)) == told


def test_steps_are_not_what_keeps_a_network_up_that_fits_its_data():
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(64, 20, generator=generator), torch.randint(4, (64,), generator=generator)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))
    optimizer, loss = torch.optim.Adam(model.parameters(), 1e-2), torch.nn.functional.cross_entropy
    given = {"model": model, "data": (x, y), "loss": loss, "optimizer": optimizer, "validation": (x.flip(0), y)}
    assert list(catalogue.ailment("step-too-large").interventions(subject_of(given)))
    for _ in range(150):
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()
    assert not list(catalogue.ailment("step-too-large").interventions(subject_of(given)))
