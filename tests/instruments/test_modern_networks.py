"""Readings of a pre-norm transformer, a vision transformer and a residual network, whose layers do not just follow each other."""

import math

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import theodolite as th


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


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


class Residual(nn.Module):
    """Convolutions with batch normalization beside an identity."""

    def __init__(self, blocks=3, width=8):
        super().__init__()
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(width, width, 3, padding=1, bias=False),
                nn.BatchNorm2d(width),
                nn.ReLU(),
                nn.Conv2d(width, width, 3, padding=1, bias=False),
                nn.BatchNorm2d(width),
            )
            for _ in range(blocks)
        )
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        x = self.first(x).relu()
        for block in self.blocks:
            x = (x + block(x)).relu()
        return self.head(x.mean((2, 3)))


def pictures(count=40, side=16):
    x = torch.randn(count, 3, side, side, generator=seeded())
    return x, torch.arange(count) % 3


def made(kind):
    torch.manual_seed(0)
    return kind().eval()


@pytest.mark.parametrize("depth", [3, 12])
def test_a_normalized_path_passes_signals_whatever_its_depth(depth):
    torch.manual_seed(0)
    model = Vision(depth=depth).eval()
    readings = th.read("signal", model, data=pictures()[0])
    (gain,) = [reading for reading in readings if "relative gain of the whole network" in reading.quantity]
    assert 0.03 < gain.measured < 30
    norms = [r.measured for r in readings if r.quantity == "mean square of the signal"]
    assert min(norms) > 1e-4 and max(norms) < 1e4
    told = th.read("initialization", model, data=pictures()[0])
    assert not any("changes by a factor" in reading.meaning for reading in told)


@pytest.mark.parametrize("kind", [Vision, Residual])
def test_no_layer_behind_a_sum_or_a_normalization_is_held_to_a_band_of_plain_layers(kind):
    readings = th.read("signal", made(kind), data=pictures()[0])
    plain = {"blocks.0.0"} | {
        f"blocks.layers.{place}.linear2" for place in range(6)
    }  # each behind one activation alone
    for reading in readings:
        if reading.where not in plain:
            assert reading.expected is None, reading


@pytest.mark.parametrize("kind", [Vision, Residual])
@pytest.mark.parametrize("count", [40, 64])
def test_no_dimension_is_above_the_rank(kind, count):
    readings = th.read("feature-dimension", made(kind), data=pictures(count)[0])
    assert readings
    for reading in readings:
        assert reading.expected is not None
        assert 0 < reading.measured <= reading.expected.high <= count


def test_of_a_flat_plane_the_dimension_is_at_most_two():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 30), nn.Linear(30, 30), nn.Linear(30, 2))
    x = torch.randn(200, 2, generator=seeded())
    for reading in th.read("feature-dimension", model, data=x):
        assert reading.measured <= 2.0 == reading.expected.high


def test_a_convolution_is_read_per_position():
    """The same picture twice as large, each pixel four times: mean squares behind a pointwise layer stay what they were."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 1), nn.ReLU(), nn.Conv2d(8, 8, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    x = pictures(side=8)[0]
    small, large = (
        th.read("signal", model, data=data) for data in (x, x.repeat_interleave(2, 2).repeat_interleave(2, 3))
    )
    for one, other in zip(small, large, strict=True):
        assert one.measured == pytest.approx(other.measured, rel=1e-4)
    ranks = [
        th.read("feature-spectrum", model, data=data) for data in (x, x.repeat_interleave(2, 2).repeat_interleave(2, 3))
    ]
    for one, other in zip(*ranks, strict=True):
        assert one.measured == pytest.approx(other.measured, rel=1e-3)


@pytest.mark.parametrize("lr", [0.05, 0.5])
def test_a_loss_that_falls_to_nothing_falls_by_at_most_all_of_it(lr):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    x = torch.randn(64, 4, generator=seeded())
    (trend, *_) = th.read("stationarity", model, data=(x, (x[:, 0] > 0).long()), loss=cross_entropy, lr=lr)
    assert -1 <= trend.measured < 0
    assert math.isfinite(trend.stderr)


def test_batches_of_a_normalized_network_are_those_of_training_where_a_step_is_meant():
    """Running statistics far from the batch's own: curvature and noise are those of a step, not of evaluation mode."""
    model, (x, y) = made(Residual), pictures()
    curved = th.read("sharpness", model, data=(x, y), loss=cross_entropy, lr=0.1)[0].measured
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_var.fill_(1e4)
    assert th.read("sharpness", model, data=(x, y), loss=cross_entropy, lr=0.1)[0].measured == pytest.approx(
        curved, rel=1e-3
    )
