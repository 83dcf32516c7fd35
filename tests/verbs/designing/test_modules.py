"""Designs of modules that are there."""

import pytest
import torch

import theodolite as th
from theodolite.io.datasets import digits
from theodolite.verbs.designing.modules import columns


def test_a_module_is_designed_from_what_it_is_and_does():
    torch.manual_seed(0)
    x, y = digits()
    model = torch.nn.Sequential(torch.nn.Linear(64, 48), torch.nn.Tanh(), torch.nn.Linear(48, 48), torch.nn.Tanh())
    model.append(torch.nn.Linear(48, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    found = th.design(model, data=(x, y), loss=torch.nn.functional.cross_entropy, optimizer=optimizer, steps=64)
    assert (found.activation, found.depth, found.width) == ("tanh", 2, 48)
    assert found.network.parameters == sum(p.numel() for p in model.parameters())
    assert found.network.steps.lr > 1e-3 and "lr = " in found.text()
    assert "step-too-small" in [finding.name for finding in found.diagnosis.findings]
    assert found.document()["network"]["step_sizes"]["lr"] == found.network.steps.lr
    with pytest.raises(ValueError, match="loss"):
        th.design(model, data=(x, y))


def test_only_two_tensors_of_finite_numbers_are_columns():
    x, y = torch.randn(4, 2), torch.arange(4)
    assert columns((x, y)) == (x, y)
    assert columns([(x, y)]) is None
    assert columns((y, x)) is None  # tokens have no scale
    assert columns((x / 0, y)) is None
