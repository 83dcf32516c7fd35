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
    assert {r.quantity for r in readings} >= {
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


class Written(nn.Module):
    """Two heads of causal attention with given queries and keys, by each way to write it."""

    def __init__(self, way, q, k):
        super().__init__()
        self.way, self.q, self.k = way, nn.Parameter(q), nn.Parameter(k)  # (heads, tokens, size)

    def forward(self, x):
        n, tokens, width = x.shape
        q, k = (z.expand(n, *z.shape) for z in (self.q, self.k))
        v = x.view(n, tokens, 2, -1).transpose(1, 2)
        causal = torch.ones(tokens, tokens, dtype=torch.bool).tril()
        if self.way == "fused":
            mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        elif self.way == "masked":
            mixed = nn.functional.scaled_dot_product_attention(q, k, v, causal.expand(n, 1, tokens, tokens))
        else:
            scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~causal, -torch.inf)
            mixed = torch.softmax(scores, dim=-1) @ v
        return x + mixed.transpose(1, 2).reshape(n, tokens, width)


@pytest.mark.parametrize("way", ["fused", "masked", "written out"])
def test_scores_sinks_and_single_heads_are_those_of_a_loop_over_rows(way):
    q, k = torch.randn(2, 6, 4, generator=seeded(1)), torch.randn(2, 6, 4, generator=seeded(2))
    q[1], k[1, 0] = 4.0, 4.0  # the second head looks at its first token
    x = torch.randn(3, 6, 8, generator=seeded())
    (sight,) = attention_sights(Written(way, q, k), (x,), {})
    entropies, tops, largest, columns = [], [[], []], -1.0, torch.zeros(2, 6, dtype=torch.float64)
    for head in range(2):
        for row in range(1, 6):  # the first row has no choice
            scores = torch.stack([q[head, row] @ k[head, place] / 2 for place in range(row + 1)]).double()
            p = scores.exp() / scores.exp().sum()
            entropies.append(float(-(p * p.log()).sum() / torch.tensor(row + 1.0).log()))
            tops[head].append(float(p.max()))
            largest = max(largest, float(scores.max() - scores.mean()))
            columns[head, : row + 1] += p / 5
    assert sight.entropies == pytest.approx((sum(entropies) / 10,) * 3, rel=1e-5)
    assert sight.largest_score == pytest.approx(largest, rel=1e-5)
    assert sum(tops[1]) / 5 > 0.9 > sum(tops[0]) / 5
    assert sight.one_place == (1,)
    assert sight.sink == 0
    assert sight.sink_shares == pytest.approx((float(columns[1, 0]),) * 3, rel=1e-5)
    assert sight.even_share == pytest.approx(sum(1 / (row + 1) for row in range(1, 6)) / 5)
    said = {r.quantity: r for r in th.read("attention", Written(way, q, k), data=x)}
    assert said["largest share of attention on one position"].status == "not random"
    assert "a sink" in said["largest share of attention on one position"].meaning


def test_attention_of_a_library_is_read_alike_fused_and_written_out():
    import transformers

    sizes = {"vocab_size": 32, "n_positions": 12, "n_embd": 16, "n_layer": 2, "n_head": 2}
    rows = torch.randint(0, 32, (6, 12), generator=seeded())
    found = {}
    for way in ("sdpa", "eager"):
        torch.manual_seed(0)
        config = transformers.GPT2Config(**sizes, bos_token_id=0, eos_token_id=0, attn_implementation=way)
        model = transformers.GPT2LMHeadModel(config)
        found[way] = attention_sights(model, (), {"input_ids": rows})
        assert [sight.layer for sight in found[way]] == ["transformer.h.0.attn", "transformer.h.1.attn"]
    for fused, written in zip(found["sdpa"], found["eager"], strict=True):
        assert fused.entropies == pytest.approx(written.entropies, rel=1e-6)
        assert fused.largest_score == pytest.approx(written.largest_score, rel=1e-4)
        assert fused.ranks == pytest.approx(written.ranks, rel=1e-4)
