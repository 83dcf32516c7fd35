"""Readings, verdicts and explanations for the terminal, as rich renderables."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from theodolite.report.unicode_math import unicode_formula, unicode_prose
from theodolite.report.words import (
    MARKS,
    WORST,
    by_quantity,
    case_words,
    expectation,
    number,
    outcome,
    printable,
    resolution_words,
    source_entries,
    status_counts,
    worst_reading,
)

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.table import Table
    from rich.text import Text

    from theodolite.core.ailment import Ailment
    from theodolite.core.instrument import Instrument
    from theodolite.core.law import Law, Verdict
    from theodolite.core.question import Answer, Skipped
    from theodolite.core.reading import Estimate, Reading

__all__ = ["as_text", "explanation", "number", "survey_table", "verdict_table"]

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
_COLUMNS = ("instrument", "quantity", "where", "measured", "expected", "status")
COSTS: Mapping[str, str] = {
    "free": "nothing beyond reading the weights",
    "forward": "forward passes",
    "backward": "gradients",
    "hvp": "Hessian-vector products",
    "train": "training",
}


def survey_table(answers: Sequence[Answer], skipped: Sequence[Skipped], *, most: int | None = None) -> RenderableType:
    """The summary line, one row for each reading, and what was skipped and why.

    Of a quantity read at more than ``most`` places only the most telling rows are shown, and how many were left out.
    """
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = [summary_line(answers, skipped)]
    if any(answer.readings for answer in answers):
        parts += [Text(""), _ReadingTable(answers, most)]
    if skipped:
        parts.append(Text(""))
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
    said = [f"{ends.count('holds')} of {len(ends)} " + ("law holds" if len(ends) == 1 else "laws hold")]
    said += [f"{ends.count(end)} {end}" for end in ("broken", "inconclusive") if end in ends]
    table = plain_table("law", "topic")
    table.add_column("verdict", no_wrap=True)
    table.add_column("readings", justify="right")
    table.add_column("worst reading: measured beside expected", overflow="fold", ratio=1)
    for verdict, end in zip(verdicts, ends, strict=True):
        table.add_row(
            as_cell(verdict.law.name + (" †" if verdict.law.erratum else "")),
            as_cell(verdict.law.topic),
            badge(end),
            str(len(verdict.readings)),
            as_cell(_worst_words(verdict)),
        )
    parts: list[RenderableType] = [Text(" · ".join(said), style="bold"), table]
    if any(verdict.law.erratum for verdict in verdicts):
        parts.append(Text("† corrects the literature", style="dim"))
    return Group(*parts)


def explanation(
    subject: Law | Instrument | Ailment,
    *,
    references: Mapping[str, str] | None = None,
    documentation: str | None = None,
    verdict: Verdict | None = None,
) -> RenderableType:
    """A law, an instrument or an ailment in full. The documentation defaults to the docstring of its file.

    With its ``verdict`` a law also says how finely it can tell.
    """
    from rich.console import Group
    from rich.text import Text

    from theodolite.core.ailment import Ailment
    from theodolite.core.law import Law

    if isinstance(subject, Ailment):
        kind, asked, home = "ailment", subject.question, subject.judge.__module__
        rows = [
            ("needs", ", ".join(sorted(subject.needs))),
            ("explains", ", ".join(subject.explains)),
            ("rests on", ", ".join(subject.laws)),
        ]
    elif isinstance(subject, Law):
        kind, asked = "law" + (f" · {subject.topic}" if subject.topic else ""), subject.claim
        rows = _law_rows(subject, references or {})
        rows += [("resolution", resolution_words(verdict))] if verdict else []
        home = subject.predict.__module__
    else:
        kind, asked, home = "instrument", subject.question, subject.read.__module__
        rows = _instrument_rows(subject)
    if documentation is None:
        documentation = getattr(sys.modules.get(home), "__doc__", None) or ""
    grid = _grid()
    for name, text in [*rows, ("notes", _flowing(documentation))]:
        if text:
            grid.add_row(Text(name, style="bold"), as_cell(unicode_prose(text)))
    title = Text.assemble((printable(subject.name), "bold"), (f"  {printable(kind)}", "dim"))
    return Group(title, as_cell(unicode_prose(asked)), Text(""), grid)


def _flowing(documentation: str) -> str:
    """A docstring whose paragraphs are one line each, for a table to break as wide as it is."""
    return "\n\n".join(" ".join(part.split()) for part in re.split(r"\n\s*\n", inspect.cleandoc(documentation)))


def estimate_text(found: Estimate, *, as_json: bool = False) -> str:
    """One estimate for the terminal: the number with its error, or JSON."""
    import json
    from dataclasses import asdict

    from theodolite.io.files import json_ready

    return json.dumps(json_ready(asdict(found))) if as_json else number(found.value, found.stderr)


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


def _worst_words(verdict: Verdict) -> str:
    worst = worst_reading(verdict.readings)
    if worst is None:
        return "no readings"
    place = f" at {worst.where}" if worst.where else ""
    return f"{number(worst.measured, worst.stderr)} beside {expectation(worst.expected)}{place}"


def summary_line(answers: Sequence[Answer], skipped: Sequence[Skipped]) -> Text:
    from rich.text import Text

    counts = status_counts(answers)
    parts: list[tuple[str, str]] = [
        (f"{MARKS['above']} {counts['above']} above", "above"),
        (f"{MARKS['below']} {counts['below']} below", "below"),
        (f"{MARKS['agrees']} {counts['agrees']} agree{'s' if counts['agrees'] == 1 else ''}", "agrees"),
        (f"{MARKS['not random']} {counts['not random']} not random", "not random"),
        (f"{MARKS['inconclusive']} {counts['inconclusive']} inconclusive", "inconclusive"),
        (f"{MARKS['no reference']} {counts['no reference']} without reference", "no reference"),
        (f"{MARKS['skipped']} {len(skipped)} skipped", "skipped"),
    ]
    if counts["invalid"]:
        parts.insert(0, (f"{MARKS['invalid']} {counts['invalid']} invalid", "invalid"))
    line = Text()
    for place, (words, status) in enumerate(parts):
        quiet = words.split()[1] == "0"
        line.append("  " if place else "").append(words, style="dim" if quiet else STYLES[status])
    return line


def layer_table(layers: Sequence[Mapping[str, str]]) -> RenderableType:
    """Every layer that has weights: its whole name, its type and its shape."""
    table = plain_table("layer", "type", "shape")
    for layer in layers:
        table.add_row(*(as_cell(layer[column]) for column in ("layer", "type", "shape")))
    return table


@dataclass(frozen=True)
class _ReadingTable:
    """The rows of a survey, laid out for the width of the console: numbers whole, names as long as there is room."""

    answers: Sequence[Answer]
    most: int | None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table."""
        rows = list(_rows(self.answers, self.most))
        widths = _widths(rows, options.max_width)
        table = plain_table()
        for name, width in zip(_COLUMNS, widths, strict=True):
            number_like = name in ("measured", "expected")
            table.add_column(name, width=width, justify="right" if number_like else "left", overflow="fold")
        for name, quantity, reading, more in rows:
            where = printable(reading.where)  # whole, over several lines where the column is narrow
            value, band = number(reading.measured, reading.stderr), expectation(reading.expected)
            if name:
                table.add_section()
            table.add_row(*map(as_cell, (name, quantity, where, value, band)), badge(reading.status))
            if more:
                table.add_row("", as_cell(more), style="dim")
        yield table


