"""A search for eigenvalues under an autocast: the products may be rounded, the basis is not."""

from types import SimpleNamespace

import pytest
import torch

from theodolite.measure.curvature import extreme_eigenpairs


class Diagonal(SimpleNamespace):
    """A diagonal matrix by its products."""

    def __call__(self, v):
        return v * self.like


def test_an_autocast_around_the_search_does_not_round_the_basis():
    matrix = Diagonal(size=400, like=torch.linspace(0, 1, 400).square())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = extreme_eigenpairs(matrix, count=2)
    assert found.values == pytest.approx(matrix.like[[-1, -2]].tolist(), rel=1e-5)
    assert found.vectors.dtype == torch.float32
