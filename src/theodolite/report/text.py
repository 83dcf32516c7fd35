"""Readings, verdicts and explanations for the terminal, as rich renderables."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from theodolite.io.files import json_ready
from theodolite.report.unicode_math import unicode_formula, unicode_prose
from theodolite.report.words import (
    MARKS,
    by_quantity,
    case_words,
    count_words,
    expectation,
    number,
    printable,
    source_entries,
    status_counts,
)

if TYPE_CHECKING:
    from theodolite.core.instrument import Instrument
    from theodolite.core.law import Law
    from theodolite.core.question import Answer, Skipped
    from theodolite.core.reading import Estimate, Reading

__all__ = ["as_text", "explanation", "number", "survey_table"]

STYLES: Mapping[str, str] = {
    "agrees": "green",
    "above": "bold red",
    "below": "bold magenta",
    "not random": "cyan",
    "inconclusive": "yellow",
    "invalid": "bold white on red",
    "no reference": "dim",
    "skipped": "dim",
    "holds": "green",
    "broken": "bold red",
}
COSTS: Mapping[str, str] = {
    "free": "only reading the weights",
    "forward": "forward passes",
    "backward": "gradients",
    "hvp": "Hessian-vector products",
    "train": "training",
}


def survey_table(answers: Sequence[Answer], skipped: Sequence[Skipped]) -> RenderableType:
    """The summary line, one row for each reading, and what was skipped and why."""
    parts: list[RenderableType] = [summary_line(answers, skipped)]
    if any(answer.readings for answer in answers):
        parts += [Text(""), _ReadingTable(answers)]
    if skipped:
        parts.append(Text(""))
        table = plain_table("skipped", "why")
        for skip in skipped:
            table.add_row(as_cell(skip.instrument), as_cell(skip.reason))
        parts.append(table)
    return Group(*parts)


def explanation(subject: Law | Instrument, documentation: str, references: Mapping[str, str]) -> RenderableType:
    """A law or an instrument in full, with what the docstring of its file says of it."""
    from theodolite.core.law import Law

    if isinstance(subject, Law):
        kind, asked = "law" + (f" · {subject.topic}" if subject.topic else ""), subject.claim
        rows = _law_rows(subject, references)
    else:
        kind, asked, rows = "instrument", subject.question, _instrument_rows(subject)
    return _explained(subject.name, kind, asked, [*rows, ("notes", _flowing(documentation))])


def ailment_explanation(name: str, facts: Mapping[str, Any], documentation: str) -> RenderableType:
    """An ailment in full, from what its file says of it."""
    needs, laws = ", ".join(sorted(facts["needs"])), ", ".join(facts.get("laws", ()))
    rows = [("needs", needs), ("rests on", laws), ("notes", _flowing(documentation))]
    return _explained(name, "ailment", facts["question"], rows)


def _explained(name: str, kind: str, asked: str, rows: Sequence[tuple[str, str]]) -> RenderableType:
    grid = _grid()
    for row, text in rows:
        if text:
            grid.add_row(Text(row, style="bold"), as_cell(unicode_prose(text)))
    title = Text.assemble((printable(name), "bold"), (f"  {printable(kind)}", "dim"))
    return Group(title, as_cell(unicode_prose(asked)), Text(""), grid)


def _flowing(documentation: str) -> str:
    """A docstring whose paragraphs are one line each, for a table to break as wide as it is."""
    return "\n\n".join(" ".join(part.split()) for part in re.split(r"\n\s*\n", inspect.cleandoc(documentation)))


def estimate_text(found: Estimate, *, as_json: bool = False) -> str:
    """One estimate for the terminal: the number with its error, or JSON."""
    return json.dumps(json_ready(asdict(found))) if as_json else number(found.value, found.stderr)


def as_text(renderable: RenderableType, width: int = 100) -> str:
    """The renderable as plain text, without color, trailing blanks cut."""
    page = StringIO()
    quiet = Console(
        file=page, width=width, color_system=None, force_terminal=False, force_jupyter=False, legacy_windows=False
    )
    quiet.print(renderable)
    return "\n".join(line.rstrip() for line in page.getvalue().splitlines()) + "\n"


def _law_rows(law: Law, references: Mapping[str, str]) -> list[tuple[str, str]]:
    assumptions = [f"• {text}\n  {_breaking_words(change)}" for text, change in law.assumes.items()]
    random = "generator" in inspect.signature(law.measure).parameters
    runs = (
        f"{law.repeats} repeat{'s' * (law.repeats != 1)} per case, 8 times as many in full size"
        if random
        else "deterministic, run once per case"
    )
    seen = [f"• {case_words(case)}" for case in law.cases] + [f"• {case_words(case)}  (full size)" for case in law.full]
    what = f"exponent of {law.quantity or law.name} in {law.exponent}" if law.exponent else law.quantity or law.name
    return [
        ("formula", unicode_formula(law.formula)),
        ("assumes", "\n".join(assumptions)),
        ("source", "\n".join(source_entries(law.source, references))),
        ("erratum", law.erratum or ""),
        ("measures", f"{what}; {runs}; relative tolerance {law.tolerance:g}"),
        ("prediction", inspect.getdoc(law.predict) or ""),
        ("experiment", inspect.getdoc(law.measure) or ""),
        ("cases", "\n".join(seen)),
        ("observed", f"not derived: {law.observed}" if law.observed else ""),
    ]


def _instrument_rows(instrument: Instrument) -> list[tuple[str, str]]:
    return [
        ("needs", ", ".join(sorted(instrument.needs)) or "nothing"),
        ("cost", COSTS[instrument.cost]),
        ("rests on", ", ".join(instrument.laws)),
        ("reads", inspect.getdoc(instrument.read) or ""),
    ]


def _breaking_words(change: Mapping[str, object] | None) -> str:
    return f"broken by {case_words(change)}" if change else "no experiment here breaks it"


TOLD = ("invalid", "above", "below", "agrees", "not random", "inconclusive", "no reference", "skipped")
"""Statuses in the order in which the line of counts says them."""


def summary_line(answers: Sequence[Answer], skipped: Sequence[Skipped]) -> RenderableType:
    """How many readings have each status, beside its mark."""
    counts = {**status_counts(answers), "skipped": len(skipped)}
    told = {status: counts[status] for status in TOLD if counts[status]}
    return _Parts(tuple((f"{MARKS[s]} {n} {count_words(s, n)}", STYLES[s]) for s, n in told.items()))


@dataclass(frozen=True)
class _Parts:
    """Words with their styles in a line, which is broken between them only."""

    parts: Sequence[tuple[str, str]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines."""
        line = Text()
        for words, style in self.parts:
            if line and len(line) + 2 + len(words) > options.max_width:
                yield line
                line = Text()
            line.append("  " if line else "").append(words, style=style)
        yield line


