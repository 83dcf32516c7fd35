"""Gram matrices on the sphere against closed forms, and the two bounds against eigenvalues of explicit Hadamard powers."""

import math

import numpy as np
import pytest

from theodolite.theory.kernels import hermite_coefficients, smallest_eigenvalue_bounds, sphere_gram

COSINES = (-0.7, -0.3, 0.0, 0.45, 0.7)


def pair(cosine):
    return np.array([[1.0, 0.0], [cosine, math.sqrt(1 - cosine**2)]])


def evenly(cosine, points):
    """Unit rows of one common inner product."""
    return np.linalg.cholesky(cosine * np.ones((points, points)) + (1 - cosine) * np.eye(points))


@pytest.mark.parametrize("cosine", COSINES)
def test_relu_is_the_arc_cosine_kernel_on_both_sides_of_a_right_angle(cosine):
    gram = sphere_gram("relu", pair(cosine))
    angle = math.acos(cosine)
    expected = (math.sin(angle) + (math.pi - angle) * cosine) / (2 * math.pi)
    assert gram[0, 1] == gram[1, 0] == pytest.approx(expected, abs=1e-10)
    assert np.diag(gram) == pytest.approx([0.5, 0.5], abs=1e-12)


@pytest.mark.parametrize("cosine", COSINES)
def test_erf_is_the_arc_sine_kernel_and_odd_in_the_cosine(cosine):
    gram = sphere_gram("erf", pair(cosine))
    assert gram[0, 1] == pytest.approx(2 / math.pi * math.asin(2 * cosine / 3), abs=1e-10)
    assert gram[0, 0] == pytest.approx(2 / math.pi * math.asin(2 / 3), abs=1e-10)


@pytest.mark.parametrize("points", [3, 5])
def test_both_bounds_are_attained_term_by_term_at_even_negative_cosines(points):
    """There odd powers are (1 + d^k) 1 - d^k J, of least eigenvalue 1 - (m - 1) d^k; an odd activation has no others."""
    delta = 0.8 / (points - 1)
    x = evenly(-delta, points)
    squares = hermite_coefficients("erf", order=60) ** 2
    odd = [(k, squares[k]) for k in range(1, 61, 2)]
    schur, single = smallest_eigenvalue_bounds("erf", x)
    assert schur == pytest.approx(sum(s * (1 - (points - 1) * delta**k) for k, s in odd), rel=1e-9)
    assert single == pytest.approx(max(s * (1 - (points - 1) * delta**k) for k, s in odd), rel=1e-9)
    truth = np.linalg.eigvalsh(sphere_gram("erf", x))[0]
    assert truth == pytest.approx(schur, rel=1e-9)  # all terms have this eigenvector
    assert single < truth


def test_bounds_of_any_points_by_explicit_powers():
    x = np.random.default_rng(1).standard_normal((4, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    squares = hermite_coefficients("relu", order=60) ** 2
    delta = max(abs(x[i] @ x[j]) for i in range(4) for j in range(i))
    least = []
    for k in range(61):
        power = np.array([[math.prod([float(a @ b)] * k) for b in x] for a in x])
        least.append(max(0.0, float(np.linalg.eigvalsh(power)[0])))
    schur, single = smallest_eigenvalue_bounds("relu", x)
    assert schur == pytest.approx(sum(s * value for s, value in zip(squares, least, strict=True)), rel=1e-7)
    assert single == pytest.approx(max(s * (1 - 3 * delta**k) for k, s in enumerate(squares)), rel=1e-9)
    assert single < schur < np.linalg.eigvalsh(sphere_gram("relu", x))[0]


def test_the_mean_alone_is_order_zero():
    assert hermite_coefficients("relu", order=0).tolist() == pytest.approx([1 / math.sqrt(2 * math.pi)], rel=1e-12)
