"""On which side of an edge the largest eigenvalue lies, in few products and little memory."""

from types import SimpleNamespace

import pytest
import torch

from theodolite.measure.curvature import extreme_eigenpairs, largest_beside


class Matrix(SimpleNamespace):
    def __call__(self, vectors):
        return vectors @ self.dense


def matrix(size=300, seed=0):
    generator = torch.Generator().manual_seed(seed)
    basis = torch.linalg.qr(torch.randn(size, size, generator=generator, dtype=torch.float64))[0]
    values = torch.cat([torch.linspace(-1, 1, size - 3, dtype=torch.float64), torch.tensor([3.0, 6.0, 10.0]).double()])
    dense = (basis * values) @ basis.T
    return Matrix(size=size, like=dense[0], dense=(dense + dense.T) / 2)


@pytest.mark.parametrize(("edge", "above"), [(1.0, True), (5.0, True), (20.0, False), (100.0, False)])
def test_the_side_is_known_in_fewer_products_than_the_value(edge, above):
    for seed in range(5):
        found = largest_beside(matrix(seed=seed), edge, tolerance=1e-6)
        value, bound = found.values[0], found.residuals[0]
        assert found.converged and (value - bound > edge if above else value + bound < edge)
        assert found.products < extreme_eigenpairs(matrix(seed=seed), count=1, tolerance=1e-6).products


def test_next_to_the_edge_it_goes_on_until_the_value_is_known():
    found = largest_beside(matrix(), 10.0001, tolerance=1e-3)
    assert found.values[0] == pytest.approx(10, rel=1e-3) and found.errors[0] <= 1e-3 * 10


def test_a_basis_of_five_vectors_is_enough_and_a_start_saves_products():
    few = largest_beside(matrix(), tolerance=1e-8, most=400, memory=5 * 300 * 8)
    assert few.converged and few.values[0] == pytest.approx(10, rel=1e-8)
    again = largest_beside(matrix(), tolerance=1e-8, most=400, start=few.vectors[0], memory=5 * 300 * 8)
    assert again.products < few.products
    pairs = extreme_eigenpairs(matrix(), count=3, memory=7 * 300 * 8)
    assert pairs.values == pytest.approx((10.0, 6.0, 3.0), rel=1e-8)
