"""Readings, verdicts and explanations for the terminal, as rich renderables."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from theodolite.report.words import (
    MARKS,
    by_quantity,
    case_words,
    expectation,
    number,
    outcome,
    printable,
    shortened,
    source_entries,
    status_counts,
    worst_reading,
)

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from theodolite.instrument import Answer, Instrument, Skipped
    from theodolite.law import Law, Verdict
    from theodolite.reading import Reading

__all__ = ["as_text", "explanation", "number", "survey_table", "verdict_table"]

STYLES: Mapping[str, str] = {
    "agrees": "green",
    "above": "bold red",
    "below": "bold magenta",
    "inconclusive": "yellow",
    "invalid": "bold white on red",
    "no reference": "dim",
    "skipped": "dim",
    "holds": "green",
    "broken": "bold red",
}
COSTS: Mapping[str, str] = {
    "free": "nothing beyond reading the weights",
    "forward": "forward passes",
    "backward": "gradients",
    "hvp": "Hessian-vector products",
    "train": "training",
}


def survey_table(answers: Sequence[Answer], skipped: Sequence[Skipped]) -> RenderableType:
    """The summary line, one row for each reading, and what was skipped and why."""
    from rich.console import Group

    parts: list[RenderableType] = [_summary(answers, skipped)]
    if any(answer.readings for answer in answers):
        table = plain_table("instrument", "quantity")
        table.add_column("where", no_wrap=True)
        table.add_column("measured", justify="right", no_wrap=True)
        table.add_column("expected", justify="right", overflow="fold")
        table.add_column("status", no_wrap=True)
        for answer in answers:
            name = answer.instrument.name
            for quantity, readings in by_quantity(answer.readings):
                for reading in readings:
                    table.add_row(as_cell(name), as_cell(quantity), *_cells(reading))
                    name = quantity = ""
            table.add_section()
        parts.append(table)
    if skipped:
        table = plain_table("skipped", "why")
        for skip in skipped:
            table.add_row(as_cell(skip.instrument), as_cell(skip.reason))
        parts.append(table)
    return Group(*parts)


def verdict_table(verdicts: Sequence[Verdict]) -> RenderableType:
    """One row for each law: whether it holds, over how many readings, and the reading that came off worst."""
    from rich.console import Group
    from rich.text import Text

    ends = [outcome(verdict) for verdict in verdicts]
    said = [f"{ends.count('holds')} of {len(ends)} laws hold"]
    said += [f"{ends.count(end)} {end}" for end in ("broken", "inconclusive") if end in ends]
    table = plain_table("law", "topic")
    table.add_column("verdict", no_wrap=True)
    table.add_column("readings", justify="right")
    table.add_column("worst reading: measured beside expected", overflow="fold", ratio=1)
    for verdict, end in zip(verdicts, ends, strict=True):
        table.add_row(
            as_cell(verdict.law.name + (" †" if verdict.law.erratum else "")),
            as_cell(verdict.law.topic),
            _badge(end),
            str(len(verdict.readings)),
            as_cell(_worst_words(verdict)),
        )
    parts: list[RenderableType] = [Text(" · ".join(said), style="bold"), table]
    if any(verdict.law.erratum for verdict in verdicts):
        parts.append(Text("† corrects the literature; the form in print is refuted by the measurement", style="dim"))
    return Group(*parts)


def explanation(
    subject: Law | Instrument, *, references: Mapping[str, str] | None = None, documentation: str | None = None
) -> RenderableType:
    """A law or an instrument in full. The documentation defaults to the docstring of the file that defines it."""
    from rich.console import Group
    from rich.text import Text

    from theodolite.law import Law

    if isinstance(subject, Law):
        kind, asked = "law" + (f" · {subject.topic}" if subject.topic else ""), subject.claim
        rows = _law_rows(subject, references or {})
        home = subject.predict.__module__
    else:
        kind, asked, home = "instrument", subject.question, subject.read.__module__
        rows = _instrument_rows(subject)
    if documentation is None:
        documentation = getattr(sys.modules.get(home), "__doc__", None) or ""
    grid = _grid()
    for name, text in [*rows, ("notes", inspect.cleandoc(documentation))]:
        if text:
            grid.add_row(Text(name, style="bold"), as_cell(text))
    title = Text.assemble((printable(subject.name), "bold"), (f"  {printable(kind)}", "dim"))
    return Group(title, as_cell(asked), Text(""), grid)


def as_text(renderable: RenderableType, width: int = 100) -> str:
    """The renderable as plain text, without colour, trailing blanks cut."""
    from io import StringIO

    from rich.console import Console

    page = StringIO()
    Console(file=page, width=width, color_system=None, force_terminal=False, legacy_windows=False).print(renderable)
    return "\n".join(line.rstrip() for line in page.getvalue().splitlines()) + "\n"


def _law_rows(law: Law, references: Mapping[str, str]) -> list[tuple[str, str]]:
    assumptions = [f"• {text}\n  {_breaking_words(change)}" for text, change in law.assumes.items()]
    random = "generator" in inspect.signature(law.measure).parameters
    runs = f"{law.repeats} repeats a case, 8 times as many in full size" if random else "deterministic, run once a case"
    seen = [f"• {case_words(case)}" for case in law.cases] + [f"• {case_words(case)}  (full size)" for case in law.full]
    what = f"exponent of {law.quantity or law.name} in {law.exponent}" if law.exponent else law.quantity or law.name
    return [
        ("formula", law.formula),
        ("assumes", "\n".join(assumptions)),
        ("source", "\n".join(source_entries(law.source, references))),
        ("erratum", law.erratum or ""),
        ("measures", f"{what}; {runs}; relative tolerance {law.tolerance:g}"),
        ("prediction", inspect.getdoc(law.predict) or ""),
        ("experiment", inspect.getdoc(law.measure) or ""),
        ("cases", "\n".join(seen)),
    ]


def _instrument_rows(instrument: Instrument) -> list[tuple[str, str]]:
    return [
        ("needs", ", ".join(sorted(instrument.needs)) or "nothing"),
        ("cost", COSTS[instrument.cost]),
        ("rests on", ", ".join(instrument.laws)),
        ("reads", inspect.getdoc(instrument.read) or ""),
    ]


def _breaking_words(change: Mapping[str, object] | None) -> str:
    return f"broken by {case_words(change)}" if change else "no experiment can break it"


def _worst_words(verdict: Verdict) -> str:
    worst = worst_reading(verdict.readings)
    if worst is None:
        return "no readings"
    place = f" at {worst.where}" if worst.where else ""
    return f"{number(worst.measured, worst.stderr)} beside {expectation(worst.expected)}{place}"


def _summary(answers: Sequence[Answer], skipped: Sequence[Skipped]) -> Text:
    from rich.text import Text

    counts = status_counts(answers)
    parts: list[tuple[str, str]] = [
        (f"{MARKS['agrees']} {counts['agrees']} agree", "agrees"),
        (f"{MARKS['above']} {counts['above']} above", "above"),
        (f"{MARKS['below']} {counts['below']} below", "below"),
        (f"{MARKS['inconclusive']} {counts['inconclusive']} inconclusive", "inconclusive"),
        (f"{MARKS['no reference']} {counts['no reference']} without reference", "no reference"),
        (f"{MARKS['skipped']} {len(skipped)} skipped", "skipped"),
    ]
    if counts["invalid"]:
        parts.insert(4, (f"{MARKS['invalid']} {counts['invalid']} invalid", "invalid"))
    line = Text()
    for place, (words, status) in enumerate(parts):
        quiet = words.split()[1] == "0"
        line.append("  " if place else "").append(words, style="dim" if quiet else STYLES[status])
    return line


def _cells(reading: Reading) -> Iterable[Text]:
    yield as_cell(shortened(reading.where, 30))
    yield as_cell(number(reading.measured, reading.stderr))
    yield as_cell(expectation(reading.expected))
    yield _badge(reading.status)


def _badge(status: str) -> Text:
    from rich.text import Text

    return Text(f"{MARKS[status]} {status}", style=STYLES[status])


def as_cell(text: str) -> Text:
    from rich.text import Text

    return Text(printable(text), overflow="fold")


def plain_table(*names: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for name in names:
        table.add_column(name, overflow="fold")
    return table


def _grid() -> Table:
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    return grid
