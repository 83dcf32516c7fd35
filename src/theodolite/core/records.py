"""Readings as rows, and a file of records that a crash cannot spoil: one line of JSON each, flushed as it is taken."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from theodolite.core.reading import Band, Reading
from theodolite.io.files import plain, write_atomically

COLUMNS = ("quantity", "where", "measured", "stderr", "expected_low", "expected_high", "status", "meaning")
"""The columns of a reading in tables and files."""

LEADING = ("step", "lr", "momentum", "phase", "instrument")
"""The columns that stand before them in a table of records."""


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
        measured=_number(row["measured"]),
        stderr=_number(row["stderr"]),
        expected=Band(-math.inf if low is None else low, math.inf if high is None else high) if told else None,
        meaning=row["meaning"],
    )


def table(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, header: bool = True) -> str:
    """Rows as the text of a CSV file."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, fieldnames=list(columns), lineterminator="\n")
    if header:
        writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


@dataclass(frozen=True)
class Record:
    """What was read at one step: readings by the name of the look, what was not read and why, and the phase so far.

    ``seconds`` this look took; ``watching`` and ``training`` are the seconds spent on looks and between them so far.
    """

    step: int
    lr: float | None = None
    momentum: float = 0.0
    readings: tuple[tuple[str, Reading], ...] = ()
    notes: tuple[str, ...] = ()
    phase: str = "undecided"
    reason: str = ""
    seconds: float = 0.0
    watching: float = 0.0
    training: float = 0.0
    facts: Mapping[str, float] = field(default_factory=dict)

    def value(self, quantity: str) -> float | None:
        """The measured value of a quantity, where it was read."""
        return next((reading.measured for _, reading in self.readings if reading.quantity == quantity), None)

    def rows(self) -> list[dict[str, Any]]:
        """One flat dictionary a reading."""
        head = {"step": self.step, "lr": self.lr, "momentum": self.momentum, "phase": self.phase}
        return [{**head, "instrument": look, **row_of(reading)} for look, reading in self.readings]

    def line(self) -> str:
        """The record as one line of JSON."""
        own = {name: getattr(self, name) for name in _PLAIN}
        rows = [{"instrument": look, **row_of(reading)} for look, reading in self.readings]
        return json.dumps(plain({**own, "readings": rows}), ensure_ascii=False, allow_nan=False) + "\n"


_PLAIN = ("step", "lr", "momentum", "notes", "phase", "reason", "seconds", "watching", "training", "facts")


def record_of(line: str) -> Record:
    """The record of a line."""
    found = json.loads(line)
    readings = tuple((row["instrument"], reading_of(row)) for row in found.pop("readings"))
    facts = {name: _number(value) for name, value in found.pop("facts").items()}
    return Record(**{**found, "notes": tuple(found["notes"])}, readings=readings, facts=facts)


class Log:
    """``records.jsonl`` in a folder, and the same as ``records.csv``; what was there before is kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines, self.sheet = folder / "records.jsonl", folder / "records.csv"

    def records(self) -> list[Record]:
        """Every whole record; a last line that a crash tore is dropped, and gone from the file afterwards."""
        if not self.lines.exists():
            return []
        text = self.lines.read_text(encoding="utf-8", errors="replace")
        found: list[Record] = []
        parts = [part for part in text.split("\n") if part.strip()]
        for place, part in enumerate(parts):
            try:
                found.append(record_of(part))
            except (ValueError, KeyError, TypeError) as error:
                if place == len(parts) - 1:
                    break
                raise ValueError(
                    f"expected records in {self.lines}, got line {place + 1} damaged; remove that line, or the folder"
                ) from error
        if "".join(record.line() for record in found) != text:
            self.rewrite(found)
        return found

    def append(self, record: Record) -> None:
        """One more record, on disk when this returns."""
        self.folder.mkdir(parents=True, exist_ok=True)
        first = not self.sheet.exists()
        for path, text in (
            (self.lines, record.line()),
            (self.sheet, table(record.rows(), (*LEADING, *COLUMNS), header=first)),
        ):
            with path.open("a", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())

    def rewrite(self, records: Sequence[Record]) -> None:
        """Both files anew, each whole or not at all."""
        write_atomically(self.lines, "".join(record.line() for record in records))
        rows = [row for record in records for row in record.rows()]
        write_atomically(self.sheet, table(rows, (*LEADING, *COLUMNS)))


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
