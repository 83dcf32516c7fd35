"""A survey for the terminal: the diagnosis, one row a quantity, and by whole names the places that need attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from theodolite.report.diagnosis import diagnosis_text
from theodolite.report.text import as_cell, badge, plain_table, summary_line
from theodolite.report.words import by_quantity, expectation, group_words, number, worst_status

if TYPE_CHECKING:
    from rich.console import RenderableType

    from theodolite.core.question import Answer, Skipped

NAMED = 12
"""So many places of a quantity are named that need attention; more are counted."""


def survey_summary(answers: Sequence[Answer], skipped: Sequence[Skipped], *, diagnosis: Any = None) -> RenderableType:
    """Headline and findings first, then counts, one row a quantity, the places outside, and how many were skipped."""
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = [] if diagnosis is None else [diagnosis_text(diagnosis), Text("")]
    parts.append(summary_line(answers, skipped))
    if any(answer.readings for answer in answers):
        parts += [Text(""), _quantities(answers)]
    places = _attention(answers)
    if places is not None:
        parts += [Text(""), places]
    if skipped:
        names = ", ".join(dict.fromkeys(skip.instrument for skip in skipped))
        parts += [Text(""), as_cell(f"skipped: {names}")]
    return Group(*parts)


def _quantities(answers: Sequence[Answer]) -> RenderableType:
    from rich.text import Text

    table = plain_table("quantity", "measured", "expected")
    table.add_column("", no_wrap=True)
    for answer in answers:
        if not answer.readings:
            continue
        table.add_section()
        table.add_row(Text(answer.question.name, style="bold"))
        for quantity, readings in by_quantity(answer.readings):
            measured, expected = group_words(readings)
            table.add_row(as_cell(f"  {quantity}"), as_cell(measured), as_cell(expected), badge(worst_status(readings)))
    return table


def _attention(answers: Sequence[Answer]) -> RenderableType | None:
    """The places of readings outside a law or the needs of a network, their names whole."""
    alarming = [(answer, reading) for answer in answers for reading in answer.readings if reading.alarming]
    if not alarming:
        return None
    table = plain_table("needs attention", "measured", "expected")
    for quantity, readings in by_quantity(reading for _, reading in alarming):
        if len(readings) > 1 or readings[0].where:
            table.add_row(as_cell(quantity))
        for reading in readings[:NAMED]:
            name = f"  {reading.where}" if reading.where else quantity
            value, band = number(reading.measured, reading.stderr), expectation(reading.expected)
            table.add_row(*map(as_cell, (name, value, band)))
        if len(readings) > NAMED:
            table.add_row(as_cell(f"  and {len(readings) - NAMED} more (--all)"))
    return table
