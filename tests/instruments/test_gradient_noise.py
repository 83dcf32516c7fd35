"""The noise of gradients, against gradients one by one."""

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

import theodolite as th
from theodolite.instruments._common.data_visit import thinned
from theodolite.measure.dynamics import gradient_moments, group_moments


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_gradient_moments_are_those_of_gradients_one_by_one():
    x = torch.randn(30, 6, generator=seeded(), dtype=torch.float64)
    model = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3)).double()
    labels = torch.randint(0, 3, (30,), generator=seeded(1))
    rows = []
    for i in range(30):
        found = torch.autograd.grad(cross_entropy(model(x[i : i + 1]), labels[i : i + 1]), list(model.parameters()))
        rows.append(torch.cat([g.flatten() for g in found]))
    G = torch.stack(rows)
    found = gradient_moments(model, cross_entropy, [(x[:7], labels[:7]), (x[7:], labels[7:])])
    scatter = torch.cov(G.T).trace().item()
    assert found.scatter.value == pytest.approx(scatter)
    assert found.squared_mean.value == pytest.approx(G.mean(0).square().sum().item() - scatter / 30)
    assert found.samples == 30
    assert gradient_moments(model, cross_entropy, (x[:1], labels[:1])) is None


def test_noise_from_small_batches_is_that_from_samples_where_these_do_not_meet():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1)).double()
    x = torch.randn(1600, 6, generator=seeded(), dtype=torch.float64)
    y = x[:, :1] + torch.randn(1600, 1, generator=seeded(1), dtype=torch.float64)
    own = th.Subject(model, data=(x, y), loss=mse_loss)
    each = gradient_moments(model, mse_loss, own.data)
    groups = group_moments(model, mse_loss, list(thinned(own, 1600, batch_size=8)))
    assert abs(groups.scatter.value - each.scatter.value) < 3 * groups.scatter.stderr
    assert groups.scatter.stderr < 0.2 * each.scatter.value
    assert abs(groups.squared_mean.value - each.squared_mean.value) < 3 * groups.squared_mean.stderr
