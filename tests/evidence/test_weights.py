"""What each tensor of a model or checkpoint shows by itself."""

import json
import math

import pytest
import torch
from torch import nn

from theodolite.core.subject import Subject
from theodolite.evidence.weights import facts_of_row, has_left, is_table, weight_facts
from theodolite.io.weights import weights_of


def facts(weight):
    return weight_facts(Subject(weights=weights_of({"a.weight": weight})))["a.weight"]


def test_a_layer_as_pytorch_draws_it_is_known_and_left_by_a_step():
    torch.manual_seed(0)
    weight = nn.Linear(64, 48).weight.detach()
    drawn, moved = facts(weight), facts(weight * 1.02)
    assert drawn.start == "PyTorch" and not drawn.learned
    assert not moved.start
    assert not has_left(weight) and has_left(weight * 1.02)


def test_a_direction_above_the_noise_was_learned():
    draw = torch.Generator().manual_seed(0)
    noise = torch.randn(60, 80, generator=draw)
    spike = torch.outer(torch.randn(60, generator=draw), torch.randn(80, generator=draw))
    assert not facts(noise).learned and facts(noise).normal
    assert facts(noise + 0.5 * spike).learned


def test_what_is_not_finite_is_counted_by_its_kind():
    found = facts(torch.tensor([[1.0, math.nan], [math.inf, -math.inf]]))
    assert (found.nan, found.infinite, found.entries, found.values) == (1, 2, 4, 3)


def test_facts_are_kept_as_a_row():
    found = facts(torch.randn(20, 20, generator=torch.Generator().manual_seed(0)))
    kept = json.loads(json.dumps({**vars(found), "tail": vars(found.tail)}))
    assert facts_of_row(kept) == found


@pytest.mark.parametrize(
    ("name", "table"), [("bert.word_embeddings.weight", True), ("wte.weight", True), ("head.weight", False)]
)
def test_tables_are_known_by_name_or_by_module(name, table):
    assert is_table(name, None) == table
    assert is_table("x", nn.Embedding(2, 2)) and not is_table(name, nn.Linear(2, 2))
