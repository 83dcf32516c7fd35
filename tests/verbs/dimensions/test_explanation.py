"""Why estimators of dimension differ, in sentences."""

import numpy as np
import pytest
import torch
from benchmarks.known_manifolds import benchmark_manifolds

import theodolite as th
from theodolite.construct.dimension import manifold

KNOWN_MANIFOLDS = benchmark_manifolds()


def test_near_duplicates_are_named():
    g = torch.Generator().manual_seed(0)
    x = manifold("ball", 400, 6, generator=g)
    pairs = torch.cat([x, x])
    pairs[400:, 0] += 1e-3 * torch.randn(400, generator=g)
    found = th.dimension(pairs, picture=False)
    assert any("near-duplicates" in sentence for sentence in found.words)
    assert 4.5 < found.best.value <= 6
    assert found.estimate("TwoNN").value < 1


def test_a_rise_across_scales_is_not_always_near_duplicates():
    t = np.random.default_rng(0).uniform(0, 40 * np.pi, 3000)
    found = th.dimension(np.stack([np.cos(t), np.sin(t), t / 40], 1), picture=False)
    assert max(estimate.value for estimate in found.curve) > 2
    assert found.best.value == pytest.approx(1, abs=0.1)
    assert any("bends back on itself" in sentence for sentence in found.words)


@pytest.mark.parametrize("name", ["wound circle", "helicoid", "curled 4", "swiss roll", "moebius band", "helix"])
def test_the_best_is_as_good_as_the_calibrated_one(name):
    known = KNOWN_MANIFOLDS[name]
    found = th.dimension(known.points(700, generator=torch.Generator().manual_seed(0)), picture=False)
    calibrated = found.estimate("TwoNN, calibrated")
    assert abs(found.best.value - known.dimension) <= abs(calibrated.value - known.dimension)


def test_noise_and_flatness_are_named():
    g = torch.Generator().manual_seed(0)
    x = torch.cat([manifold("torus", 600, 2, generator=g), torch.zeros(600, 6)], dim=1)
    noisy = th.dimension(x + 0.05 * torch.randn(x.shape, generator=g), picture=False)
    assert any("Noise does that" in sentence for sentence in noisy.words)
    assert any("nearly flat" in s for s in th.dimension(manifold("cube", 300, 3, generator=g), picture=False).words)
