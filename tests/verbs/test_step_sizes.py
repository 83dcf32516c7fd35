"""The best step size, where it is known from whole runs."""

import copy
import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import theodolite as th
from theodolite.evidence.batches import training_and_held_out
from theodolite.io.datasets import digits
from theodolite.verbs.step_sizes import _epochs
from theodolite.verbs.subjects import subject_to_judge


def setting(kind, lr):
    torch.manual_seed(0)
    x, y = digits()
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x[:1200], y[:1200]), batch_size=64)
    return model, loader, kind(model.parameters(), lr=lr), (x[1200:], y[1200:])


def best_of_grid(kind, lrs, steps):
    found = {}
    for lr in lrs:
        model, loader, optimizer, (x, y) = setting(kind, lr)
        batches = list(loader)
        for step in range(steps):
            a, b = batches[step % len(batches)]
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
        with torch.no_grad():
            value = float(F.cross_entropy(model(x), y))
        found[lr] = value if math.isfinite(value) else math.inf
    return min(found, key=found.__getitem__)


@pytest.mark.parametrize(("kind", "lr"), [(torch.optim.Adam, 1e-4), (torch.optim.SGD, 20.0)])
def test_it_is_near_the_best_of_a_grid_from_a_step_size_that_is_not(kind, lr):
    model, loader, optimizer, validation = setting(kind, lr)
    before = copy.deepcopy(model.state_dict())
    found = th.find_lr(model, loader, F.cross_entropy, optimizer, steps=96, validation=validation)
    best = best_of_grid(kind, [lr * 4.0 ** (k / 2) for k in range(-10, 11)], 96)
    assert 0.4 < found.lr / best < 2.5
    assert found.low <= found.lr <= found.high and found.price < 96 * 8
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert optimizer.param_groups[0]["lr"] == lr and "lr = " in found.text()
    if kind is torch.optim.SGD:
        assert found.edge is not None and found.high < 8 * found.edge


def test_a_loss_that_blew_up_and_is_still_a_number_is_no_part_of_the_parabola():
    torch.manual_seed(0)
    x = torch.randn(320, 4)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    found = th.find_lr(model, (x[:256], x.sum(1)[:256]), lambda z, y: F.mse_loss(z[:, 0], y), optimizer, steps=16)
    assert found.low < 0.1 < found.lr < found.high, found.text()


def test_batch_size_and_width_move_it_as_theory_says():
    found = th.StepSizes(0.1, 1.5, 0.01, 0.5, (), 10, 10, 80, "sgd", 32, noise_scale=32.0)
    assert found.at_batch_size(64) == pytest.approx(0.1 * 2 / 1.5) and found.at_batch_size(10**9) == pytest.approx(0.2)
    assert found.at_width(4) == 0.025
    with pytest.raises(ValueError, match="noise"):
        th.StepSizes(0.1, 1.5, 0.01, 0.5, (), 10, 10, 80, "sgd", 32).at_batch_size(64)


def test_it_needs_a_whole_training():
    with pytest.raises(ValueError, match="targets"):
        th.find_lr(nn.Linear(2, 2), torch.randn(40, 2), F.mse_loss, None, steps=20)


@pytest.mark.parametrize("shuffle", [True, False])
def test_later_epochs_are_in_another_order_where_the_loader_shuffles(shuffle):
    x = torch.arange(40.0)[:, None]
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, x), batch_size=16, shuffle=shuffle)
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    subject = subject_to_judge(model, data=loader, loss=F.mse_loss, optimizer=optimizer, validation=(x, x))
    training, _ = training_and_held_out(subject)
    order = _epochs(subject, 7)
    assert (order is not None) == shuffle and _epochs(subject, 3) is None
    if order is not None:
        dealt = [batch.target[:, 0].tolist() for batch in order(training)]
        epochs = [[value for part in dealt[start : start + 3] for value in part] for start in (0, 3)]
        assert [len(part) for part in dealt] == [16, 16, 8, 16, 16, 8, 16]
        assert sorted(epochs[0]) == sorted(epochs[1]) == x[:, 0].tolist() and epochs[0] != epochs[1]
