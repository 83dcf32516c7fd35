"""Sharpness against its edge: of a quadratic it is known."""

import pytest
import torch
from torch import nn
from torch.nn.functional import mse_loss

import theodolite as th
from theodolite.measure import batch_statistics
from theodolite.measure.curvature import hessian


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def regression():
    x = torch.randn(40, 5, generator=seeded(), dtype=torch.float64)
    model = nn.Sequential(nn.Linear(5, 1, bias=False)).double()
    nn.init.zeros_(model[0].weight)
    return model, x, x[:, :1] + 0.5 * x[:, 1:2]


@pytest.mark.parametrize(("share", "status"), [(0.5, "agrees"), (1.5, "above")])
def test_sharpness_of_a_quadratic_against_its_edge(share, status):
    model, x, y = regression()
    sharpest = 2 * torch.linalg.eigvalsh(x.T @ x / 40)[-1].item()
    (reading,) = th.read("sharpness", model, data=(x, y), loss=mse_loss, lr=share * 2 / sharpest)
    assert reading.measured == pytest.approx(sharpest, rel=1e-8)
    assert reading.status == status
    assert ("above the stability limit" in reading.meaning) == (share > 1)
    (with_momentum,) = th.read("sharpness", model, data=(x, y), loss=mse_loss, lr=share * 2 / sharpest, momentum=0.6)
    assert with_momentum.status == "agrees"


def normalized():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1)).double()
    x = torch.randn(48, 5, generator=seeded(), dtype=torch.float64)
    return model.eval(), x, x[:, :1] * x[:, 1:2]


def test_sharpness_of_a_normalized_network_is_that_of_its_training_loss():
    model, x, y = normalized()
    (reading,) = th.read("sharpness", model, data=(x, y), loss=mse_loss, lr=0.1)
    with batch_statistics(model):
        dense = hessian(model, mse_loss, (x, y)).dense()
    assert reading.measured == pytest.approx(torch.linalg.eigvalsh(dense)[-1].item(), rel=1e-6)
