"""Answers that are known: those of the matrices themselves, and what libraries make of them."""

import numpy as np
import pytest

from theodolite.measure import _known_answers as known


@pytest.mark.parametrize("size", [2, 7, 40])
def test_the_known_eigenvalues_are_known(size):
    matrix = known.second_differences(size)
    for value in known.known_eigenvalues(size):  # each makes the matrix less itself singular
        sign = np.linalg.slogdet(matrix - (value + 1e-9) * np.eye(size))[0]
        assert sign * np.linalg.slogdet(matrix - (value - 1e-9) * np.eye(size))[0] == -1


def test_the_libraries_here_know_them():
    assert set(known.product_errors().values()) == {0.0} and known.random_number_error() == 0.0
    assert max(*known.eigenvalue_errors().values(), *known.singular_value_errors().values()) < known.EIGENVALUES_OFF
    assert known.small_numbers_are_kept() and known.thread_error() < 1e-13
