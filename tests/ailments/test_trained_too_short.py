"""Did the run end while it was still learning fast?"""

from typing import Any

import pytest
import torch

from fixtures.judging import alarms
from fixtures.trained import batches_of, clouds, network, patient, trained


def _adam(lr: float) -> Any:
    return lambda own: torch.optim.Adam(own, lr)


SICK = (
    lambda seed: patient(seed, _adam(1e-3), steps=30),
    lambda seed: patient(seed, lambda own: torch.optim.SGD(own, 0.1), steps=30),
    lambda seed: patient(seed, _adam(3e-3), steps=6),  # a copy makes more steps than the run did
)
HEALTHY = (
    lambda seed: patient(seed, _adam(1e-3), steps=400),
    lambda seed: patient(seed, _adam(3e-3), steps=200, noise=0.6),
)


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("trained-too-short", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("trained-too-short", build(seed))


def test_a_schedule_that_ends_with_a_short_run_is_not_to_blame():
    model = network(0)
    optimizer = _adam(1e-3)(model.parameters())
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, 60)
    x, y = clouds(0, 1024)
    known = trained(
        model, optimizer, batches_of(x, y, 32), validation=clouds(100, 512), steps=60, schedule=schedule.step
    )
    assert alarms("trained-too-short", known)
    assert not any("schedule" in found.says for found in alarms("loss-stalls", known))
