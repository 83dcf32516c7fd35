"""Two networks side by side: trained alike they share features, layer by layer, and nothing of them is changed."""

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import theodolite as th

X = torch.randn(300, 10, generator=torch.Generator().manual_seed(0))
Y = (X[:, 0] > 0).long() + 2 * (X[:, 1] > 0).long()


def trained(seed, targets, steps=300):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(10, 40), nn.ReLU(), nn.Linear(40, 30), nn.ReLU(), nn.Linear(30, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        cross_entropy(model(X), targets).backward()
        optimizer.step()
    return model


def test_networks_that_learned_the_same_are_alike_where_it_counts():
    one, two = trained(0, Y), trained(1, Y)
    other = trained(2, Y[torch.randperm(300, generator=torch.Generator().manual_seed(3))], steps=60)
    alike, unlike = th.similarity(one, two, data=X), th.similarity(one, other, data=X)
    assert alike.layers == alike.others == ("0", "2", "4")
    assert alike.found[-1][-1].value > 0.8 > unlike.found[-1][-1].value
    assert alike.found[-1][-1].p_value == 0.01
    said = str(alike)
    assert "most like" in said and "by chance" in said and "256 samples" in said
    assert len(alike.rows()) == 9 and alike.html().startswith("<!doctype html>")


def test_nothing_is_changed_and_other_shapes_may_be_compared():
    model = nn.Sequential(nn.Conv1d(1, 4, 3), nn.BatchNorm1d(4), nn.Flatten(), nn.Linear(32, 2)).train()
    other = nn.Sequential(nn.Conv1d(1, 9, 5), nn.Flatten(), nn.Linear(54, 2))
    before = model[1].running_mean.clone()
    found = th.similarity(model, other, data=X[:, None, :], samples=64)
    assert torch.equal(before, model[1].running_mean) and model.training
    assert found.layers == ("0", "3") and found.others == ("0", "2") and found.samples == 64
    with pytest.raises(ValueError, match="inputs of shape"):
        th.similarity(model, other, data=X)
