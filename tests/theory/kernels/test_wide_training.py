"""Exact moments, tails, Hermite series and Mercer eigenvalues against quadrature and Monte Carlo."""

import math

import numpy as np
import pytest
import torch

from theodolite.theory import Activation, Mlp
from theodolite.theory.kernels import (
    brownian_eigenvalue,
    certified_width,
    chebyshev_tail,
    decay_factor,
    gaussian_eigenvalue,
    hermite_coefficients,
    independent_gates_cosine,
    kernel_change_bound,
    matrix_bernstein_tail,
    matrix_chernoff_tail,
    mlp_kernels,
    relu_ntk_cosine,
    relu_ntk_second_moment,
    smallest_eigenvalue_bounds,
    sphere_gram,
    sphere_gram_rank,
    weight_movement_bound,
)


def test_the_second_moment_of_equal_layers_is_bounded_by_the_exponential():
    for widths in ([16], [16, 16], [64] * 6):
        exact = relu_ntk_second_moment(widths)
        assert 1 < exact < math.exp(5 * sum(1 / n for n in widths))
    assert relu_ntk_second_moment([8, 8]) == pytest.approx(2.00174, abs=1e-5)


@pytest.mark.parametrize("gamma", [0.5, 1.0, 3.0])
def test_the_second_moment_tends_to_the_continuum(gamma):
    """Between two layers p' = p + 4q, q' = 2p + 3q per 1/n: eigenvalues 5 and -1, weights 1/3 and 2/3."""
    depth = 400
    exact = relu_ntk_second_moment([round(5 * depth / gamma)] * depth)
    u = (np.arange(20_000) + 0.5) / 20_000
    between = np.exp(gamma * (1 - u)) / 3 + 2 / 3 * np.exp(-gamma * (1 - u) / 5)
    assert exact == pytest.approx((2 * u * np.exp(gamma * u) * between).mean(), rel=0.02)


def test_the_cosine_recursion_is_that_of_the_kernels():
    for cosine in (-0.7, 0.0, 0.5, 0.999):
        x = torch.tensor([[1.0, 0.0], [cosine, math.sqrt(1 - cosine**2)]], dtype=torch.float64)
        kernel = mlp_kernels(Mlp(4, "relu", 2.0), x).ntk[0, 1].item()
        assert relu_ntk_cosine(cosine, hidden_layers=4) == pytest.approx(kernel, rel=1e-10)


@pytest.mark.parametrize("name", ["relu", "tanh", "gelu", "sin", "softplus"])
def test_hermite_series_equal_covariances(name):
    squares = hermite_coefficients(name, order=80) ** 2
    for cosine in (-0.6, 0.0, 0.4):
        series = sum(s * cosine**j for j, s in enumerate(squares))
        assert series == pytest.approx(Activation(name).covariance(1.0, 1.0, cosine), abs=1e-9)


def test_relu_coefficients_are_known():
    expected = [1 / math.sqrt(2 * math.pi), 0.5, 1 / math.sqrt(4 * math.pi), 0.0, -0.08143375, 0.0, 0.0446031]
    assert hermite_coefficients("relu", order=6) == pytest.approx(expected, abs=1e-7)


def test_gram_matrices_and_their_bounds():
    x = np.random.default_rng(0).standard_normal((5, 8))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    gram = sphere_gram("tanh", x)
    assert gram[0, 1] == pytest.approx(Activation("tanh").covariance(1.0, 1.0, float(x[0] @ x[1])), abs=1e-9)
    schur, single = smallest_eigenvalue_bounds("tanh", x)
    assert np.linalg.eigvalsh(gram)[0] >= schur >= single > -1
    assert sphere_gram_rank(torch.square, x) == 5
    assert sphere_gram_rank("relu", np.concatenate([x, -x])) == 10


def test_tails_are_at_most_one_and_fall():
    for tail in (
        lambda t: matrix_bernstein_tail(t, variance=0.1, bound=0.1, dimensions=6),
        lambda t: matrix_chernoff_tail(t, mean=1.0, bound=0.05, side=4),
        chebyshev_tail,
    ):
        values = [tail(t) for t in (0.0, 0.5, 1.0, 2.0)]
        assert values[0] == 1.0
        assert values == sorted(values, reverse=True)


def test_the_certified_width_meets_both_lemmas():
    n = certified_width(0.5, smallest=0.2, samples=4)
    moved = weight_movement_bound(0.5, smallest=0.2, samples=4, width=round(n))
    assert moved == pytest.approx(0.2 / 16, rel=1e-6)
    assert kernel_change_bound(moved, samples=4) == pytest.approx(0.1, rel=1e-6)


def test_eigenvalues_add_up_to_the_trace():
    assert sum(gaussian_eigenvalue(j, scale=0.7) for j in range(1, 200)) == pytest.approx(1.0)
    assert sum(brownian_eigenvalue(j) for j in range(1, 200_000)) == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize("samples", [1, 4])
@pytest.mark.parametrize("movement", [0.01, 0.2])
def test_the_bound_on_the_change_of_a_kernel_is_met_by_its_worst_case(samples, movement):
    """All inputs one point, all slopes z at z = 1 - Delta, curvature 1: the kernel grows by m (2 Delta - Delta^2)."""
    x = np.tile([[1.0, 0.0]], (samples, 1))
    w = np.tile([[1.0 - movement, 0.3]], (50, 1))

    def kernel(weights):
        slopes = np.clip(weights @ x.T, -1, 1)
        return (x @ x.T) * (slopes.T @ slopes) / len(weights)

    change = np.linalg.norm(kernel(w + np.array([[movement, 0.0]])) - kernel(w), 2)
    assert change == pytest.approx(kernel_change_bound(movement, samples=samples) * (1 - movement / 2), rel=1e-12)


def test_decay_of_many_small_steps_is_the_exponential():
    assert decay_factor(1e-12, eigenvalue=1.0, steps=10**12) == pytest.approx(math.exp(-2 * (1 + 0.5e-12)), rel=1e-13)
    assert decay_factor(0.25, eigenvalue=1.0, steps=3) == pytest.approx(0.75**6, rel=1e-15)
    assert decay_factor(3.0, eigenvalue=1.0, steps=2) == 16.0
    assert decay_factor(0.0, eigenvalue=1.0, steps=7) == 1.0


def test_independent_gates_of_two_layers_by_hand():
    second = (math.sin(math.pi / 3) + 0.5 * 2 * math.pi / 3) / math.pi  # the cosine behind one layer, from 60 degrees
    both = 2 / 3 * (1 - math.acos(second) / math.pi)
    assert independent_gates_cosine(0.5, hidden_layers=2) == pytest.approx(3 * 0.5 * both, rel=1e-12)
