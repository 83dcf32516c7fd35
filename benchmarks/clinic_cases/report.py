"""The clinic's results as a table, as a page of the documentation, and as what the package says of its own findings."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

Row = dict[str, Any]


def interval(hits: int, total: int) -> str:
    """A share with Wilson's 95 % interval."""
    if not total:
        return "–"
    z, p = 1.96, hits / total
    middle = (p + z * z / (2 * total)) / (1 + z * z / total)
    half = z / (1 + z * z / total) * math.sqrt(p * (1 - p) / total + z * z / (4 * total * total))
    return f"{hits}/{total} = {p:.0%} ({max(0.0, middle - half):.0%} to {middle + half:.0%})"


KEPT, LEARNS = 0.9, 0.25
"""A run that keeps more of its twin's skill than this is not sick; a twin whose skill is below that share learns nothing."""


def has_cost(row: Row) -> bool:
    """Whether a sick run ended clearly worse than its twin; also where there is none, as of a checkpoint that was spoilt."""
    if "twin" not in row:
        return True
    good, base = row["twin"]
    skill = good - base
    poor = row["score"] if row["score"] == row["score"] else base
    return bool(skill > LEARNS * (1 - base) and poor - base <= KEPT * skill)


def put_twins(rows: Iterable[Row], known: dict[str, Any], twins: Iterable[Row]) -> None:
    """Write into each row of a sick run what its twin scores, where that was run."""
    scores = {(one["twin"], one["seed"]): (one["score"], one["chance"]) for one in twins}
    for row in rows:
        key = known[row["case"]].twin_name if row["ailment"] and "score" in row else None, row["seed"]
        if key in scores:
            row["twin"] = scores[key]


def counted(rows: Iterable[Row]) -> list[Row]:
    """Healthy runs, and sick ones that cost something."""
    return [row for row in rows if not row["ailment"] or has_cost(row)]


def left_out(rows: Iterable[Row]) -> list[Row]:
    """Sick runs that cost nothing."""
    return [row for row in rows if row["ailment"] and not has_cost(row)]


def by_ailment(rows: Iterable[Row]) -> list[tuple[str, int, int, int, int, int, int]]:
    """Of each ailment: its name, runs, found, named at all, named first, cured, remedies tried."""
    groups = defaultdict(list)
    for row in rows:
        groups[row["ailment"] or "healthy"].append(row)
    lines = []
    for name in sorted(groups, key=lambda n: (n == "healthy", n)):
        own = groups[name]
        tried = [row["cured"] for row in own if row.get("cured") is not None]
        counts = [sum(row[key] for row in own) for key in ("found", "among", "first")]
        lines.append((name, len(own), *counts, sum(tried), len(tried)))
    return lines