def _widths(rows: Sequence[_Row], width: int) -> list[int]:
    """A width for each column: numbers and status take what they need, names share the rest."""
    readings = [reading for _, _, reading, _ in rows]
    measured = max(8, *(len(number(reading.measured, reading.stderr)) for reading in readings))
    expected = max(8, *(len(expectation(reading.expected)) for reading in readings))
    status = max(len(reading.status) + 2 for reading in readings)
    room = width - measured - expected - status - 2 * (len(_COLUMNS) - 1)
    instrument = max(5, min(max(10, *(len(name) for name, *_ in rows)), 18, room // 3))
    where = max(5, min(max(5, *(len(reading.where) for reading in readings)), (room - instrument) // 2))
    quantity = max(5, min(max(11, *(len(quantity) for _, quantity, *_ in rows)), room - instrument - where))
    return [instrument, quantity, where, measured, expected, status]


_Row = tuple[str, str, "Reading", str]


def _rows(answers: Sequence[Answer], most: int | None) -> Iterator[_Row]:
    """Every reading with its instrument and quantity, each named only where it begins, and what was left out after it."""
    for answer in answers:
        name = answer.question.name
        for quantity, readings in by_quantity(answer.readings):
            shown = _telling(readings, most)
            left = len(readings) - len(shown)
            for place, reading in enumerate(shown):
                last = place == len(shown) - 1
                yield name, quantity, reading, f"… {left} more" if left and last else ""
                name = quantity = ""


def _telling(readings: Sequence[Reading], most: int | None) -> list[Reading]:
    """The readings that disagree first, as many as asked for, in their own order."""
    if most is None or len(readings) <= most:
        return list(readings)
    ranked = sorted(range(len(readings)), key=lambda place: (WORST.index(readings[place].status), place))
    return [readings[place] for place in sorted(ranked[:most])]


def badge(status: str) -> Text:
    from rich.text import Text

    return Text(f"{MARKS[status]} {status}", style=STYLES[status])


def as_cell(text: str) -> Text:
    from rich.text import Text

    return Text(printable(text), overflow="fold")


def plain_table(*names: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for name in names:
        table.add_column(name, overflow="fold")
    return table


def _grid() -> Table:
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    return grid
