"""Readouts whose bias is known: least norm, sparse, widest margin; and subjects that have no answer."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

import theodolite as th
from theodolite.construct.dynamics import diagonal_slope
from theodolite.measure.experiments import flow_limit
from theodolite.theory.bias import least_weighted_norm, widest_class_margin, widest_margin


class Diagonal(nn.Module):
    def __init__(self, plus, minus):
        super().__init__()
        self.plus, self.minus = nn.Parameter(torch.as_tensor(plus)), nn.Parameter(torch.as_tensor(minus))

    def forward(self, x):
        return (x @ (self.plus**2 - self.minus**2))[:, None]


def problem(samples=8, dimension=20):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(samples, dimension))
    sparse = np.zeros(dimension)
    sparse[:3] = 1.0, -0.8, 0.5
    return x, x @ sparse


def by_quantity(subject):
    return {reading.quantity: reading for reading in th.read("implicit-bias", subject)}


def linear(weight):
    weight = torch.as_tensor(weight)
    layer = nn.Linear(weight.shape[1], len(weight), bias=False, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(weight)
    return layer


def test_least_norm_is_recognized():
    x, y = problem()
    model = linear(least_weighted_norm(x, y)[None])
    seen = by_quantity(th.Subject(model, data=(torch.tensor(x), torch.tensor(y)[:, None]), loss=mse_loss))
    assert seen["distance to the least norm"].measured < 1e-10
    assert seen["distance to the sparsest (least l1 norm)"].measured > 0.3
    assert "the whole model" in seen["distance to the least norm"].where


@pytest.mark.parametrize(
    ("scale", "near", "far"),
    [(1e-3, "sparsest (least l1 norm)", "least norm"), (10.0, "least norm", "sparsest (least l1 norm)")],
)
def test_diagonal_networks_end_where_their_start_says(scale, near, far):
    x, y = problem()
    plus, minus = np.split(flow_limit(diagonal_slope(x, y), np.full(40, scale)), 2)
    subject = th.Subject(Diagonal(plus, minus), data=(torch.tensor(x), torch.tensor(y)[:, None]), loss=mse_loss)
    seen = by_quantity(subject)
    # the way to the sparsest is as the logarithm of the start: a tenth is left at 0.001
    assert seen[f"distance to the {near}"].measured < 0.15 < 0.3 < seen[f"distance to the {far}"].measured
    assert seen["distance to the nearest diagonal network's end"].measured < 0.01


def test_widest_margin_is_recognized_and_never_exceeded():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(40, 6))
    y = np.where(x @ rng.normal(size=6) > 0, 1, -1)
    best = widest_margin(x, y).weight
    data = torch.tensor(x), torch.tensor((y > 0).astype(float))[:, None]
    seen = by_quantity(th.Subject(linear(best[None]), data=data))
    assert seen["margin, relative to the widest"].measured == pytest.approx(1.0, abs=1e-9)
    assert seen["distance to the direction of widest margin"].measured < 1e-9
    worse = by_quantity(th.Subject(linear((best + 0.2 * rng.normal(size=6))[None]), data=data))
    assert 0 < worse["margin, relative to the widest"].measured < 0.99
    wrong = by_quantity(
        th.Subject(
            linear(best[None]), data=(data[0], torch.where(torch.arange(40)[:, None] == 3, 1 - data[1], data[1]))
        )
    )
    assert "1 misclassified ones are left out" in wrong["margin, relative to the widest"].meaning


def test_several_classes_are_compared_all_against_each_other():
    rng = np.random.default_rng(2)
    y = np.arange(45) % 3
    x = 4 * rng.normal(size=(3, 5))[y] + 0.4 * rng.normal(size=(45, 5))
    W, _ = widest_class_margin(x, y, classes=3)
    subject = th.Subject(linear(W + 0.7), data=(torch.tensor(x), torch.tensor(y)), loss=cross_entropy)
    seen = by_quantity(subject)  # one vector added to all classes changes no answer, only the norm
    assert seen["distance to the direction of widest margin"].measured < 1e-9
    assert seen["margin, relative to the widest"].measured < 1


def test_last_layer_of_a_network_is_read_on_its_features():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 24), nn.ReLU(), nn.Linear(24, 3))
    x = torch.randn(50, 5)
    seen = by_quantity(th.Subject(model, data=(x, torch.arange(50) % 3), loss=cross_entropy))
    reading = seen["distance to the least norm"]
    assert reading.where == "2"
    assert 0 < reading.measured < 1.5
    assert "25 features" in reading.meaning  # 24 and the bias


def test_nothing_is_said_where_there_is_nothing_to_say():
    x = torch.randn(20, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    conv = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    assert th.read("implicit-bias", th.Subject(conv, data=x)) == ()
    same = torch.ones(20, 3, dtype=torch.float64), torch.arange(20) % 2  # classes that no plane separates
    seen = by_quantity(th.Subject(linear(np.eye(2, 3)), data=same, loss=cross_entropy))
    assert "margin, relative to the widest" not in seen  # of samples that are all the same one class is right
    with pytest.raises(ValueError, match="expected"):
        th.Subject(linear(np.full((1, 3), np.nan)), data=same[0])
