"""Sequences of symbols: which input a target is."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from theodolite.core.subject import Subject
from theodolite.evidence.sequences import target_shift

WORDS = torch.randint(0, 20, (16, 12), generator=torch.Generator().manual_seed(0))


def asked(y):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(20, 4), nn.Linear(4, 20))

    def loss(o, t):
        return F.cross_entropy(o.flatten(0, 1), t.flatten(), ignore_index=-100)

    return target_shift(Subject(model, data=(WORDS, y), loss=loss, checked=False))


@pytest.mark.parametrize("shift", [0, 1, 2])
def test_targets_are_so_many_places_ahead(shift):
    ahead = torch.full_like(WORDS, -100)
    ahead[:, : 12 - shift] = WORDS[:, shift:]
    found = asked(ahead)
    assert (found.shift, found.share) == (shift, 1.0)


def test_targets_of_their_own_are_no_shift():
    assert asked(torch.randint(0, 20, (16, 12), generator=torch.Generator().manual_seed(1))) is None
