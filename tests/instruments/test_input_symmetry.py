"""The symmetry of the input is measured on networks of which it is known."""

import pytest
import torch
from torch import nn

import theodolite as th


class Skip(nn.Module):
    """The inputs also go round the first layer, feature by feature."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(12, 12), nn.Linear(12, 3)

    def forward(self, x):
        return self.last(torch.tanh(self.first(x)) + x)


class Gated(nn.Module):
    """Two layers see the same inputs: both turn."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.last = nn.Linear(12, 8), nn.Linear(12, 8), nn.Linear(8, 3)

    def forward(self, x):
        return self.last(torch.sigmoid(self.a(x)) * self.b(x))


class Scaled(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.norm, self.first = norm, nn.Linear(12, 3)

    def forward(self, x):
        return self.first(self.norm(x))


INPUTS = torch.randn(6, 12, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("model", "symmetric"),
    [
        (nn.Sequential(nn.Linear(12, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 3)), True),
        (Gated(), True),
        (Scaled(lambda x: x / x.norm(dim=1, keepdim=True)), True),
        (Scaled(lambda x: (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True)), False),
        (Scaled(lambda x: x.clamp(-0.5, 0.5)), False),
        (Skip(), False),
        (nn.Sequential(nn.Flatten(), nn.Linear(12, 3)), True),
    ],
)
def test_structures(model, symmetric):
    x = INPUTS.reshape(6, 3, 4) if isinstance(model, nn.Sequential) and isinstance(model[0], nn.Flatten) else INPUTS
    gap, *cost = th.read("input-symmetry", model, data=x)
    assert (gap.status == "agrees") is symmetric
    assert bool(cost) is symmetric
    if cost:
        assert cost[0].measured == 0.5  # 6 of 12
        assert "Spindly" in cost[0].meaning


def test_convolutions_and_normalized_inputs_know_places():
    conv = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Linear(4 * 4 * 4, 2))
    (only,) = th.read("input-symmetry", conv, data=torch.randn(5, 1, 6, 6, generator=torch.Generator().manual_seed(0)))
    assert only.expected is None and "uses their position" in only.meaning
    norm = nn.Sequential(nn.BatchNorm1d(12), nn.Linear(12, 2))
    squares = nn.Sequential(th.nn.spindly(nn.Linear(12, 8)), nn.ReLU(), nn.Linear(8, 2))
    for model in (norm, squares, nn.Sequential(th.nn.Spindly(12, 2))):
        (only,) = th.read("input-symmetry", model, data=INPUTS)
        assert only.expected is None


def test_half_precision_and_enough_examples():
    model = nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 3)).to(torch.bfloat16)
    x = torch.randn(40, 12, generator=torch.Generator().manual_seed(0))
    gap, cost = th.read("input-symmetry", model, data=x)
    assert gap.status == "agrees"
    assert cost.measured == 0.0


def test_tokens_are_skipped_with_a_reason():
    model = nn.Sequential(nn.Embedding(10, 4), nn.Flatten(), nn.Linear(12, 2))
    result = th.survey(model, data=torch.randint(10, (5, 3), generator=torch.Generator().manual_seed(0)))
    assert "input-symmetry" in {skip.instrument for skip in result.skipped}
