"""Instruments of classes, where there are none, one of a class, or a class is missing."""

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

import theodolite as th


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def regression():
    x = torch.randn(40, 5, generator=seeded(), dtype=torch.float64)
    model = nn.Sequential(nn.Linear(5, 1, bias=False)).double()
    nn.init.zeros_(model[0].weight)
    return model, x, x[:, :1] + 0.5 * x[:, 1:2]


def test_instruments_of_classes_decline_what_is_not_classes():
    model, x, y = regression()
    for name in ("collapse", "class-structure"):
        assert th.read(name, model, data=(x, y), loss=mse_loss) == ()
    tokens = torch.randint(0, 4, (6, 3), generator=seeded())
    sequence = nn.Sequential(nn.Embedding(4, 4), nn.Linear(4, 4))
    loss = lambda z, t: cross_entropy(z.flatten(0, 1), t.flatten())  # noqa: E731
    assert th.read("collapse", sequence, data=(tokens, tokens), loss=loss) == ()
    assert th.read("gradient-noise", sequence, data=(tokens, tokens), loss=loss)
    assert th.read("hessian-spectrum", model, data=(x, y), loss=mse_loss)


def test_a_class_with_one_sample_and_a_missing_class_are_told():
    x = torch.randn(21, 6, generator=seeded())
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))
    labels = torch.tensor([0] * 10 + [1] * 10 + [2])
    readings = th.read("collapse", model, data=(x, labels), loss=cross_entropy)
    assert len(readings) == 5
    assert "one sample" in readings[0].meaning and "do not occur" in readings[0].meaning
    shares = [r.measured for r in th.read("class-structure", model, data=(x, labels), loss=cross_entropy)[:4]]
    assert sum(shares) == pytest.approx(1)