def overall(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """The figures of all runs together, in words."""
    sick = [row for row in rows if row["ailment"]]
    healthy = [row for row in rows if not row["ailment"]]
    tried = [row["cured"] for row in sick if row.get("cured") is not None]
    numbers = [row["cured"] for row in sick if row.get("number")]
    times = sorted(row["seconds"] for row in rows)
    named = [(row, finding) for row in rows for finding in row["findings"] if finding["severity"] != "note"]
    return [
        ("sick runs found", interval(sum(r["found"] for r in sick), len(sick))),
        ("cause named first", interval(sum(r["first"] for r in sick), len(sick))),
        ("cause named at all", interval(sum(r["among"] for r in sick), len(sick))),
        ("healthy runs with alarm", interval(sum(r["found"] for r in healthy), len(healthy))),
        ("alarms that are right", interval(sum(f["name"] in r["right"] for r, f in named), len(named))),
        ("remedy cures", interval(sum(tried), len(tried))),
        ("… a number or an initialization", interval(sum(numbers), len(numbers))),
        ("seconds a diagnosis", f"median {times[len(times) // 2]:.1f}, longest {times[-1]:.1f}" if times else "–"),
    ]


def misses(rows: Iterable[Row]) -> list[tuple[str, str]]:
    """Sick runs whose cause was not named first and healthy ones with an alarm, with what was said."""
    found = []
    for row in rows:
        if not row["first"] if row["ailment"] else row["found"]:
            said = [finding["name"] for finding in row["findings"] if finding["severity"] != "note"]
            found.append((row["case"], ", ".join(said) or "nothing"))
    return sorted(found)


def table(rows: Sequence[Row]) -> str:
    """For the terminal."""
    rows, harmless, every = counted(rows), left_out(rows), rows
    lines = [f"{'ailment':24} {'runs':>5} {'found':>6} {'among':>6} {'first':>6} {'cured':>8}"]
    for name, runs, found, among, first, cured, tried in by_ailment(rows):
        lines.append(f"{name:24} {runs:5} {found:6} {among:6} {first:6} {f'{cured}/{tried}':>8}")
    lines += ["", *(f"{what:32} {figure}" for what, figure in overall(rows))]
    lines += ["", *(f"{case}: {said}" for case, said in misses(rows))]
    lines += ["", _without(harmless, every), *(f"  {row['case']}" for row in harmless)]
    return "\n".join(lines)


def _without(harmless: Sequence[Row], every: Sequence[Row]) -> str:
    """What was left out, and the figures that it would have made."""
    sick = [row for row in every if row["ailment"]]
    alarmed = sum(row["found"] for row in harmless)
    return (
        f"{len(harmless)} runs with an ailment put there keep more than nine tenths of their twin's skill, or their twin learns "
        f"nothing: they cost nothing, and are left out by program ({alarmed} of them got an alarm). With them "
        f"{interval(sum(r['found'] for r in sick), len(sick))} would be found and "
        f"{interval(sum(r['first'] for r in sick), len(sick))} named first."
    )


def page(rows: Sequence[Row], split: str, planned: int) -> str:
    """For docs/clinic.md; where fewer runs than planned were made, it says so."""
    made, harmless, every, rows = len(rows), left_out(rows), rows, counted(rows)
    day = datetime.now(UTC).date().isoformat()
    sick = sum(row["ailment"] is not None for row in rows)
    part = "" if made >= planned else f" These are {made} of its {planned} runs, chosen at random until time ran out."
    lines = [
        "# The clinic",
        "",
        "How often the diagnosis is right. Each run is trained as its script says, watched, and diagnosed at the end; the fault",
        "is known, because it was put there. A faulty run must end worse than its twin, the same script without the fault:",
        "if it keeps more than nine tenths of the twin's skill (score above chance), a program leaves it out and lists it.",
        f'Thresholds were chosen on one part of the collection; the figures are for the part "{split}",',
        f"{'with other architectures and seeds' if split == 'unseen' else 'the one they were chosen on'}: {sick} faulty runs and "
        f"{len(rows) - sick} healthy ones, on {day}. An alarm is a warning or worse. Seconds are of one core.{part}",
        "",
        f"Made by `python -m benchmarks.clinic --split {split} --cure`, written by `python benchmarks/figures.py`.",
        "",
        "| of all runs | with 95 % interval |",
        "| --- | --- |",
        *(f"| {what} | {figure} |" for what, figure in overall(rows)),
        "",
        "| ailment | runs | found | named at all | named first | cured |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, runs, found, among, first, cured, tried in by_ailment(rows):
        own = (among, first, f"{cured} of {tried}" if tried else "–") if name != "healthy" else ("–", "–", "–")
        lines.append(f"| {name} | {runs} | {found} | " + " | ".join(map(str, own)) + " |")
    lines += ["", "Runs with a wrong diagnosis, and what was found in them:", ""]
    lines += [f"- `{case}`: {said}" for case, said in misses(rows)] or ["none"]
    lines += ["", _without(harmless, every), ""]
    lines += [f"- `{row['case']}`: {', '.join(f['name'] for f in row['findings']) or 'nothing'}" for row in harmless]
    return "\n".join(lines) + "\n"
