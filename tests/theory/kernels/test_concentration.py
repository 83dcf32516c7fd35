"""Bounds on tails: equal to the optimized exponential moments that they come from, and above what is drawn."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import binom

from theodolite.theory.kernels import chebyshev_tail, matrix_bernstein_tail, matrix_chernoff_tail


@pytest.mark.parametrize("excess", [0.3, 1.0, 4.0])
@pytest.mark.parametrize(("mean", "bound"), [(2.0, 0.3), (1.0, 0.1)])
def test_chernoff_is_the_best_exponential_moment(excess, mean, bound):
    """inf over s of m exp(-s (1 + e) mu) exp(mu (e^(sR) - 1) / R): the steps of the proof, minimized by machine."""

    def log_bound(s):
        return -s * (1 + excess) * mean + mean * math.expm1(s * bound) / bound

    least = minimize_scalar(log_bound, bounds=(0, 40 / bound / 10), options={"xatol": 1e-12}).fun
    found = matrix_chernoff_tail(excess, mean=mean, bound=bound, side=3)
    assert found == pytest.approx(min(1.0, 3 * math.exp(least)), rel=1e-9)


@pytest.mark.parametrize("deviation", [0.5, 2.0, 9.0])
def test_bernstein_is_the_exponential_moment_at_the_proof_s_choice(deviation):
    """exp(-st + s^2 U / (2 (1 - Rs/3))) at s = t / (U + Rt/3)."""
    U, R = 0.7, 0.4
    s = deviation / (U + R * deviation / 3)
    proof = 5 * math.exp(-s * deviation + 0.5 * s * s * U / (1 - R * s / 3))
    assert matrix_bernstein_tail(deviation, variance=U, bound=R, dimensions=5) == pytest.approx(min(1.0, proof))


def test_tails_lie_above_sums_of_drawn_projections():
    """40 projections onto random axes of three dimensions: each entry of the sum is binomial."""
    draws = np.random.default_rng(0).multinomial(40, [1 / 3] * 3, size=20_000)
    largest, mean = draws.max(1), 40 / 3
    for excess in (0.5, 0.75, 1.0):
        seen = (largest >= (1 + excess) * mean).mean()
        assert 0 < seen <= matrix_chernoff_tail(excess, mean=mean, bound=1.0, side=3) < 1
    strayed = np.abs(draws - mean).max(1)  # of norm at most 2/3 each, variance 2/9 each
    for deviation in (8.0, 10.0):
        seen = (strayed >= deviation).mean()
        tail = matrix_bernstein_tail(deviation, variance=40 * 2 / 9, bound=2 / 3, dimensions=6)
        assert 0 < seen <= tail < 1


@pytest.mark.parametrize("deviations", [0.5, 1.0, 3.0])
def test_cantelli_is_attained_by_two_points(deviations):
    """1/k below the mean with probability p = k^2 / (1 + k^2), k above it with 1 - p: mean 0, variance 1."""
    chance = 1 / (1 + deviations**2)
    assert chance * deviations - (1 - chance) / deviations == pytest.approx(0.0)
    assert chance * deviations**2 + (1 - chance) / deviations**2 == pytest.approx(1.0)
    assert chebyshev_tail(deviations) == pytest.approx(chance)


@pytest.mark.parametrize(("mean", "level"), [(1.0, 1e-6), (0.3, 1e-8), (5.0, 1e-10)])
def test_rare_terms_stray_as_far_as_bernstein_allows_and_further_than_their_variance_would(mean, level):
    """Centered terms of 1 with chance mean/n: the sum counts them, and its tail is a binomial's, exactly."""
    terms = 100_000
    variance = mean * (1 - mean / terms)
    reached = binom.isf(level, terms, mean / terms) - mean

    def bound(t):
        return matrix_bernstein_tail(t, variance=variance, bound=1.0, dimensions=2)

    assert level < bound(reached) and bound(3 * reached) < level  # a bound, and not three times too wide
    assert 2 * math.exp(-(reached**2) / (2 * variance)) < 0.1 * level  # what the variance alone would say is wrong
