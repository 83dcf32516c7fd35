"""Wrappers are taken off, and models that wait for their first batch are made on a copy."""

import types

import numpy as np
import pytest
import torch
from torch import nn

from theodolite.core.model_wrappers import as_batches, bare_model, copied_model, is_lazy, made_by, prepared


class Compiled(nn.Module):
    """As torch.compile leaves it."""

    def __init__(self, model):
        super().__init__()
        self._orig_mod = model


def test_wrappers_are_taken_off_in_any_order():
    model = nn.Linear(2, 1)
    assert bare_model(model) is model
    assert bare_model(Compiled(nn.DataParallel(model))) is model
    assert bare_model(nn.DataParallel(Compiled(model))) is model


def test_a_lazy_model_is_made_on_a_copy_and_the_random_state_stays():
    model = nn.Sequential(nn.LazyLinear(3), nn.ReLU())
    assert is_lazy(model)
    before = torch.get_rng_state()
    made = made_by(model, (torch.ones(2, 5),), {})
    assert not is_lazy(made) and made[0].weight.shape == (3, 5) and made.training
    assert is_lazy(model) and torch.equal(before, torch.get_rng_state())
    again = made_by(model, (torch.ones(2, 5),), {})
    assert torch.equal(again[0].weight, made[0].weight)


def test_data_that_are_a_path_are_read_and_get_a_loss(tmp_path):
    np.savez(tmp_path / "d.npz", x=np.ones((6, 4), dtype=np.float32), y=np.arange(6) % 2)
    model, data, loss = prepared(nn.LazyLinear(2), tmp_path / "d.npz", None)
    assert model.weight.shape == (2, 4)
    batch = data.first()
    assert batch.inputs[0].shape[1] == 4 and torch.isfinite(loss(model(batch.inputs[0]), batch.target))


def test_batches_stay_batches():
    model = nn.Linear(2, 1)
    assert as_batches(None, model) is None
    once = as_batches((torch.ones(3, 2), torch.zeros(3, 1)), model)
    assert as_batches(once, model) is once


@pytest.mark.parametrize("bound", [False, True])
def test_a_copy_runs_its_own_weights_whatever_was_put_in_the_place_of_forward(bound):
    model = nn.Sequential(nn.Linear(3, 2), nn.Tanh())
    plain = model[0].forward
    model[0].forward = types.MethodType(lambda self, x: plain(x), model[0]) if bound else lambda x: plain(x)
    copied = copied_model(model)
    x = torch.ones(4, 3)
    assert torch.equal(copied(x), model(x))
    with torch.no_grad():
        copied[0].weight.zero_()
        copied[0].bias.zero_()
    assert not copied(x).any() and model(x).any()


def test_a_method_that_is_bound_to_the_model_is_bound_to_its_copy():
    model = nn.Linear(3, 2)
    model.forward = types.MethodType(lambda self, x: 2 * nn.functional.linear(x, self.weight), model)
    copied = copied_model(model)
    with torch.no_grad():
        copied.weight.fill_(1.0)
    assert torch.equal(copied(torch.ones(1, 3)), torch.full((1, 2), 6.0))
