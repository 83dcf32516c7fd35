"""A survey for the terminal: the diagnosis, one row a quantity, and by whole names the places that need attention; verdicts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from theodolite.core.law import Verdict
from theodolite.core.question import Answer, Skipped
from theodolite.report.diagnosis import diagnosis_text
from theodolite.report.text import NARROW, as_cell, indented, mark, plain_table, summary_line
from theodolite.report.words import by_quantity, expectation, group_words, number, outcome, worst_reading, worst_status

NAMED = 12
"""So many places of a quantity are named that need attention; more are counted."""


def survey_summary(answers: Sequence[Answer], skipped: Sequence[Skipped], *, diagnosis: Any = None) -> RenderableType:
    """Headline and findings first, then counts, one row a quantity, the places outside, and how many were skipped."""
    parts: list[RenderableType] = [] if diagnosis is None else [diagnosis_text(diagnosis), Text("")]
    parts.append(summary_line(answers, skipped))
    if any(answer.readings for answer in answers):
        parts += [Text(""), _Quantities(answers)]
    places = _attention(answers)
    if places is not None:
        parts += [Text(""), places]
    if skipped:
        parts += [Text(""), *_skips(skipped)]
    return Group(*parts)


@dataclass(frozen=True)
class _Quantities:
    """One row a quantity, under the name of its instrument; those without a reference are counted; --all shows them."""

    answers: Sequence[Answer]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table."""
        table = plain_table("quantity", "measured", "expected")
        table.add_column("", no_wrap=True)
        folded, whole = 0, []
        for answer in self.answers:
            groups = by_quantity(answer.readings)
            shown = [group for group in groups if worst_status(group[1]) != "no reference"]
            folded += sum(len(readings) for quantity, readings in groups) - sum(len(group[1]) for group in shown)
            if not shown:
                whole += [answer.question.name] if groups else []
                continue
            table.add_section()
            table.add_row(Text(answer.question.name, style="bold"))
            for quantity, readings in shown:
                end = mark(worst_status(readings), options.max_width)
                table.add_row(indented(quantity), *map(as_cell, group_words(readings)), end)
        gap = "\n" if table.row_count else ""
        if gap:
            yield table
        if folded:
            those = f" (all of {', '.join(whole)})" if whole else ""
            yield Text(
                f"{gap}{folded} readings without an expected value{those} are hidden: --all, or text() in Python, shows them.",
                style="dim",
            )


def _skips(skipped: Sequence[Skipped]) -> list[RenderableType]:
    """What was not read, together with all else that was not read for the same reason."""
    reasons: dict[str, list[str]] = {}
    for skip in skipped:
        needs_model = skip.reason.startswith("needs ") and "model" in skip.reason.partition(", which")[0]
        reason = "need a model and its data: pass package.module:function and --data" if needs_model else skip.reason
        reasons.setdefault(reason, []).append(skip.instrument)
    lines = (f"{', '.join(dict.fromkeys(names))}: {reason}" for reason, names in reasons.items())
    return [Text("skipped", style="bold"), *map(indented, lines)]


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
            name = indented(reading.where) if reading.where else as_cell(quantity)
            value, band = number(reading.measured, reading.stderr), expectation(reading.expected)
            table.add_row(name, as_cell(value), as_cell(band))
        if len(readings) > NAMED:
            table.add_row(indented(f"and {len(readings) - NAMED} more (--all)"))
    return table


def verdict_table(verdicts: Sequence[Verdict]) -> RenderableType:
    """One row for each law: whether it holds, over how many readings, and the reading that came off worst."""
    ends = [outcome(verdict) for verdict in verdicts]
    said = [f"{ends.count('holds')} of {len(ends)} " + ("law holds" if len(ends) == 1 else "laws hold")]
    said += [f"{ends.count(end)} {end}" for end in ("broken", "inconclusive") if end in ends]
    parts: list[RenderableType] = [Text(" · ".join(said), style="bold"), _Verdicts(verdicts, ends)]
    if any(verdict.law.erratum for verdict in verdicts):
        parts.append(Text("† corrects the literature", style="dim"))
    return Group(*parts)


@dataclass(frozen=True)
class _Verdicts:
    """A row a law; where there is little room without its topic and the number of readings, so that names stay whole."""

    verdicts: Sequence[Verdict]
    ends: Sequence[str]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table."""
        wide = options.max_width >= NARROW
        table = plain_table()
        table.add_column("law", no_wrap=True)
        if wide:
            table.add_column("topic", no_wrap=True)
        table.add_column("verdict" if wide else "", no_wrap=True)
        if wide:
            table.add_column("readings", justify="right")
        table.add_column("worst reading", overflow="fold", ratio=1)
        for verdict, end in zip(self.verdicts, self.ends, strict=True):
            law = verdict.law
            cells = [as_cell(law.name + (" †" if law.erratum else "")), mark(end, options.max_width)]
            if wide:
                cells = [cells[0], as_cell(law.topic), cells[1], as_cell(str(len(verdict.readings)))]
            table.add_row(*cells, as_cell(_worst_words(verdict)))
        yield table


def _worst_words(verdict: Verdict) -> str:
    worst = worst_reading(verdict.readings)
    if worst is None:
        return "no readings"
    place = f" at {worst.where}" if worst.where else ""
    return f"{number(worst.measured, worst.stderr)}, expected {expectation(worst.expected)}{place}"
