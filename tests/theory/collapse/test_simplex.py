"""The simplex of collapsed class means against its definition."""

import numpy as np
import pytest

from theodolite.theory.collapse import simplex_corners, simplex_cosine


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_corners_are_unit_vectors_that_sum_to_zero_with_one_cosine(classes):
    corners = simplex_corners(classes)
    wanted = np.full((classes, classes), simplex_cosine(classes))
    np.fill_diagonal(wanted, 1.0)
    assert corners @ corners.T == pytest.approx(wanted, abs=1e-12)
    assert corners.sum(0) == pytest.approx(np.zeros(classes), abs=1e-12)


def test_two_classes_are_opposite_and_one_is_refused():
    assert simplex_cosine(2) == -1.0
    with pytest.raises(ValueError, match="^expected classes to be a whole number of at least 2"):
        simplex_cosine(1)
