"""Readings as rows, there and back, and rows that a spreadsheet takes for words."""

import csv
import io
import math

import pytest

from theodolite.core.reading import Band, Reading
from theodolite.core.reading_table import COLUMNS, csv_text, known_number, reading_of, row_of


@pytest.mark.parametrize("band", [None, Band(0.5, 2.0), Band(high=3.0), Band(low=-1.0)])
def test_a_row_becomes_the_reading_it_was(band):
    reading = Reading(
        quantity="q", where="layer", measured=1.5, stderr=0.1, expected=band, meaning="m", against="health"
    )
    row = row_of(reading)
    assert tuple(row) == COLUMNS
    back = reading_of(row)
    assert row_of(back) == row and back.status == reading.status


def test_null_stands_for_what_is_not_finite():
    assert math.isnan(known_number(None)) and known_number(2) == 2.0
    row = row_of(Reading(quantity="q", measured=1.0)) | {"measured": None}
    assert reading_of(row).status == "invalid"


@pytest.mark.parametrize("word", ["=1+1", "+1", "-1", "@x", "two\nlines", "plain, with a comma"])
def test_no_cell_is_a_formula_or_two_lines(word):
    text = csv_text([{"a": word, "b": -1.5}], ("a", "b"))
    header, row = csv.reader(io.StringIO(text))
    assert header == ["a", "b"] and row[1] == "-1.5"
    assert row[0][0] not in "=+-@" and "\n" not in row[0] and row[0].lstrip("'") == " ".join(word.splitlines())
