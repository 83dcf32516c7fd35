"""The dimension of features, layer by layer."""

import torch
from torch import nn

import theodolite as th
from theodolite.construct.dimension import manifold


def test_a_narrow_layer_narrows_the_data():
    g = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 40), nn.Linear(40, 2), nn.Linear(2, 30))
    readings = {
        r.where: r for r in th.read("feature-dimension", model, data=manifold("cube", 500, 6, generator=g).float())
    }
    assert list(readings) == ["input", "0", "1", "2"]
    assert abs(readings["input"].measured - 6) < 3 * readings["input"].stderr
    assert abs(readings["1"].measured - 2) < 0.5
    assert abs(readings["2"].measured - 2) < 0.5
    assert readings["2"].expected.high == 2
    assert "fall" in readings["2"].meaning


def test_few_samples_give_no_reading():
    model = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 2))
    assert th.read("feature-dimension", model, data=torch.randn(30, 6)) == ()
