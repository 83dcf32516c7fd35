import math

import pytest

from theodolite.core.reading import Band, Reading, Series
from theodolite.core.reading_table import reading_of, row_of


@pytest.mark.parametrize(
    ("measured", "stderr", "expected", "status"),
    [
        (1.0, 0.0, Band(0.9, 1.1), "agrees"),
        (1.0, 0.03, Band(0.9, 1.1), "agrees"),
        (1.0, 0.04, Band(0.9, 1.1), "inconclusive"),
        (1.3, 0.01, Band(0.9, 1.1), "above"),
        (0.7, 0.01, Band(0.9, 1.1), "below"),
        (1.12, 0.01, Band(0.9, 1.1), "inconclusive"),
        (1.0, 1e9, Band(0.9, 1.1), "inconclusive"),
        (1.0, math.inf, Band(0.9, 1.1), "inconclusive"),
        (19.0, 0.1, Band(high=20), "agrees"),
        (21.0, 0.1, Band(high=20), "above"),
        (-1.0, 0.0, Band(low=0), "below"),
        (1.1, 0.0, Band(0.9, 1.1), "agrees"),
        (math.nan, 0.0, Band(0.9, 1.1), "invalid"),
        (math.inf, 0.0, Band(0.9, 1.1), "invalid"),
        (1.0, math.nan, Band(0.9, 1.1), "invalid"),
        (1.0, -0.1, Band(0.9, 1.1), "invalid"),
        (math.nan, 0.0, None, "invalid"),
        (1.0, 0.0, None, "no reference"),
    ],
)
def test_status_is_by_intervals(measured, stderr, expected, status):
    assert Reading(quantity="q", measured=measured, stderr=stderr, expected=expected).status == status


def test_band_around_and_words():
    assert Band.around(-2.0, rel=0.5, abs=0.5) == Band(-3.5, -0.5)
    assert str(Band(high=2.0)) == "≤ 2"
    assert str(Band(low=0.5)) == "≥ 0.5"
    assert str(Band(1.0, 3.0)) == "1 … 3"
    assert str(Band.around(1.98305826, rel=1e-9)) == "1.98306"
    assert 2.0 in Band(1.0, 3.0)
    assert 4.0 not in Band(1.0, 3.0)
    assert Band(high=2.0).middle == 2.0


@pytest.mark.parametrize(("low", "high"), [(2.0, 1.0), (math.nan, 1.0), (0.0, math.nan)])
def test_a_band_has_its_ends_in_order(low, high):
    with pytest.raises(ValueError, match="expected a band"):
        Band(low, high)


def test_series_wants_equal_lengths():
    with pytest.raises(ValueError, match="expected as many values"):
        Series(x=(1.0, 2.0), measured=(1.0,))
    with pytest.raises(ValueError, match="expected as many values"):
        Series(x=(1.0, 2.0), measured=(1.0, 2.0), low=(1.0,))


@pytest.mark.parametrize(
    ("against", "status", "alarming"),
    [("law", "above", True), ("health", "above", True), ("chance", "not random", False)],
)
def test_what_leaving_a_band_is_depends_on_what_the_band_is(against, status, alarming):
    reading = Reading(quantity="q", measured=3.0, expected=Band(0, 1), against=against)
    assert (reading.status, reading.alarming) == (status, alarming)
    assert row_of(reading)["against"] == against
    assert reading_of(row_of(reading)).status == status
