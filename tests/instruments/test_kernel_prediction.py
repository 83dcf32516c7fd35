"""What the tangent kernel predicts, of networks that it reads."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

import theodolite as th
from theodolite.construct.propagation import network
from theodolite.theory import Mlp


def subject(model, *, targets="classes", **facts):
    torch.manual_seed(0)
    x = torch.randn(60, 5)
    y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long() if targets == "classes" else x[:, :1] * x[:, 1:2]
    loss = cross_entropy if targets == "classes" else mse_loss
    return th.Subject(model, data=(x, y), loss=loss, **facts)


def by_name(readings):
    return {(r.quantity, r.where): r for r in readings}


def mlp(outputs=3):
    return network(Mlp(1, "relu", 2.0), 5, outputs, width=32, generator=torch.Generator().manual_seed(0))


def test_prediction_reads_plain_perceptrons_and_nothing_else():
    found = by_name(th.read("kernel-prediction", subject(mlp())))
    wide = found["accuracy of the infinitely wide network", "60 samples, each left out"]
    assert 0.5 < wide.measured <= 1
    model = found["accuracy of the model", "the same 60 samples"]
    assert "Worse" in model.meaning  # it has not been trained
    residual = nn.Sequential(nn.Linear(5, 5), nn.LayerNorm(5), nn.ReLU(), nn.Linear(5, 3))
    assert th.read("kernel-prediction", subject(residual)) == ()


def test_prediction_of_numbers():
    found = by_name(th.read("kernel-prediction", subject(mlp(1), targets="numbers")))
    wide = found["explained share of the infinitely wide network", "60 samples, each left out"]
    assert 0.2 < wide.measured < 1
    assert found["explained share of the model", "the same 60 samples"].measured < wide.measured
