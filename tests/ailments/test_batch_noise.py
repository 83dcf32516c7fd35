"""Are the batches so small, or so badly shuffled, that their noise keeps the loss high?"""

from typing import Any

import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

from fixtures.judging import alarms
from fixtures.trained import batches_of, patient, trained


def _descent(lr: float, momentum: float = 0.0) -> Any:
    return lambda own: torch.optim.SGD(own, lr, momentum=momentum)


SICK = (lambda seed: patient(seed, _descent(0.02, 0.9), batch=1, steps=400, noise=0.1),)
HEALTHY = (
    lambda seed: patient(seed, _descent(0.02), batch=4, steps=600),
    lambda seed: patient(seed, _descent(0.1), batch=32, noise=0.5),
)


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("batch-noise", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("batch-noise", build(seed))


@pytest.mark.parametrize("in_order", [True, False])
def test_classes_in_order_are_shuffled_where_less_than_half_is_lost(in_order):
    pixels, y = load_digits(return_X_y=True)
    x, y = torch.tensor(pixels, dtype=torch.float32) / 6 - 0.8, torch.tensor(y)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    place = y[:1408].argsort(stable=True) if in_order else torch.arange(1408)
    data, validation = batches_of(x[place], y[place], 32), (x[1408:], y[1408:])
    found = trained(model, torch.optim.SGD(model.parameters(), 0.05), data, validation=validation, steps=528)
    assert found["history"][-1].validation_accuracy > 0.6
    assert [one.suggested for one in alarms("batch-noise", found)] == ([{"shuffle": True}] if in_order else [])