def layer_table(layers: Sequence[Mapping[str, str]]) -> RenderableType:
    """Every layer that has weights: its whole name, its type and its shape."""
    table = plain_table("layer", "type", "shape")
    for layer in layers:
        table.add_row(*(as_cell(layer[column]) for column in ("layer", "type", "shape")))
    return table


@dataclass(frozen=True)
class _ReadingTable:
    """Every reading on a line of its own under its instrument and quantity, so that names are whole at any width."""

    answers: Sequence[Answer]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table."""
        table = plain_table("quantity, and where")
        for name in ("measured", "expected"):
            table.add_column(name, justify="right", overflow="fold")
        table.add_column("", no_wrap=True)
        for answer in self.answers:
            if answer.readings:
                table.add_section()
                table.add_row(Text(printable(answer.question.name), style="bold"))
            for quantity, readings in by_quantity(answer.readings):
                alone = len(readings) == 1 and not readings[0].where
                if not alone:
                    table.add_row(indented(quantity))
                for reading in readings:
                    place = indented(quantity) if alone else indented(reading.where, 4)
                    table.add_row(place, *_numbers(reading), mark(reading.status, options.max_width))
        yield table


def _numbers(reading: Reading) -> tuple[Text, Text]:
    return as_cell(number(reading.measured, reading.stderr)), as_cell(expectation(reading.expected))


def indented(text: str, columns: int = 2) -> RenderableType:
    """So many columns in, further lines too."""
    return Padding(as_cell(text), (0, 0, 0, columns))


NARROW = 100
"""Columns below which a status is its mark alone; the line of counts above says what each mark means."""


def mark(status: str, width: int) -> Text:
    """The badge of a status, or its sign alone where there is little room."""
    return Text(MARKS[status], style=STYLES[status]) if width < NARROW else badge(status)


def badge(status: str) -> Text:
    return Text(f"{MARKS[status]} {status}", style=STYLES[status])


def as_cell(text: str) -> Text:
    return Text(printable(text), overflow="fold")


def plain_table(*names: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for name in names:
        table.add_column(name, overflow="fold")
    return table


def _grid() -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    return grid
