"""The records of a run as one story: each quantity over the steps, where the phase changed, and what could not be read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from theodolite.core.question import Answer, Skipped
from theodolite.core.reading import Reading, Series
from theodolite.report.dashboard import BAD, Dashboard, Heat, Panel, RunLine
from theodolite.theory.dynamics import Moment, step_size_edge
from theodolite.verbs.watching.layers import layer_tables
from theodolite.verbs.watching.looks import LOOKS, SHARPNESS
from theodolite.verbs.watching.records import THINNED, Record, last_standing, left_out, standing

if TYPE_CHECKING:
    from theodolite.core.ailment import Finding
    from theodolite.report.opening import Opening
    from theodolite.verbs.diagnosis import Diagnosis
    from theodolite.verbs.watching.watch import Watch

MILD = ("overfits", "not-in-optimizer")
"""Findings of a watch that are no catastrophe."""

DRAWN = 400
"""At most so many looks are drawn in a figure, evenly spread."""


def history_of(records: Sequence[Record]) -> list[Moment]:
    """What decides the phase, of the looks that could read the loss; where the last was thinned, what was read last stands."""
    moments = (record.moment for record in (*records[:-1], *last_standing(records)))
    return [moment for moment in moments if moment is not None]


def answers_of(records: Sequence[Record]) -> tuple[Answer, ...]:
    """The last reading of each quantity, with all its earlier ones as a series over steps."""
    series: dict[tuple[str, str], list[tuple[Record, Reading]]] = {}
    for record in records:
        for look, reading in record.readings:
            series.setdefault((look, reading.quantity), []).append((record, reading))
    newest = records[-1].step if records else 0
    return tuple(
        Answer(look, tuple(_with_series(pairs, newest) for (name, _), pairs in series.items() if name == look.name))
        for look in LOOKS
        if any(name == look.name for name, _ in series)
    )


def skipped_of(records: Sequence[Record]) -> tuple[Skipped, ...]:
    """What the last look could not read, or where it was thinned the last whole one, and earlier trouble with the loss."""
    if not records:
        return ()
    left = left_out(records[-1])
    whole = next((r for r in reversed(records) if THINNED not in r.facts), records[-1])
    notes = [note for note in records[-1].notes if not note.startswith(f"{THINNED}: ")]
    notes += [note for note in whole.notes if left and note.split(": ", 1)[0] in left]
    last = [Skipped(*note.split(": ", 1)) if ": " in note else Skipped("loss", note) for note in notes]
    bad = [note for record in records[:-1] for note in record.notes if "not finite at step" in note]
    return (*last, *(Skipped("loss", note) for note in bad[:3]))


def phases_of(records: Sequence[Record]) -> list[tuple[int, str, str]]:
    """Where the phase changed: step, name and reason; the last entry is the present one."""
    found: list[tuple[int, str, str]] = []
    for record in records:
        if found and found[-1][1] == record.phase:
            found[-1] = (found[-1][0], record.phase, record.reason)
        else:
            found.append((record.step, record.phase, record.reason))
    return found


def _with_series(pairs: Sequence[tuple[Record, Reading]], newest: int) -> Reading:
    thin = [
        pairs[place * (len(pairs) - 1) // (min(DRAWN, len(pairs)) - 1 or 1)] for place in range(min(DRAWN, len(pairs)))
    ]
    last, seen = pairs[-1][1], pairs[-1][0].step
    late = f"Last measured at step {seen}, not since. " if seen != newest else ""
    bands = [reading.expected for _, reading in thin]
    told = any(band is not None for band in bands)
    values = [reading.measured for _, reading in thin if math.isfinite(reading.measured)]
    plain_edge = last.quantity == SHARPNESS and told and any(record.lr for record, _ in thin)
    series = Series(
        x=tuple(float(record.step) for record, _ in thin),
        measured=tuple(reading.measured for _, reading in thin),
        stderr=tuple(reading.stderr for _, reading in thin),
        low=tuple(band.low if band else math.inf for band in bands) if told else (),
        high=tuple(band.high if band else -math.inf for band in bands) if told else (),
        x_label="step",
        y_label=last.quantity,
        log="y" if values and min(values) > 0 and max(values) > 100 * min(values) else "",
        line=tuple(2 / record.lr if record.lr else math.nan for record, _ in thin) if plain_edge else (),
        line_label="2/lr" if plain_edge else "",
    )
    return Reading(
        quantity=last.quantity,
        measured=last.measured,
        stderr=last.stderr,
        expected=last.expected,
        where=last.where,
        meaning=late + last.meaning,
        series=series if len(values) > 1 else None,
        against=last.against,
    )


def page_of(watch: Watch) -> str:
    """The run as one page, its diagnosis first."""
    from theodolite.report.html import watch_page

    sheet, phases = watch.sheet(), phases_of(watch.records)
    return watch_page(sheet.title, sheet.answers, sheet.skipped, sheet.facts, phases=phases, opening=watch.opening())


RELOAD = 20
"""Seconds after which the page of a run that goes on reloads itself."""


def live_page_of(watch: Watch) -> str:
    """The page of a run that goes on: what was told so far and the dashboard; nothing is tried, and it reloads itself."""
    from theodolite.report.html import watch_page

    phases, opening = phases_of(watch.records), _opening_so_far(watch)
    page = watch_page(
        watch.subject.name, (), skipped_of(watch.records), facts_of(watch), phases=phases, opening=opening
    )
    return page.replace("<head>", f'<head>\n<meta http-equiv="refresh" content="{RELOAD}">', 1)


def live_fragment_of(watch: Watch) -> str:
    """The same as an element for a notebook's cell."""
    from theodolite.report.html import survey_fragment

    title = f"{watch.subject.name}, step {watch.records[-1].step:,}" if watch.records else watch.subject.name
    return survey_fragment(title, (), skipped_of(watch.records), facts_of(watch), opening=_opening_so_far(watch))


