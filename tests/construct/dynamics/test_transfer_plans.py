"""Kinds of tensors of networks of many kinds, and multipliers that do what they say."""

import pytest
import torch
from torch import nn

from theodolite.construct.dynamics import forward_multipliers, layer_kinds, transferred_tensors


def kinds(build, large=32, small=8):
    return {t.name: t.kind for t in transferred_tensors(build(large), build(small))}


def test_layers_of_every_kind_are_told_by_which_sizes_grow():
    def build(n):
        return nn.ModuleDict(
            {
                "conv": nn.Conv2d(3, n, 3),
                "depthwise": nn.Conv2d(n, n, 3, groups=n),
                "up": nn.ConvTranspose2d(n, 3, 2),
                "norm": nn.BatchNorm2d(n),
                "rnn": nn.LSTM(5, n),
                "attention": nn.MultiheadAttention(n, 2),
                "table": nn.Embedding(11, n),
                "head": nn.Linear(n, 4),
                "scale": nn.PReLU(),
            }
        )

    found = kinds(build)
    assert found["conv.weight"] == found["depthwise.weight"] == "input"
    assert found["up.weight"] == "output" and found["up.bias"] == "fixed"
    assert found["norm.weight"] == found["conv.bias"] == "vector"
    assert found["rnn.weight_ih_l0"] == "input" and found["rnn.weight_hh_l0"] == "hidden"
    assert found["attention.in_proj_weight"] == found["attention.out_proj.weight"] == "hidden"
    assert (
        found["table.weight"] == "embedding" and found["head.weight"] == "output" and found["scale.weight"] == "fixed"
    )


def test_matrices_of_one_s_own_and_grouped_heads():
    class Own(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.places = nn.Parameter(torch.randn(1, 7, n))
            self.mix = nn.Parameter(torch.randn(n, n))
            self.out = nn.Parameter(torch.randn(n, 5))
            self.keys = nn.Linear(n, n // 4)  # fewer heads of keys than of queries

    assert kinds(Own) == {
        "places": "embedding",
        "mix": "hidden",
        "out": "output",
        "keys.weight": "hidden",
        "keys.bias": "vector",
    }


def test_factors_of_sizes_that_grow_by_different_amounts():
    tensors = transferred_tensors(nn.Linear(64, 32), nn.Linear(8, 16))
    assert tensors[0].lr_factor("sgd") == 2 / 8 and tensors[0].lr_factor("adam") == 1 / 8


def test_a_tied_output_is_divided_and_an_untied_one_is_not():
    def build(n, tied):
        model = nn.ModuleDict({"table": nn.Embedding(9, n), "head": nn.Linear(n, 9, bias=False)})
        if tied:
            model["head"].weight = model["table"].weight
        return model

    found = forward_multipliers(build(32, True), build(8, True))
    assert [(m.where, m.factor, m.place) for m in found] == [("head", 0.25, "input")]
    assert layer_kinds(build(32, True), build(8, True)) == {"table": "embedding", "head": "output"}
    assert forward_multipliers(build(32, False), build(8, False)) == ()


def test_more_heads_of_the_same_size_need_no_multiplier_and_larger_heads_do():
    small = nn.MultiheadAttention(16, 2)
    assert forward_multipliers(nn.MultiheadAttention(64, 8), small) == ()
    assert [m.factor for m in forward_multipliers(nn.MultiheadAttention(64, 2), small)] == [0.5]


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        return x + self.down(self.up(x).relu())


def flat(width, depth):
    """Blocks in one list with what stands before and after them."""
    blocks = (Block(width) for _ in range(depth))
    return nn.Sequential(nn.Linear(4, width), *blocks, nn.LayerNorm(width), nn.Linear(width, 3))


def test_more_blocks_between_other_layers_of_one_list():
    large, small = flat(16, 6), flat(8, 2)
    found = {t.name: (t.kind, t.depth_growth) for t in transferred_tensors(large, small) if len(t.shape) == 2}
    ends = {"0.weight": ("input", 1), "8.weight": ("output", 1)}
    assert found == {f"{k}.{w}.weight": ("hidden", 3) for k in range(1, 7) for w in ("up", "down")} | ends
    multipliers = forward_multipliers(large, small, (torch.randn(2, 4),))
    assert {(m.where, round(m.factor, 6)) for m in multipliers} == {(f"{k}.down", 0.333333) for k in range(1, 7)}


def test_models_that_are_not_one_network_in_two_sizes_are_refused():
    with pytest.raises(ValueError, match="a list of their own"):
        transferred_tensors(nn.Sequential(*flat(8, 2), nn.Tanh()), flat(8, 2))
    with pytest.raises(ValueError, match="same code"):
        transferred_tensors(nn.Sequential(nn.Linear(4, 8)), nn.Sequential(nn.Conv1d(4, 8, 1)))
    with pytest.raises(ValueError, match="small one as base"):
        transferred_tensors(nn.Linear(8, 8), nn.Linear(16, 16))
    with pytest.raises(ValueError, match="inputs="):
        forward_multipliers(
            nn.ModuleList(nn.Linear(4, 4) for _ in range(4)), nn.ModuleList(nn.Linear(4, 4) for _ in range(2))
        )
