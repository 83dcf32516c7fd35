"""Attention whose entropy and rank are known."""

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import theodolite as th
from theodolite.measure.propagation import attention_sights


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def subject(samples=96, batch=32):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 12), nn.ReLU(), nn.Linear(12, 3))
    x = torch.randn(samples, 6, generator=seeded())
    y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
    return th.Subject(model, data=list(zip(x.split(batch), y.split(batch), strict=True)), loss=cross_entropy, lr=0.1)


class Uniform(nn.Module):
    """Queries that are zero look everywhere alike."""

    def __init__(self):
        super().__init__()
        self.block = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)
        with torch.no_grad():
            self.block.self_attn.in_proj_weight[:8] = 0

    def forward(self, x):
        return self.block(x).mean(1)


def test_attention_that_looks_everywhere_has_full_entropy_and_equal_tokens_have_rank_one():
    torch.manual_seed(0)
    model = Uniform().eval()
    x = torch.randn(6, 5, 8, generator=seeded())
    (sight,) = attention_sights(model, (x,), {})
    assert sight.entropies == pytest.approx((1.0,) * 6)
    assert max(sight.ranks) > 3
    readings = th.read("attention", model, data=x)
    assert {r.quantity for r in readings} == {
        "entropy of attention, relative to the maximum",
        "effective rank of the tokens",
    }
    assert all(r.status == "agrees" for r in readings if "rank" in r.quantity)
    alike = x[:, :1].expand(6, 5, 8)
    (merged,) = attention_sights(model, (alike,), {})
    assert merged.ranks == pytest.approx((1.0,) * 6, abs=1e-4)
    assert th.read("attention", subject()) == ()


class Vision(nn.Module):
    """Patches, places, blocks that normalize first, and the mean over tokens."""

    def __init__(self, depth=6, width=16, patches=16):
        super().__init__()
        self.cut = nn.Conv2d(3, width, 4, 4)
        self.place = nn.Parameter(0.02 * torch.randn(1, patches, width))
        layer = nn.TransformerEncoderLayer(width, 4, 32, 0.0, "gelu", batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 3)

    def forward(self, x):
        return self.head(self.norm(self.blocks(self.cut(x).flatten(2).mT + self.place)).mean(1))


def pictures(count=40, side=16):
    x = torch.randn(count, 3, side, side, generator=seeded())
    return x, torch.arange(count) % 3


def made(kind):
    torch.manual_seed(0)
    return kind().eval()


def test_attention_is_read_by_depth():
    readings = th.read("attention", made(Vision), data=pictures()[0])
    entropies = [r for r in readings if "entropy" in r.quantity]
    ranks = [r for r in readings if "rank of the tokens" in r.quantity]
    assert [r.where for r in entropies] == [f"blocks.layers.{i}.self_attn" for i in range(6)]
    assert len(ranks) == 6
    assert all(0 < r.measured <= 1 for r in entropies)
    assert all(1 <= r.measured <= 16 for r in ranks)
