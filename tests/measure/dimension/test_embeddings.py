"""Embeddings of graphs: against spectra that are known in closed form."""

import math

import numpy as np
import pytest

from theodolite.measure.dimension import laplacian_eigenmaps


@pytest.mark.parametrize("points", [4, 30])
def test_a_path_has_the_spectrum_of_a_reflecting_random_walk(points):
    W = np.eye(points, k=1) + np.eye(points, k=-1)
    found = laplacian_eigenmaps(W).eigenvalues
    expected = [1 - math.cos(math.pi * k / (points - 1)) for k in range(points)]  # 0, 1/2, 3/2, 2 for four
    np.testing.assert_allclose(found, expected[: len(found)], atol=1e-12)


def test_a_closed_path_has_the_spectrum_of_a_circle():
    W = np.eye(6, k=1) + np.eye(6, k=-1)
    W[0, -1] = W[-1, 0] = 1.0
    found = laplacian_eigenmaps(W).eigenvalues
    np.testing.assert_allclose(found, [0.0, 0.5, 0.5, 1.5, 1.5, 2.0][: len(found)], atol=1e-12)