def _opening_so_far(watch: Watch) -> Opening:
    from theodolite.report.opening import Opening

    told = watch.told
    return Opening(told, dashboard=dashboard_of(watch.records, told).pictures(), alarm=alarm_of(watch.records))


def _alarms(records: Sequence[Record]) -> list[str]:
    return [line for record in records for line in record.alarms]


def opening_of(watch: Watch) -> Opening:
    """What the page shows first: the diagnosis, the dashboard, and in red a run that is dead or has diverged."""
    from theodolite.report.opening import Opening

    found = watch.diagnosis if watch.records else None
    return Opening(found, dashboard=dashboard_of(watch.records, found).pictures(), alarm=alarm_of(watch.records))


def alarm_of(records: Sequence[Record]) -> str:
    """The sentence that is shown in red: the run is dead, has diverged, or its loss is not finite."""
    if not records:
        return ""
    last = records[-1]
    if last.phase in BAD:
        return f"The run is {last.phase}: {last.reason}"
    return next((note for note in last.notes if "not finite at step" in note), "")


def findings_began(records: Sequence[Record]) -> dict[str, tuple[int, str, bool]]:
    """The findings that were told while it ran: the step at which each was told first, that line, and whether it is bad."""
    found: dict[str, tuple[int, str, bool]] = {}
    for record in records:
        for line in record.alarms:
            name = line.split(": ")[1].replace(" ", "-")
            found.setdefault(name, (record.step, line, name not in MILD))
    return found


