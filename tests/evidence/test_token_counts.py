"""What sequences of tokens tell by counting alone."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from theodolite.core.subject import Subject
from theodolite.evidence.token_counts import counted_losses, target_shift


def test_a_chain_is_told_by_its_pairs_and_not_by_its_symbols():
    """Each of four symbols is followed by itself with probability 0.7: 0.940 nats a pair, log 4 a symbol."""
    draw = torch.Generator().manual_seed(0)
    steps = torch.where(torch.rand(20_000, generator=draw) < 0.7, 0, torch.randint(1, 4, (20_000,), generator=draw))
    chain = steps.cumsum(0) % 4
    single, pair = counted_losses(chain[:-1], chain[1:], 10_000)
    assert float(single.mean()) == pytest.approx(math.log(4), rel=0.01)
    assert float(pair.mean()) == pytest.approx(-0.7 * math.log(0.7) - 0.3 * math.log(0.1), rel=0.03)


def test_a_pair_never_seen_leans_on_how_often_its_second_token_occurs():
    given, told = torch.tensor([0, 0, 1, 0]), torch.tensor([1, 1, 0, 0])
    single, pair = counted_losses(given, told, 3)
    assert single.exp().tolist() == pytest.approx([5 / 2])  # counts 1 and 2 with one added to each
    assert pair.exp().tolist() == pytest.approx([(2 + 8) / (8 * 2 / 5)])


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
    assert asked(ahead) == (shift, 1.0)


def test_targets_of_their_own_are_no_shift():
    assert asked(torch.randint(0, 20, (16, 12), generator=torch.Generator().manual_seed(1))) is None
