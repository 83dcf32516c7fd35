"""Batch moments by enumeration, stationary moments by chains, the circle by walking."""

import numpy as np
import pytest

from theodolite.measure.experiments import enumerated_batches
from theodolite.theory.dynamics import (
    batch_covariance,
    batch_shares,
    circle_mass,
    entropic_drift,
    quadratic_covariance,
    stationary_regression,
    valley_fluctuation,
)

SAMPLERS = ["independent", "without replacement", "with replacement"]


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("batch", [1, 3, 5])
def test_batch_moments_are_those_of_every_batch(sampler, batch):
    g = 1 + np.random.default_rng(0).normal(size=(5, 3))
    weights, chances = enumerated_batches(5, batch, sampler)
    assert chances.sum() == pytest.approx(1.0)
    drawn = weights @ g
    np.testing.assert_allclose(chances @ drawn, g.mean(0), atol=1e-14)
    centered = drawn - g.mean(0)
    np.testing.assert_allclose(
        batch_covariance(g, batch_size=batch, sampler=sampler), (centered.T * chances) @ centered, atol=1e-14
    )


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("lr", [0.05, 0.2])
def test_pull_equals_noise_and_a_step_keeps_the_moments(sampler, lr):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(6, 2)), rng.normal(size=6)
    rest = stationary_regression(x, y, lr=lr, batch_size=2, sampler=sampler)
    assert rest.pull == pytest.approx(rest.dissipation, rel=1e-12)
    weights, chances = enumerated_batches(6, 2, sampler)
    moved = np.zeros((2, 2))
    for weight, chance in zip(weights, chances, strict=True):
        turn, push = np.eye(2) - lr * (x.T * weight) @ x, lr * (x.T * weight) @ (x @ rest.mean - y)
        moved += chance * (turn @ rest.covariance @ turn.T + np.outer(push, push))
    np.testing.assert_allclose(moved, rest.covariance, rtol=1e-10)


def test_lyapunov_equation():
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(2, 4, 4))
    H, C = a @ a.T + np.eye(4), b @ b.T
    lr = 1.5 / np.linalg.eigvalsh(H)[-1]
    S = quadratic_covariance(H, C, lr=lr)
    np.testing.assert_allclose(H @ S + S @ H - lr * H @ S @ H, lr * C, atol=1e-12)
    np.testing.assert_allclose(
        valley_fluctuation(4.0, lr=0.05, noise_to_curvature=0.3),
        quadratic_covariance(np.eye(1) * 4.0, np.eye(1) * 1.2, lr=0.05)[0, 0],
    )


@pytest.mark.parametrize(("noise", "quiet"), [("signs", 4 / 5), ("Gaussian", 4 / 5)])
def test_walk_on_a_circle_spends_four_fifths_where_it_steps_less(noise, quiet):
    rng = np.random.default_rng(3)
    angle, seen = rng.uniform(0, 2 * np.pi, size=4000), []
    for step in range(9000):
        sizes = np.where(angle < np.pi, 0.05, 0.1)
        xi = rng.choice([-1.0, 1.0], size=4000) if noise == "signs" else rng.normal(size=4000)
        angle = (angle + sizes * xi) % (2 * np.pi)
        if step >= 6000 and step % 100 == 0:
            seen.append((angle < np.pi).mean())
    assert np.mean(seen) == pytest.approx(quiet, abs=0.02)  # the steps' length is 1/60 of half the circle


def test_small_and_large_circles():
    assert circle_mass(42) == circle_mass(40)
    assert circle_mass(2000) == pytest.approx(0.79968, abs=1e-5)
    with pytest.raises(ValueError, match="even number"):
        circle_mass(9)


def test_bad_input_is_answered_in_one_line():
    x, y = np.random.default_rng(0).normal(size=(6, 2)), np.ones(6)
    with pytest.raises(ValueError, match="expected a batch of 1 to 6"):
        stationary_regression(x, y, lr=0.1, batch_size=7, sampler="with replacement")
    with pytest.raises(ValueError, match="expected a sampler"):
        batch_shares(4, 2, "shuffled")
    with pytest.raises(ValueError, match="second moments stay finite"):
        stationary_regression(x, y, lr=50.0, batch_size=1, sampler="with replacement")
    with pytest.raises(ValueError, match="expected curvatures between"):
        quadratic_covariance(np.eye(2), np.eye(2), lr=2.5)
    with pytest.raises(ValueError, match="below 2/curvature"):
        valley_fluctuation(6.0, lr=0.5, noise_to_curvature=0.1)
    assert entropic_drift(np.zeros(2), lr=0.1, noise_to_curvature=1.0) == 0


@pytest.mark.parametrize("sampler", ["without replacement", "with replacement"])
def test_a_mean_of_many_spreads_does_not_cancel_the_covariance(sampler):
    g = np.random.default_rng(0).integers(-8, 9, (16, 3)).astype(float)
    near = batch_covariance(g, batch_size=4, sampler=sampler)
    assert batch_covariance(g + 2.0**27, batch_size=4, sampler=sampler) == pytest.approx(near, rel=1e-12)
