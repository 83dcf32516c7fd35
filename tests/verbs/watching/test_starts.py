"""What a watch begins with."""

import math

import pytest
import torch
from torch import nn
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, TensorDataset

from theodolite.core.checks import InputError
from theodolite.io.tensors_on_disk import OnDisk
from theodolite.verbs.watching import starts
from theodolite.verbs.watching.starts import kept_probe, starting_weights, watched_model, watched_subject


def test_a_loader_is_read_once_and_the_random_state_is_left():
    loader = DataLoader(TensorDataset(torch.arange(12.0)[:, None]), batch_size=4, shuffle=True)
    model = nn.Linear(1, 1)
    before = torch.get_rng_state()
    first = kept_probe(loader, model)
    assert torch.equal(before, torch.get_rng_state())
    assert isinstance(first, list) and len(first) == 3
    pair = [torch.ones(2, 1), torch.zeros(2, 1)]
    assert isinstance(kept_probe(pair, None), tuple)
    assert kept_probe([tuple(pair)], None) == [tuple(pair)]


def test_a_lazy_model_is_refused_and_a_wrapped_one_unwrapped():
    with pytest.raises(InputError, match="lazy module"):
        watched_model(nn.LazyLinear(3))
    inner = nn.Linear(1, 1)
    assert watched_model(nn.DataParallel(inner)) is inner


def test_a_model_whose_answers_are_not_finite_is_watched():
    model = nn.Linear(1, 1)
    nn.init.constant_(model.weight, math.inf)
    assert watched_subject(model, (torch.ones(4, 1), torch.ones(4, 1)), mse_loss, "net").model is model


def test_the_start_is_kept_on_disk_for_a_run_that_goes_on(tmp_path):
    model = nn.Linear(2, 1)
    first = model.weight.detach().clone()
    starting_weights(model, tmp_path)
    with torch.no_grad():
        model.weight.add_(1)
    assert torch.equal(starting_weights(model, tmp_path)["weight"], first)
    assert torch.equal(starting_weights(model, None)["weight"], first + 1)
    with pytest.raises(InputError, match="expected the model whose run began in"):
        starting_weights(nn.Linear(3, 1), tmp_path)


def test_the_start_of_a_large_model_lies_in_a_file(monkeypatch):
    model = nn.Linear(2, 1)
    monkeypatch.setattr(starts, "LARGE", 1)
    found = starting_weights(model, None)
    assert isinstance(found, OnDisk) and torch.equal(found["weight"], model.weight)
