"""Curvature from differences of gradients beside the exact one, on six networks and on one that has no second backward pass."""

import math

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

import theodolite as th
from theodolite.measure.curvature import sharpness_by_differences, top_hessian_eigenvalues


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells, self.head = nn.GRU(4, 16, batch_first=True), nn.Linear(16, 4)

    def forward(self, x):
        return self.head(self.cells(x.reshape(len(x), 3, 4))[0][:, -1])


class Attentive(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(12, 2, 24, dropout=0.0, batch_first=True)
        self.head = nn.Linear(12, 4)

    def forward(self, x):
        return self.head(self.layer(torch.stack([x, x.roll(1, 1), -x], 1)).mean(1))


def pictures():
    body = nn.Conv2d(3, 8, 2), nn.BatchNorm2d(8), nn.ReLU()
    return nn.Sequential(nn.Unflatten(1, (3, 2, 2)), *body, nn.Flatten(), nn.Linear(8, 4))


class Once(torch.autograd.Function):
    """A square whose backward pass cannot be differentiated, as those of hand-written kernels."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, slope):
        return 2 * ctx.saved_tensors[0] * slope


class Squares(nn.Module):
    def __init__(self, once):
        super().__init__()
        self.first, self.last, self.once = nn.Linear(12, 8), nn.Linear(8, 4), once

    def forward(self, x):
        h = self.first(x)
        return self.last(Once.apply(h) if self.once else h * h)


def data():
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(96, 12, generator=draw)
    return x, (x @ torch.randn(12, 4, generator=draw)).argmax(1)


NETWORKS = {
    "relu": lambda: nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4)),
    "tanh": lambda: nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 4)),
    "regression": lambda: nn.Sequential(nn.Linear(12, 32), nn.GELU(), nn.Linear(32, 1)),
    "recurrent": Recurrent,
    "attentive": Attentive,
    "pictures": pictures,
}


@pytest.mark.parametrize("name", NETWORKS)
def test_differences_of_gradients_give_the_sharpness_within_two_percent(name):
    torch.manual_seed(0)
    model, (x, y) = NETWORKS[name](), data()
    loss, target = (mse_loss, x[:, :1] * x[:, 1:2]) if name == "regression" else (cross_entropy, y)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(20):
        optimizer.zero_grad()
        loss(model(x), target).backward()
        optimizer.step()
    exact = top_hessian_eigenvalues(model, loss, (x, target), count=1, tolerance=1e-3)
    found = sharpness_by_differences(model, loss, (x, target))
    assert abs(found.value / exact.values[0] - 1) < 0.02
    assert found.stderr < 0.02 * found.value


def test_a_watch_reads_the_sharpness_of_a_model_without_a_second_backward_pass():
    readings = []
    for once in (False, True):
        torch.manual_seed(0)
        model, (x, y) = Squares(once), data()
        optimizer = torch.optim.Adam(model.parameters(), 1e-2)
        watch = th.Watch(model, optimizer=optimizer, probe=(x, y), every=5, budget=math.inf)
        for step in range(11):
            watch(step)
            optimizer.zero_grad()
            cross_entropy(model(x), y).backward()
            optimizer.step()
        readings.append([reading for name, reading in watch.records[-1].readings if name == "sharpness"])
        watch.close()
    (exact,), (found,) = readings
    assert found.measured == pytest.approx(exact.measured, rel=0.02)
    assert "differences of gradients" in found.meaning and "differences" not in exact.meaning
