"""Samples spread over the data, by tensors, tuples and names."""

import torch
from torch import nn

from theodolite.core.subject import Subject
from theodolite.instruments._common.samples import spread_samples


class Two(nn.Module):
    def forward(self, a, b=None):
        return a if b is None else a + b


def test_samples_are_evenly_spread_and_keep_their_targets():
    x = torch.arange(100.0)[:, None]
    found = spread_samples(Subject(nn.Identity(), data=(x, torch.arange(100))), 8)
    assert len(found) == 8
    assert found.x[:, 0].tolist() == found.targets.tolist() == [k * 100 // 8 for k in range(8)]


def test_of_few_samples_all_are_taken_and_of_one_none():
    x = torch.arange(3.0)[:, None]
    assert len(spread_samples(Subject(nn.Identity(), data=x), 8)) == 3
    assert spread_samples(Subject(nn.Identity(), data=x[:1]), 8) is None


def test_inputs_by_name_stay_by_name():
    batches = [{"a": torch.ones(4, 2), "b": torch.full((4, 2), k)} for k in (1.0, 2.0)]
    found = spread_samples(Subject(Two(), data=batches), 4)
    assert len(found) == 4 and found.targets is None
    assert found.x["b"][:, 0].tolist() == [1.0, 1.0, 2.0, 2.0]
