"""Does the schedule end too early, or never warm up?"""

import pytest
import torch

from fixtures.judging import alarms, judged
from fixtures.trained import batches_of, clouds, network, trained

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
