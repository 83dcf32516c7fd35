"""Data cut into batches, and loaders left as they were."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from theodolite.core.subject import Subject
from theodolite.io.batches import Batches

X, Y = torch.randn(10, 3, generator=torch.Generator().manual_seed(0)), torch.arange(10) % 2


def net():
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))


def test_batches_of_tensors_are_cut():
    assert [len(batch) for batch in Batches((X, Y), net(), batch_size=4)] == [4, 4, 2]


def test_a_loader_with_its_own_generator_is_left_as_it_was():
    generator = torch.Generator().manual_seed(5)
    loader = DataLoader(TensorDataset(X, Y), batch_size=4, shuffle=True, generator=generator)
    model = net()
    before, everyone = generator.get_state(), torch.get_rng_state()
    Subject(model, data=loader, loss=F.cross_entropy)
    assert torch.equal(before, generator.get_state())
    assert torch.equal(everyone, torch.get_rng_state())
