"""Does the schedule end too early, or never warm up?"""

import pytest
import torch

from fixtures.judging import alarms, judged, subject_of
from fixtures.trained import batches_of, clouds, network, trained
from theodolite import catalogue

STEPS = 300


def run(seed, factor):
    model = network(seed)
    x, y = clouds(seed, 1024, spread=1.0)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    data = batches_of(x, y, 32)
    return trained(model, optimizer, data, validation=clouds(seed + 100, 512), steps=STEPS, schedule=schedule.step)


def _cosine(step):
    return 0.5 + 0.5 * float(torch.cos(torch.tensor(3.1416 * min(1.0, step / STEPS))))


SICK = (
    lambda seed: run(seed, lambda step: 0.5**step),  # meant for epochs, stepped after each batch
    lambda seed: run(seed, lambda step: max(0.0, 1 - step / 20)),
    lambda seed: run(seed, lambda step: step / 100_000),
)
HEALTHY = (lambda seed: run(seed, _cosine), lambda seed: run(seed, lambda step: min(1.0, (step + 1) / 30)))


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("schedule-ended", build(0))
    assert found and found[0].suggested == {"schedule": "constant", "lr": 3e-3}


@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_not_even_told(build):
    assert not judged("schedule-ended", build(0))


def test_it_says_whether_the_step_fell_or_never_rose():
    fell, _, never = (judged("schedule-ended", build(0))[-1].says for build in SICK)
    assert "fell from" in fell and "never rose" in never


def test_a_run_that_only_had_to_go_on_at_its_step_is_told_of_its_schedule():
    """A copy of fewer steps than the run had with a step is no better from its start; gone on with, it is."""
    known = run(0, lambda step: max(0.0, 1 - step / 20))
    names = {one.change.name for one in catalogue.ailment("schedule-ended").interventions(subject_of(known))}
    assert names == {"no schedule", "more steps"}
