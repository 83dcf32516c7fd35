"""The samples that a subject is judged by: what is held out is trained on nowhere, whatever repeats."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fixtures.judging import subject_of
from theodolite.core.subject import Subject
from theodolite.evidence.batches import (
    batch_size,
    batches,
    distinct_batches,
    joined,
    parts,
    price,
    sample_of,
    shuffled,
    times_drawn,
    training_and_held_out,
    validation_parts,
    whole_columns,
)
from theodolite.evidence.thresholds import FEWEST


def subject(data):
    return Subject(nn.Linear(3, 2), data=data, loss=F.cross_entropy, checked=False)


def rows(whole):
    return {tuple(r.tolist()) for b in whole for r in b.inputs[0]}


def columns(n, seed=0):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(n, 3, generator=g), torch.randint(0, 2, (n,), generator=g)


def test_held_out_samples_are_trained_on_nowhere_though_epochs_repeat_them():
    x, y = columns(100)
    epochs = [(x[i : i + 10], y[i : i + 10]) for _ in range(3) for i in range(0, 100, 10)]
    training, held = training_and_held_out(subject(epochs))
    assert rows(training) | rows(held) == rows(batches(subject(epochs)))
    assert not rows(training) & rows(held)
    assert max(map(len, training)) == 10


@pytest.mark.parametrize(("repeats", "share"), [(9, 0.5), (1, 0.1)])
def test_validation_counts_classes_as_training_draws_them(repeats, share):
    x, _ = columns(400)
    y = (torch.arange(400) % 10 == 0).long()
    train = torch.cat([torch.arange(200), (y[:200] == 1).nonzero()[:, 0].repeat(repeats - 1)])
    data = {"data": (x[train], y[train]), "validation": (x[200:], y[200:])}
    whole = Subject(nn.Linear(3, 2), loss=F.cross_entropy, checked=False, **data)
    held = validation_parts(whole)
    assert bool(times_drawn(whole, distinct_batches(whole))) is (repeats > 1)
    assert float(torch.cat([b.target for b in held]).float().mean()) == pytest.approx(share, abs=0.03)


def test_batches_of_a_loader_stay_as_they_are():
    x, y = columns(320)
    loader = [(x[i : i + 16], y[i : i + 16]) for i in range(0, 320, 16)]
    training, held = training_and_held_out(subject(loader))
    assert {len(b) for b in training} == {16} and not rows(training) & rows(held)
    assert batch_size(subject(loader)) == 16 and batch_size(subject((x, y))) is None


@pytest.mark.parametrize("n", [1, 2, 4, FEWEST - 1])
def test_of_a_few_samples_nothing_can_be_held_out(n):
    training, held = training_and_held_out(subject(columns(n)))
    assert rows(training) == rows(held) and len(held) == min(n, 16)


def test_sorted_classes_are_spread_over_both_sides():
    x = torch.randn(640, 3, generator=torch.Generator().manual_seed(0))
    y = torch.arange(640) // 320
    training, held = training_and_held_out(subject((x, y)))
    for side in (training, held):
        assert 0.35 < float(torch.cat([b.target for b in side]).double().mean()) < 0.65


def test_parts_joined_and_shuffled_hold_the_same_samples():
    whole = batches(subject(columns(192)))
    assert rows(parts(whole, 16)) == rows(joined(whole)) == rows(shuffled(whole, 4)) == rows(whole)
    assert len(joined(whole, 2)) == len(whole) // 2
    assert len(sample_of(whole)) == 192
    assert len(whole_columns(columns(5))) == 2


def test_batches_of_one_sample_are_priced_by_several():
    """Episodes: the first may be the shortest, and two are twice the work of one."""

    class Episodes(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.policy = torch.nn.Linear(4, 2)

        def forward(self, lengths):
            return torch.stack(
                [sum(self.policy(torch.ones(4)).sum() for _ in range(n)) for n in lengths.int().tolist()]
            )

    data = [(torch.full((1,), float(n)), torch.zeros(1)) for n in range(1, 41)]
    one = subject_of({"model": Episodes(), "data": data, "loss": torch.nn.functional.mse_loss})
    first = subject_of({"model": Episodes(), "data": data[:1], "loss": torch.nn.functional.mse_loss})
    assert price(one).forward(1) > 10 * price(first).forward(1)
    assert price(one).forward(2) == pytest.approx(2 * price(one).forward(1))
