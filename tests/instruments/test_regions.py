"""Random networks bend between inputs as theory says; one that knows the data does not."""

import math

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import theodolite as th
from theodolite.core.reading import CellPicture
from theodolite.io.datasets import digits


def network(seed, bias, width=96):
    generator, layers = torch.Generator().manual_seed(seed), []
    for fan_in, fan_out in ((64, width), (width, width), (width, 10)):
        layer = nn.Linear(fan_in, fan_out)
        layer.weight.data.normal_(0, (2 / fan_in) ** 0.5, generator=generator)
        layer.bias.data.normal_(0, 1, generator=generator).mul_(bias)
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def bends(model):
    x, y = digits()
    return [r for r in th.read("regions", model, data=(x[:300], y[:300])) if "bends" in r.quantity]


def test_random_networks_agree():
    """Bands of three standard deviations of one draw: of 24 readings, tied in threes, at most one network may stray."""
    readings = [r for seed in range(8) for r in bends(network(seed, 0.3 * (seed % 2)))]
    assert len(readings) == 24
    assert all(r.expected is not None for r in readings)
    assert sum(r.status == "not random" for r in readings) <= 3
    assert sum(r.status == "agrees" for r in readings) >= 18


def test_a_first_layer_that_bends_among_the_data_does_not():
    model = network(0, 0.0)
    x, _ = digits()
    with torch.no_grad():  # every unit's zero passes through the middle of the data
        model[0].bias.copy_(-model[0].weight @ x.mean(0))
    assert {r.status for r in bends(model)} == {"not random"}


def test_other_networks_have_no_reference_and_smooth_ones_are_skipped():
    leaky = nn.Sequential(nn.Linear(64, 20), nn.LeakyReLU(), nn.Linear(20, 10))
    assert {r.status for r in bends(leaky)} == {"no reference"}
    with pytest.raises(ValueError, match="got Tanh at '1'"):
        bends(nn.Sequential(nn.Linear(64, 20), nn.Tanh(), nn.Linear(20, 10)))


def test_the_cells_are_a_picture_that_fills_the_triangle_and_shows_the_answers():
    model, (x, _) = network(1, 0.3), digits()
    survey = th.survey(th.Subject(model, data=x), instruments=["regions"])
    (cells,) = [r for r in survey.readings if r.quantity.startswith("cells")]
    picture = cells.series
    assert isinstance(picture, CellPicture)
    assert len(picture.polygons) == len(picture.groups) == cells.measured

    def area(corners):
        turned = [*corners[1:], corners[0]]
        return abs(sum(a * d - b * c for (a, b), (c, d) in zip(corners, turned, strict=True))) / 2

    assert sum(area(p) for p in picture.polygons) == pytest.approx(area(picture.points), rel=1e-9)
    inputs = x[:400][:: 400 // 3][:3]
    for corner, answer in zip(picture.points, model(inputs).argmax(1).tolist(), strict=True):
        own = [g for p, g in zip(picture.polygons, picture.groups, strict=True) if any(near(corner, c) for c in p)]
        assert own == [answer]
    assert survey.html().count('<g transform="scale(') >= 1  # the cells, as polygons


def near(one, other):
    return abs(one[0] - other[0]) + abs(one[1] - other[1]) < 1e-9


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def subject(samples=96, batch=32):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 12), nn.ReLU(), nn.Linear(12, 3))
    x = torch.randn(samples, 6, generator=seeded())
    y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
    return th.Subject(model, data=list(zip(x.split(batch), y.split(batch), strict=True)), loss=cross_entropy, lr=0.1)


def test_large_networks_are_counted_at_places(monkeypatch):
    from theodolite.instruments import regions

    exact = {r.quantity: r for r in th.read("regions", subject())}
    monkeypatch.setattr(regions, "UNITS", 1)
    sampled = {r.quantity: r for r in th.read("regions", subject())}
    for quantity, reading in sampled.items():
        assert abs(reading.measured - exact[quantity].measured) < 3 * math.hypot(reading.stderr, exact[quantity].stderr)