def dashboard_of(records: Sequence[Record], diagnosis: Diagnosis | None) -> Dashboard:
    """Loss, step against edge, trust ratio, gradients and weights by layer, phases and findings over the steps."""
    thin = standing(records)[:: math.ceil(len(records) / DRAWN) or 1]
    marks = [(float(r.step), note, True) for r in thin for note in r.notes if "not finite at step" in note][:1]
    marks += [(float(step), f"{name}: {why}", True) for step, name, why in phases_of(thin) if name in BAD]
    began = findings_began(records)
    marks += [(float(step), line, severe) for step, line, severe in began.values()]
    if diagnosis is not None and thin:  # what no look has told is known since the last one
        rest = [f for f in diagnosis.findings if f.name not in began]
        words = [(f"{f.name.replace('-', ' ')}: {f.says}", f.severity == "critical") for f in rest[:3]]
        marks += [(float(thin[-1].step), said, severe) for said, severe in words]
    return Dashboard(
        steps=[float(record.step) for record in thin],
        panels=[panel for name, lines in _panels(thin).items() if (panel := _panel(name, lines)) is not None],
        heats=[Heat(title, layers, values) for title, (layers, values) in layer_tables(thin).items()],
        phases=[(float(step), name) for step, name, _ in phases_of(thin)],
        marks=marks,
    )


def _panels(records: Sequence[Record]) -> dict[str, list[RunLine]]:
    def fact(name: str) -> list[float]:
        return [record.facts.get(name, math.nan) for record in records]

    edges = fact("edge")
    if not any(map(math.isfinite, edges)):  # none was measured: that of plain descent
        edges = [step_size_edge(r.lr, momentum=r.momentum) if r.lr else math.nan for r in records]
    return {
        "loss": [RunLine("on the probe", fact("loss")), RunLine("held out", fact("validation_loss"))],
        "sharpness": [RunLine("measured", fact("sharpness")), RunLine("stability limit", edges, dashed=True)],
        "trust ratio": [
            RunLine("measured/predicted", fact("trust")),
            RunLine("a small step", [1.0] * len(records), dashed=True),
        ],
    }


def _panel(name: str, lines: Sequence[RunLine]) -> Panel | None:
    """A panel of the curves that have points; None where the first of them has none."""
    known = [line for line in lines if sum(math.isfinite(value) for value in line.values) > 1]
    return Panel(name, known) if known and known[0] is lines[0] else None


def facts_of(watch: Watch) -> dict[str, str]:
    """What a page says at its end: size, probe, looks, what they cost, the step now, and the versions."""
    import torch

    from theodolite import __version__

    facts = {
        "parameters": f"{sum(p.numel() for p in watch.model.parameters()):,}",
        "probe": f"first batch {watch.subject.data.first().shapes()}",
        "measurements": f"{len(watch.records)}, level {watch.level}, every {watch.every}",
    }
    if watch.records and math.isfinite(watch.overhead):
        each = watch.records[-1].watching / len(watch.records)
        facts["overhead"] = f"{100 * watch.overhead:.3g} % of training time; {each:.3g} s per measurement"
    thinned = [record for record in watch.records if THINNED in record.facts]
    if thinned:
        names = ", ".join(left_out(thinned[-1]))
        facts["shortened measurements"] = f"{len(thinned)} of {len(watch.records)}, the last of them without {names}"
    last = watch.records[-1] if watch.records else None
    if last is not None and last.lr:
        facts["learning rate"] = f"{last.lr:g}" + (f", momentum {last.momentum:g}" if last.momentum else "")
    if "random" in watch.subject.seen:
        facts["answers"] = watch.subject.seen["random"]
    for number, line in enumerate(_alarms(watch.records), 1):
        facts[f"alarm {number}"] = line
    return {**facts, "made with": f"theodolite {__version__}, torch {torch.__version__}"}


def values_page(records: Sequence[Record], findings: Sequence[Finding]) -> str:
    """A page of the losses of a run, where nothing more could be read of it."""
    from theodolite.report.html import watch_page
    from theodolite.report.opening import Opening
    from theodolite.verbs.diagnosis import SEEN, Diagnosis

    told = Diagnosis("loss", tuple(findings), (SEEN,))
    opening = Opening(told, dashboard=dashboard_of(records, told).pictures(), alarm=alarm_of(records))
    facts = {"read": "the loss values that backward was called on; the loss could not be computed again"}
    return watch_page("loss", (), (), facts, phases=phases_of(records), opening=opening)
