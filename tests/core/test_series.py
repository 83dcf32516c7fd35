"""A series has as many values as places."""

import pytest

from theodolite.core.series import CellPicture, Series


@pytest.mark.parametrize("field", ["stderr", "low", "high", "line"])
def test_lists_of_other_lengths_are_refused(field):
    assert Series((1.0, 2.0), (3.0, 4.0), **{field: (0.0, 0.0)})
    with pytest.raises(ValueError, match="lengths \\[1, 2\\]"):
        Series((1.0, 2.0), (3.0, 4.0), **{field: (0.0,)})


def test_a_picture_of_cells_is_a_series_with_polygons():
    made = CellPicture((1.0,), (2.0,), polygons=(((0.0, 0.0), (1.0, 0.0), (0.0, 1.0)),), groups=(3,))
    assert made.groups == (3,) and made.points == ()
