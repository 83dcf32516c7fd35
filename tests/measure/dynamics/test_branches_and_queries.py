"""Queries and branches of networks in which they are known."""

import torch
from torch import nn
from torch.nn import functional as F

from theodolite.measure.dynamics import forward_places


class Attention(nn.Module):
    def __init__(self, width, heads, way):
        super().__init__()
        self.heads, self.way = heads, way
        self.q, self.kv, self.out = nn.Linear(width, width), nn.Linear(width, 2 * width), nn.Linear(width, width)
        self.norm = nn.LayerNorm(width // heads)

    def forward(self, x):
        b, t, c = x.shape
        k, v = self.kv(x).split(c, -1)
        q, k, v = (z.view(b, t, self.heads, -1).transpose(1, 2) for z in (self.q(x), k, v))
        if self.way == "normed":
            q = self.norm(q)
        if self.way == "written out":
            mixed = torch.softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, -1) @ v
        else:
            mixed = F.scaled_dot_product_attention(q, k, v)
        return self.out(mixed.transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self, way="plain"):
        super().__init__()
        self.attention, self.gain = Attention(8, 2, way), nn.Parameter(torch.ones(8))
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x):
        x = x + self.attention(x)
        x += self.down(F.silu(self.up(x)))
        return x + self.gain * torch.tanh(x)


def test_queries_are_found_in_fused_written_out_and_normalized_attention():
    for way, module in (("plain", "attention.q"), ("written out", "attention.q"), ("normed", "attention.norm")):
        queries, _ = forward_places(Block(way), (torch.randn(2, 3, 8),))
        assert [(place.module, place.head_size) for place in queries] == [(module, 4)], way


def test_queries_that_are_some_channels_of_a_layer_are_told_by_them():
    class Packed(nn.Module):
        def __init__(self):
            super().__init__()
            self.all = nn.Linear(8, 24)

        def forward(self, x):
            k, q, v = self.all(x).split(8, -1)
            return F.scaled_dot_product_attention(q, k, v)

    queries, _ = forward_places(Packed(), (torch.randn(2, 3, 8),))
    assert queries[0].channels == tuple(range(8, 16))


def test_branches_are_found_and_one_that_no_module_makes_is_said_to_be_so():
    _, branches = forward_places(Block(), (torch.randn(2, 3, 8),))
    assert [place.module for place in branches] == ["attention", "down", ""]


def test_the_model_is_left_as_it_was():
    model = Block()
    model.gain.requires_grad_(False)
    forward_places(model, (torch.randn(2, 3, 8),))
    assert model.training and not model.gain.requires_grad
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
