"""ESS and DANCo against brute force, integrals and manifolds of known dimension."""

import math
from itertools import combinations

import numpy as np
import pytest
import torch
from benchmarks.known_manifolds import benchmark_manifolds
from scipy.integrate import quad
from scipy.stats import vonmises

from theodolite.construct.dimension import manifold
from theodolite.measure import dimension as measure
from theodolite.measure.dimension import by_angles

KNOWN_MANIFOLDS = benchmark_manifolds()


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("d", [2, 3, 7, 30])
def test_the_expected_sine_is_that_of_random_directions(d):
    mean = quad(lambda t: math.sin(t) ** (d - 1), 0, math.pi)[0] / quad(lambda t: math.sin(t) ** (d - 2), 0, math.pi)[0]
    assert by_angles._expected_sine(d) == pytest.approx(mean, rel=1e-9)


def test_skewness_is_the_share_of_areas():
    x = manifold("ball", 60, 4, generator=generator()).numpy()
    shares = []
    for row in x:
        near = x[np.argsort(((x - row) ** 2).sum(1))[:11]]
        v = near - near.mean(0)
        pairs = list(combinations(v, 2))
        areas = [math.sqrt((a @ a) * (b @ b) - (a @ b) ** 2) for a, b in pairs]
        shares.append(sum(areas) / sum(np.linalg.norm(a) * np.linalg.norm(b) for a, b in pairs))
    value = measure.dimension_ess(x, neighbors=10).value
    assert by_angles._expected_sine(value) == pytest.approx(np.mean(shares), rel=1e-9)


def test_the_divergence_is_the_integral_of_both_laws():
    k, (d, nu, tau), (e, mu, kappa) = 10, (4.2, 1.3, 2.5), (5.1, 1.5, 3.0)

    def density(rho, d):
        return k * d * rho ** (d - 1) * (1 - rho**d) ** (k - 1)

    norms = quad(lambda r: density(r, d) * math.log(density(r, d) / density(r, e)), 0, 1)[0]
    one, other = vonmises(tau, loc=nu), vonmises(kappa, loc=mu)
    angles = quad(lambda t: one.pdf(t) * (one.logpdf(t) - other.logpdf(t)), -math.pi, math.pi)[0]
    assert by_angles._divergence((d, nu, tau), (e, mu, kappa), k) == pytest.approx(norms + angles, rel=1e-6)
    assert by_angles._divergence((d, nu, tau), (d, nu, tau), k) == pytest.approx(0, abs=1e-9)


def test_the_three_numbers_are_those_of_their_likelihoods():
    graph = measure.nearest_neighbors(manifold("ball", 200, 3, generator=generator()), 11)
    ratios, angles = by_angles._concentration(graph, 10)
    d, nu, tau = by_angles._summary(ratios, angles, 10)
    logs = np.log(ratios)
    losses = [
        -(np.log(v) + (v - 1) * logs.mean() + 9 * np.log1p(-np.exp(v * logs)).mean()) for v in (0.999 * d, d, 1.001 * d)
    ]
    assert losses[1] < min(losses[0], losses[2])
    points = graph.rows.points.numpy()
    fits = []
    for row in range(20):
        v = points[graph.indices[row, :10]] - points[row]
        v /= np.linalg.norm(v, axis=1)[:, None]
        fits.append(vonmises.fit([math.acos(a @ b) for a, b in combinations(v, 2)], fscale=1)[:2])
    assert angles.taus[:20] == pytest.approx([kappa for kappa, _ in fits], rel=1e-3)
    assert angles.directions[:20] == pytest.approx([place for _, place in fits], rel=1e-6)
    assert (nu, tau) == pytest.approx((angles.directions.mean(), angles.taus.mean()))


@pytest.mark.parametrize("name", ["affine 3", "s curve", "cube 20", "crossed 18"])
def test_known_manifolds(name):
    known = KNOWN_MANIFOLDS[name]
    x = known.points(1000, generator=generator())
    for estimator in (measure.dimension_ess, measure.dimension_danco):
        assert estimator(x).value == pytest.approx(known.dimension, rel=0.05)


@pytest.mark.parametrize("d", [1, 2, 5, 10, 20])
def test_danco_reads_balls_within_its_errors(d):
    found = measure.dimension_danco(manifold("ball", 800, d, generator=generator(1)))
    assert abs(found.value - d) < 4 * found.stderr + 0.02 * d


def test_errors_are_of_the_size_of_the_spread():
    for estimator in (measure.dimension_ess, measure.dimension_danco):
        found = [estimator(manifold("sphere", 400, 3, generator=generator(s))) for s in range(12)]
        spread = np.std([e.value for e in found], ddof=1)
        assert 0.4 < np.mean([e.stderr for e in found]) / spread < 2.5


def test_few_neighbors_are_refused():
    for estimator in (measure.dimension_ess, measure.dimension_danco):
        with pytest.raises(ValueError, match="^expected"):
            estimator(np.random.default_rng(0).normal(size=(8, 3)), neighbors=1)
