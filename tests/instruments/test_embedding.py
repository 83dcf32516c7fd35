"""Tables of tokens whose lengths and angles are known."""

import pytest
import torch
from torch import nn

import theodolite as th


class Tokens(nn.Module):
    def __init__(self, kinds=400, width=32, *, tied=False):
        super().__init__()
        self.embed, self.place = nn.Embedding(kinds, width, padding_idx=0), nn.Embedding(20, width)
        self.up, self.down = nn.Linear(width, kinds), nn.Linear(kinds, width)  # no head, though of its shape
        self.head = nn.Linear(width, kinds, bias=False)
        if tied:
            self.head.weight = self.embed.weight

    def forward(self, tokens):
        h = self.embed(tokens) + self.place.weight[: tokens.shape[1]]
        return self.head(h + self.down(torch.relu(self.up(h))))


def read(model):
    return {(r.quantity, r.where): r for r in th.read("embedding", model)}


LENGTH, SPREAD = "length of the rows", "spread of the lengths of the rows, relative to their mean"
COSINE = "cosine between head and embedding, token by token"


def test_fresh_tables_are_as_at_random_and_the_row_of_padding_is_left_out():
    torch.manual_seed(0)
    model = Tokens()
    found = read(model)
    assert {where for _, where in found} == {"embed", "place", "head", "head and embed"}
    assert {r.status for (quantity, _), r in found.items() if quantity != LENGTH} == {"agrees"}
    rows = [sum(v * v for v in row) ** 0.5 for row in model.embed.weight[1:].tolist()]
    mean = sum(rows) / 399
    assert found[LENGTH, "embed"].measured == pytest.approx(mean, rel=1e-6)
    spread = (sum((row - mean) ** 2 for row in rows) / 398) ** 0.5
    assert found[SPREAD, "embed"].measured == pytest.approx(spread / mean, rel=1e-5)
    assert spread / mean == pytest.approx(1 / 8, rel=0.1)  # 1 / sqrt(2 d)


def test_a_tied_head_is_said_to_be_and_not_read_twice():
    torch.manual_seed(0)
    found = read(Tokens(tied=True))
    assert {where for _, where in found} == {"embed", "place"}
    assert "tied" in found[LENGTH, "embed"].meaning


def test_tokens_trained_unequally_and_a_head_that_knows_them_are_not_random():
    torch.manual_seed(0)
    model = Tokens()
    with torch.no_grad():
        model.embed.weight[1:40] *= 3
        model.head.weight += 0.1 * model.embed.weight
    found = read(model)
    assert found[SPREAD, "embed"].status == "not random"
    assert found[COSINE, "head and embed"].status == "not random"
    cosine = nn.functional.cosine_similarity(model.head.weight, model.embed.weight).mean().item()
    assert found[COSINE, "head and embed"].measured == pytest.approx(cosine, rel=1e-4)


def test_a_network_without_tokens_is_not_read():
    assert th.read("embedding", nn.Linear(3, 2)) == ()
