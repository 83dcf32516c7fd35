"""Losses by position and frequency of models whose answers are known."""

import math

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import theodolite as th

KINDS, LENGTH, ROWS = 12, 16, 400


def chain(seed=0):
    """Sequences of a Markov chain, and its table of probabilities."""
    draw = torch.Generator().manual_seed(seed)
    table = (3 * torch.randn(KINDS, KINDS, generator=draw)).softmax(1)
    rows = torch.randint(0, KINDS, (ROWS, 1), generator=draw)
    for _ in range(LENGTH):
        rows = torch.cat([rows, torch.multinomial(table[rows[:, -1]], 1, generator=draw)], 1)
    return rows, table


class Table(nn.Module):
    """The logarithm of a table as the answer to a token."""

    def __init__(self, table):
        super().__init__()
        self.table = nn.Embedding.from_pretrained(table.log(), freeze=False)

    def forward(self, tokens):
        return self.table(tokens)


def loss(answer, target):
    return cross_entropy(answer.flatten(0, 1), target.flatten(), ignore_index=-100)


def read(model, rows, targets=None):
    targets = rows[:, 1:].contiguous() if targets is None else targets
    return th.read("token-loss", model, data=(rows[:, :-1].contiguous(), targets), loss=loss)


def test_the_loss_of_a_known_table_is_that_of_a_loop_over_places():
    rows, table = chain()
    found = read(Table(table), rows)
    by_place = {r.where: r for r in found if r.quantity == "loss by position"}
    assert list(by_place) == ["position 0", "position 1", "positions 2 to 3", "positions 4 to 7", "positions 8 to 15"]
    assert {r.status for r in by_place.values()} == {"not random"}
    entropy = -(table * table.log()).sum(1)
    for (
        reading
    ) in by_place.values():  # the true table: its loss is the chain's entropy, and no table of counts is below it
        assert abs(reading.measured - float(entropy[rows[:, :-1]].mean())) < 4 * reading.stderr + 0.05
        assert "more than the current token" in reading.meaning
    by_count = [r for r in found if r.quantity == "loss by frequency of the token"]
    assert all(r.expected is None for r in by_count)
    assert sum(int(r.where.split()[0]) for r in by_count) == KINDS


def test_an_answer_that_ignores_its_input_is_at_the_floor_of_single_tokens():
    rows, _ = chain()
    share = torch.bincount(rows[:, 1:].flatten(), minlength=KINDS) / rows[:, 1:].numel()
    found = read(Table(share.expand(KINDS, KINDS)), rows)
    late = next(r for r in found if r.where == "positions 8 to 15")
    assert late.status == "inconclusive"  # as good as frequencies, to its error
    assert late.measured == pytest.approx(late.expected.low, abs=0.03)
    assert late.expected.low == pytest.approx(float(-(share * share.log()).sum()), abs=0.05)
    flat = read(Table(torch.full((KINDS, KINDS), 1 / KINDS)), rows)
    assert all(r.measured == pytest.approx(math.log(KINDS), rel=1e-6) for r in flat)
    assert {r.status for r in flat if "position" in r.quantity} == {"agrees"}


def test_places_that_do_not_count_are_left_out():
    rows, table = chain()
    targets = rows[:, 1:].clone()
    targets[:, :4] = -100
    found = read(Table(table), rows, targets)
    assert [r.where for r in found if "position" in r.quantity] == ["positions 4 to 7", "positions 8 to 15"]


def test_models_of_numbers_and_short_data_are_not_read():
    rows, table = chain()
    assert read(Table(table), rows[:20]) == ()
    x = torch.randn(64, 3)
    assert th.read("token-loss", nn.Linear(3, 2), data=(x, (x[:, 0] > 0).long()), loss=cross_entropy) == ()
