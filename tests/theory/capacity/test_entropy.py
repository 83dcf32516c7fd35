"""Numbers of points in a ball against volumes and against packings that were made; widths of linear maps by trial."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import gammaincc

from theodolite.theory.capacity import (
    contraction_bound,
    ellipsoid_stable_width,
    embedding_dimension,
    separated_points_bounds,
)


def ball(dimension, radius):
    return math.pi ** (dimension / 2) / math.gamma(dimension / 2 + 1) * radius**dimension


@pytest.mark.parametrize("dimension", [1, 2, 5])
@pytest.mark.parametrize("radius", [0.7, 1.0, 3.5])
def test_separated_points_are_bounded_by_volumes(dimension, radius):
    low, high = separated_points_bounds(dimension, radius)
    assert low == pytest.approx(ball(dimension, radius) / ball(dimension, 1.0))  # balls of radius 1 must cover
    assert high == pytest.approx(ball(dimension, radius + 0.5) / ball(dimension, 0.5))  # balls of radius 1/2 must fit


def test_on_a_line_the_upper_end_is_attained():
    for twice in (1, 4, 9):
        assert separated_points_bounds(1, twice / 2)[1] == twice + 1  # 0, 1, ..., 2R


def test_packings_that_cannot_be_added_to_lie_between():
    rng = np.random.default_rng(0)
    for radius in (1.0, 2.0, 3.0):
        grid = np.arange(-radius, radius + 0.02, 0.04)
        points = np.stack(np.meshgrid(grid, grid), -1).reshape(-1, 2)
        points = rng.permutation(points[(points**2).sum(1) <= radius**2])
        kept = []
        while len(points):
            kept.append(points[0])
            points = points[((points - points[0]) ** 2).sum(1) >= 1]
        low, high = separated_points_bounds(2, radius)
        assert low <= len(kept) <= high


@pytest.mark.parametrize("distortion", [1.5, 2.0, 4.0])
def test_the_embedding_dimension_is_the_least_that_the_union_bound_allows(distortion):
    """Pairs are k(k-1)/2, each fails with chance at most 2 exp(-m (d^2/2 - d^3/3) / 2): together below 1."""
    count, delta = 50, (distortion**2 - 1) / (distortion**2 + 1)
    assert math.sqrt((1 + delta) / (1 - delta)) == pytest.approx(distortion)

    def failing(m):
        return count**2 * math.exp(-m * (delta**2 / 2 - delta**3 / 3) / 2)

    m = embedding_dimension(count, distortion=distortion)
    assert failing(m) <= 1 < failing(m - 1)


def test_projections_of_a_simplex_shrink_some_pair_by_the_bound():
    corners, rng = np.eye(9), np.random.default_rng(0)
    for dimension in (1, 3, 8):
        bound = contraction_bound(9, dimension)
        assert bound == pytest.approx(math.sqrt(dimension / 8))
        for _ in range(20):
            basis, _ = np.linalg.qr(rng.standard_normal((9, dimension)))
            seen = corners @ basis
            ratios = [np.linalg.norm(seen[i] - seen[j]) / math.sqrt(2) for i in range(9) for j in range(i)]
            assert min(ratios) <= bound + 1e-12
    assert contraction_bound(5, 9) == 1.0


@pytest.mark.parametrize(("count", "distortion"), [(1000, 1.2), (10**6, 1.2), (10**6, 2.0), (10**9, 1.05)])
def test_in_the_embedding_dimension_one_distance_is_kept_and_hardly_fewer_would_do(count, distortion):
    """A Gaussian map's squared lengths are chi-squares: the least dimension in which one leaves its band in k^-2 of draws."""
    delta = (distortion**2 - 1) / (distortion**2 + 1)
    m = embedding_dimension(count, distortion=distortion)
    least = brentq(lambda free: math.log(gammaincc(free / 2, (1 + delta) * free / 2)) + 2 * math.log(count), 1.0, m)
    assert least <= m
    # what is given away: the bound's exponent for the chi-square's own, and its factor of 1/(delta sqrt(pi m))
    exponent = (delta - math.log1p(delta)) / (delta**2 / 2 - delta**3 / 3)
    factor = 1 - math.log(delta * math.sqrt(math.pi * least)) / (2 * math.log(count))
    assert m / least == pytest.approx(exponent / factor, rel=0.01)


def test_the_stable_width_of_an_ellipsoid_is_the_axis_left_out():
    axes = (0.5, 2.0, 1.0)
    assert [ellipsoid_stable_width(axes, dimension=n) for n in range(5)] == [2.0, 1.0, 0.5, 0.0, 0.0]
    for bad in ((), (1.0, -1.0)):
        with pytest.raises(ValueError, match="^expected half axes"):
            ellipsoid_stable_width(bad, dimension=1)
