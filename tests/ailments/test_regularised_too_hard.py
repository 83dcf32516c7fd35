"""Is weight decay or dropout so strong that the network cannot even fit its training data?"""

from typing import Any

import pytest
import torch
from torch import nn

from fixtures.judging import alarms, subject_of
from fixtures.trained import patient
from theodolite import catalogue


def _adam(lr: float, decay: float = 0.0) -> Any:
    return lambda own: torch.optim.AdamW(own, lr, weight_decay=decay)


SICK = (
    lambda seed: patient(seed, lambda own: torch.optim.SGD(own, 0.1, weight_decay=0.3)),
    lambda seed: patient(seed, _adam(3e-3), lambda: nn.Dropout(0.97), steps=100),
)
HEALTHY = (
    lambda seed: patient(seed, _adam(3e-3, 0.01)),
    lambda seed: patient(seed, _adam(3e-3, 0.01), lambda: nn.Dropout(0.5)),
)


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("regularised-too-hard", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("regularised-too-hard", build(seed))


def test_usual_dropout_does_not_drown_a_network_that_is_stuck_for_another_reason():
    """Inputs a hundred times too small: nothing is learned, and passes differ more than inputs do."""
    torch.manual_seed(0)
    x, y = 1e-3 * torch.randn(256, 8), torch.arange(256) % 4
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 4))
    sgd = torch.optim.SGD(model.parameters(), 1e-3)
    for _ in range(5):
        sgd.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        sgd.step()
    subject = subject_of(
        {"model": model, "data": (x, y), "loss": nn.functional.cross_entropy, "optimizer": sgd, "steps": 5}
    )
    assert not [*catalogue.ailment("regularised-too-hard").judge(subject)]
