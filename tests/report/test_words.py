"""Numbers with sensible digits, expectations, names cut to a length."""

import math

import pytest

from theodolite.core.reading import Band, Reading
from theodolite.report.words import expectation, number, printable, shortened, source_entries, worst_reading


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (3.56158, 0.00123, "3.5616 ± 0.0012"),
        (3.56155281, 0.0, "3.56155"),
        (12.0, 0.0, "12"),
        (-0.0, 0.0, "0"),
        (-0.001, 0.02, "−0.001 ± 0.020"),
        (-1e-9, 0.5, "0.00 ± 0.50"),
        (1234.5678, 12.3, "1235 ± 12"),
        (0.99996, 0.00999, "1.000 ± 0.010"),
        (2.5e-8, 3e-9, "(2.50 ± 0.30)×10⁻⁸"),
        (3.1e7, 2e5, "(3.100 ± 0.020)×10⁷"),
        (1e-12, 0.0, "1×10⁻¹²"),
        (1.0, 1e-15, "1 ± 1×10⁻¹⁵"),
        (0.0, 0.25, "0.00 ± 0.25"),
        (math.nan, 0.1, "not a number"),
        (-math.inf, 0.1, "−∞"),
        (1.5, math.nan, "1.5 ± ?"),
        (1.5, math.inf, "1.5 ± ∞"),
        (1.5, -1.0, "1.5 ± ?"),
    ],
)
def test_number(value, error, text):
    assert number(value, error) == text


def test_worst_reading_prefers_trouble():
    calm = Reading(quantity="q", measured=1.0, expected=Band(0, 2))
    edge = Reading(quantity="q", measured=2.0, stderr=0.1, expected=Band(0, 2))
    far, near = (Reading(quantity="q", measured=value, expected=Band(0, 2)) for value in (9.0, 3.0))
    lost = Reading(quantity="q", measured=math.nan, expected=Band(0, 2))
    assert worst_reading([calm, edge]) is edge
    assert worst_reading([near, far, edge]) is far
    assert worst_reading([far, lost]) is lost
    assert worst_reading([]) is None


def test_words():
    assert expectation(None) == "–"
    assert expectation(Band(high=1e-9)) == "≤ 1×10⁻⁹"
    assert printable("a\u202eb\ud800\n") == "a�b�\n"
    assert len(shortened("x" * 99, 20)) == 20
    assert shortened("encoder.layers.11.attention.query", 20) != shortened("encoder.layers.12.attention.query", 20)
    assert source_entries("a, Theorem 3; b", {"a": "A."}) == ["A. (Theorem 3)", "b"]
