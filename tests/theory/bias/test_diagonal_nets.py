"""Interpolants of least potential, norm and divergence: optimality, limits, brute force, and what is refused."""

import numpy as np
import pytest
from scipy.optimize import minimize

from theodolite.construct.dynamics import diagonal_slope, interpolation
from theodolite.measure.experiments import flow_limit
from theodolite.theory.bias import (
    least_divergence,
    least_l1_norm,
    least_potential,
    least_weighted_norm,
    potential,
    sinh_solution,
)

SCALES = [1e-8, 1e-6, 1e-4, 1e-2, 0.1, 1.0, 10.0, 100.0, 1e3]


@pytest.mark.parametrize("instance", range(4))
@pytest.mark.parametrize("scale", SCALES)
def test_least_potential_interpolates_and_is_stationary(instance, scale):
    x, y, shape = interpolation(instance)
    beta = least_potential(x, y, scale=scale, initial_shape=shape)
    np.testing.assert_allclose(x @ beta, y, atol=1e-12)
    slope = np.arcsinh(beta / (2 * (scale * shape) ** 2))  # must lie in the span of the samples
    inside = np.linalg.pinv(x) @ (x @ slope)
    shown = np.abs(beta) > 1e-10  # of smaller weights rounding decides the digits
    np.testing.assert_allclose(slope[shown], inside[shown], atol=1e-5 * np.abs(slope).max())


def test_least_potential_against_brute_force():
    x, y, shape = interpolation(2, samples=3, dimension=6)
    shape = shape[:6]
    null = np.linalg.svd(x)[2][3:]
    base = np.linalg.pinv(x) @ y
    found = minimize(
        lambda s: potential(base + s @ null, scale=0.5, initial_shape=shape),
        np.zeros(3),
        method="Nelder-Mead",
        options={"xatol": 1e-10, "fatol": 1e-14, "maxiter": 4000},
    )
    np.testing.assert_allclose(least_potential(x, y, scale=0.5, initial_shape=shape), base + found.x @ null, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-4, 1e-2, 1.0, 10.0])
def test_gradient_flow_ends_at_the_least_potential(scale):
    x, y, shape = interpolation(0)
    plus, minus = np.split(flow_limit(diagonal_slope(x, y), scale * np.concatenate([shape, shape])), 2)
    np.testing.assert_allclose(plus**2 - minus**2, least_potential(x, y, scale=scale, initial_shape=shape), atol=1e-6)


def test_limits_of_the_start():
    x, y, shape = interpolation(1)
    large = [
        np.abs(
            least_potential(x, y, scale=a, initial_shape=shape) - least_weighted_norm(x, y, initial_shape=shape)
        ).max()
        for a in (5, 10)
    ]
    assert large[0] / large[1] == pytest.approx(16, rel=0.02)
    least = np.abs(least_l1_norm(x, y)).sum()
    excess = [np.abs(least_potential(x, y, scale=a)).sum() / least - 1 for a in (1e-2, 1e-4, 1e-8)]
    assert 0.1 > excess[0] > excess[1] > excess[2] > 0
    assert potential(np.array([1.0, -2.0]), scale=1e-8) / np.log(1e16) == pytest.approx(3.0, rel=0.05)
    assert 1e6 * potential(np.array([1.0, -2.0]), scale=1e3) == pytest.approx(5 / 4, rel=1e-9)


def test_diagonal_network_is_the_divergence_of_its_halves():
    x, y, shape = interpolation(0)
    w = (0.2 * shape) ** 2
    halves = least_divergence(2 * np.hstack([x, -x]), y, start=np.concatenate([w, w]))
    np.testing.assert_allclose(
        halves[:10] - halves[10:], least_potential(x, y, scale=0.2, initial_shape=shape), atol=1e-10
    )


def test_redundant_samples_change_nothing():
    x, y, _ = interpolation(0)
    twice, again = np.vstack([x, x[:2]]), np.append(y, y[:2])
    np.testing.assert_allclose(least_potential(twice, again, scale=0.1), least_potential(x, y, scale=0.1), atol=1e-10)


def test_named_outcomes():
    x, y, _ = interpolation(0)
    contradicting = np.vstack([x, x[:1]]), np.append(y, y[0] + 1)
    for solve in (least_l1_norm, least_weighted_norm):
        with pytest.raises(ValueError, match="expected targets that a linear model can fit exactly"):
            solve(*contradicting)
    with pytest.raises(ValueError, match="expected targets that a linear model can fit exactly"):
        least_potential(*contradicting, scale=1.0)
    with pytest.raises(ValueError, match="expected finite"):
        least_potential(x * np.nan, y, scale=1.0)
    with pytest.raises(ValueError, match="some b >= 0 fits"):
        least_divergence(np.array([[1.0, 2.0]]), np.array([-1.0]), start=np.ones(2))
    with pytest.raises(ValueError, match="a part that is 0 stays 0"):
        least_divergence(np.array([[1.0, 2.0]]), np.array([1.0]), start=np.array([1.0, 0.0]))
    with pytest.raises(ValueError, match="expected features"):
        least_l1_norm(x, y[:2])
    assert np.isfinite(sinh_solution(np.array([1e6, -1e6]), scale=1e-3)).all()


@pytest.mark.parametrize(("x_scale", "y_scale"), [(1.0, 1e-7), (1e7, 1.0), (1e-12, 1e12), (1e30, 1e-30), (1e-30, 1e30)])
def test_the_least_l1_norm_scales_with_the_data(x_scale, y_scale):
    random = np.random.default_rng(0)
    x, y = random.standard_normal((3, 8)), random.standard_normal(3)
    one = least_l1_norm(x, y)
    assert np.count_nonzero(one) == 3
    assert least_l1_norm(x_scale * x, y_scale * y) * (x_scale / y_scale) == pytest.approx(one, rel=1e-6, abs=1e-9)
