import math

import numpy as np
import pytest

from theodolite.theory import Mlp
from theodolite.theory.propagation import (
    dead_network_probability,
    edgeworth_distance,
    excess_kurtosis,
    first_covariance,
    leaky_relu_second_moment,
    variance_biases,
    variance_vertices,
)


@pytest.mark.parametrize(
    ("spec", "vertex", "bias"),
    [
        (("tanh", 1.0, 0.0), 0.05421, -0.0504),
        (("tanh", 1.5, 0.05), 0.20836, -0.0820),
        (("erf", 1.2, 0.1), 0.16760, -0.0617),
        (("relu", 2.0, 0.0), 146.484375, 0.0),
    ],
)
def test_fluctuations_and_bias(spec, vertex, bias):
    mlp = Mlp(3, *spec)
    K = first_covariance(mlp, (1, 2, -1, 0.5), (1, 2, -1, 0.5))[0]
    assert variance_vertices(mlp, K)[-1] == pytest.approx(vertex, abs=6e-6)
    assert variance_biases(mlp, K)[-1] == pytest.approx(bias, abs=6e-5)


def test_vertex_of_relu_is_the_exact_law_to_first_order():
    n = 10**7
    exact = n * (leaky_relu_second_moment(0.2, width=n, hidden_layers=5) - 1)
    mlp = Mlp(5, lambda z: 0.6 * z + 0.4 * z.abs(), 2 / 1.04)
    assert variance_vertices(mlp, 1.0)[-1] == pytest.approx(exact, rel=1e-5)


def test_exact_moments():
    assert leaky_relu_second_moment(0.0, width=16, hidden_layers=3) == pytest.approx((1 + 5 / 16) ** 3)
    assert leaky_relu_second_moment(1.0, width=16, hidden_layers=3) == pytest.approx((1 + 2 / 16) ** 3)
    assert dead_network_probability(width=4, hidden_layers=5) == pytest.approx(1 - (15 / 16) ** 5)
    assert dead_network_probability(width=0, hidden_layers=5) == 1.0


def test_edgeworth_distance_is_the_largest_term():
    z = np.linspace(0, 4, 40_001)
    largest = np.max(np.abs(z**3 - 3 * z) * np.exp(-(z**2) / 2)) / math.sqrt(2 * math.pi) / 24
    assert edgeworth_distance(1.0) == pytest.approx(largest, rel=1e-8)
    assert excess_kurtosis(1.5) == 1.5
