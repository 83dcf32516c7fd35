"""The noise scale from the gradients of two ranks beside the one from the gradients of single samples, on 20 draws."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from theodolite.measure.dynamics import noise_of_ranks

RANKS, BATCH, STEPS, DRAWS = 2, 16, 32, 20


def gradient(model, x, y):
    model.zero_grad()
    cross_entropy(model(x), y).backward()
    return torch.cat([p.grad.reshape(-1) for p in model.parameters()]).double()


def test_ranks_tell_the_noise_scale_of_single_samples():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 12), nn.Tanh(), nn.Linear(12, 3))
    x = torch.randn(256, 8)
    y = (x @ torch.randn(8, 3)).argmax(1)
    single = torch.stack([gradient(model, x[i : i + 1], y[i : i + 1]) for i in range(len(x))])
    signal = single.mean(0).square().sum()
    noise = (single - single.mean(0)).square().sum(1).mean()
    scale = float(noise / signal) / (RANKS * BATCH)  # in batches of a step, drawn with replacement
    draw = np.random.default_rng(0)
    apart, values = [], []
    for _ in range(DRAWS):
        squares, totals = [], []
        for _ in range(STEPS):
            own = torch.stack([single[draw.integers(0, len(x), BATCH)].mean(0) for _ in range(RANKS)])
            squares.append(own.square().sum(1).tolist())
            totals.append(float(own.mean(0).square().sum()))
        found = noise_of_ranks(squares, totals)
        assert found.ranks and found.scale is not None
        values.append(found.scale.value)
        apart.append((found.scale.value - scale) / found.scale.stderr)
    assert max(map(abs, apart)) < 3
    assert np.mean(values) == pytest.approx(scale, abs=3 * np.std(values) / DRAWS**0.5)
