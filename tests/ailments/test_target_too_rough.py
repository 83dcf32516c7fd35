"""Do the targets vary faster over the inputs than this network can follow in the steps it has?"""

import math

import pytest
import torch
from torch import nn
from torch.nn.functional import mse_loss

from fixtures.judging import alarms, subject_of
from theodolite.ailments.target_too_rough import FourierLinear, share_beyond
from theodolite.core.run import RunMoment


def picture(frequency, n, seed, columns=2):
    x = 2 * torch.rand(n, columns, generator=torch.Generator().manual_seed(seed)) - 1
    return x, (math.pi * frequency * x).sin().prod(1, keepdim=True)


def run(frequency, *, steps=300, columns=2):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(columns, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    x, y = picture(frequency, 2048, 0, columns)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    origin = {name: value.detach().clone() for name, value in model.state_dict().items()}
    history = []
    for step in range(steps):
        rows = torch.randint(0, len(x), (64,), generator=torch.Generator().manual_seed(step))
        optimizer.zero_grad()
        value = mse_loss(model(x[rows]), y[rows])
        value.backward()
        optimizer.step()
        if step % 50 == 0 or step == steps - 1:
            history.append(RunMoment(step, loss=float(value.detach()), lr=3e-3))
    return {
        "model": model, "data": (x, y), "loss": mse_loss, "optimizer": optimizer, "origin": origin, "history": history,
        "validation": picture(frequency, 512, 1, columns),
    }  # fmt: skip


SICK = (lambda seed: run(4.0),)


def test_a_rough_picture_is_found_with_features_that_were_tried():
    (found,) = alarms("target-too-rough", run(4.0))
    assert found.suggested["fourier_features"] == 32 and "Fourier features" in found.remedy


@pytest.mark.parametrize("given", [{"frequency": 0.5}, {"frequency": 0.5, "columns": 5}])
def test_smooth_targets_are_left_alone(given):
    assert not alarms("target-too-rough", run(**given))


def test_rough_targets_lie_along_slower_directions():
    smooth, rough = (share_beyond(subject_of(run(frequency, steps=60))) for frequency in (0.5, 4.0))
    assert smooth < 0.1 < rough


def test_features_are_sines_and_cosines_of_unit_size():
    layer = FourierLinear(nn.Linear(2, 5), torch.zeros(2), torch.ones(2), 1.0)
    seen = []
    layer.register_forward_hook(lambda m, args, out: seen.append(out))
    assert layer(torch.randn(7, 2)).shape == (7, 5)
    assert layer.weight.shape == (5, 64)
