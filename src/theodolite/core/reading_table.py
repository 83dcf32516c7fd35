"""Readings as rows of a table or a file, and back."""

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from theodolite.core.reading import Band, Reading

COLUMNS = ("quantity", "where", "measured", "stderr", "expected_low", "expected_high", "against", "status", "meaning")
"""The columns of a reading in tables and files."""


def row_of(reading: Reading) -> dict[str, Any]:
    """A reading as one flat dictionary, without its series."""
    low, high = (reading.expected.low, reading.expected.high) if reading.expected else (None, None)
    values = (
        reading.quantity,
        reading.where,
        reading.measured,
        reading.stderr,
        low,
        high,
        reading.against if reading.expected else "",
        reading.status,
        reading.meaning,
    )
    return dict(zip(COLUMNS, values, strict=True))


def reading_of(row: Mapping[str, Any]) -> Reading:
    """The reading that a row was made of; JSON's null stands for a number that was not finite.

    >>> reading_of(row_of(Reading(quantity="loss", measured=0.5, expected=Band(high=1.0)))).status
    'agrees'
    """
    low, high = row["expected_low"], row["expected_high"]
    told = low is not None or high is not None
    return Reading(
        quantity=row["quantity"],
        where=row["where"],
        measured=known_number(row["measured"]),
        stderr=known_number(row["stderr"]),
        expected=Band(-math.inf if low is None else low, math.inf if high is None else high) if told else None,
        meaning=row["meaning"],
        against=row.get("against") or "law",
    )


def known_number(value: float | None) -> float:
    """A number from JSON, where null stands for one that was not finite."""
    return math.nan if value is None else float(value)


def csv_text(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Rows as the text of a CSV file: one line a row, and no word that a spreadsheet would take for a formula."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, fieldnames=list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _cell(value) for key, value in row.items()} for row in rows)
    return buffer.getvalue()


def _cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    line = " ".join(value.splitlines())
    return f"'{line}" if line.startswith(("=", "+", "-", "@", "\t")) else line
