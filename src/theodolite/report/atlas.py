"""The atlas of laws: a front page of cards, and a page for each law beside it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from theodolite.io.workers import Processes, completed
from theodolite.report.figures import verdict_figure
from theodolite.report.formulas import formula, prose
from theodolite.report.rendering import Frame, rendered
from theodolite.report.unicode_math import unicode_prose
from theodolite.report.views import Row, reading_row, slug
from theodolite.report.words import MARKS, case_words, count_words, outcome, plain, resolution_words, source_entries

if TYPE_CHECKING:
    from theodolite.core.law import Law, Verdict
    from theodolite.core.reading import Reading

ALONE = Frame(links=(("Atlas", "atlas.html"),))
"""The frame of an atlas that is no part of a site."""

OUTCOMES = ("holds", "broken", "inconclusive")


@dataclass(frozen=True)
class Charted:
    """A law with its verdict, the verdict under each broken assumption, its notes and its code."""

    verdict: Verdict
    breaks: Mapping[str, Verdict] = field(default_factory=dict)
    notes: str = ""
    code: str = ""


def atlas_files(
    charted: Sequence[Charted],
    topics: Mapping[str, str],
    references: Mapping[str, str],
    *,
    around: Frame | None = None,
    processes: Processes | None = None,
) -> dict[str, str]:
    """Every file of the atlas by its path: the front page, and a page for each law.

    ``topics`` describes each topic in one line, ``references`` spells out each bibliography key, ``around`` is the
    frame of the site that the atlas is part of. ``processes`` make the pages of the laws, if given.
    """
    frame = around or ALONE
    ordered = _ordered(charted, topics)
    places = [f"laws/{slug(one.verdict.law.name)}" for one in ordered]
    frames = _frames(ordered, places, frame)
    tasks = [(one, references, own) for one, own in zip(ordered, frames, strict=True)]
    made = dict(completed(law_page, tasks, jobs=processes.count if processes else 1, processes=processes))
    return {"atlas.html": atlas_page(ordered, topics, frame)} | {
        f"{place}.html": made[n] for n, place in enumerate(places)
    }


def atlas_page(charted: Sequence[Charted], topics: Mapping[str, str], frame: Frame | None = None) -> str:
    """The front page: a card for each law, with filters by topic, verdict and erratum that need no script."""
    ordered = _ordered(charted, topics)
    cards = [_card(one) for one in ordered]
    ends = [card["outcome"] for card in cards]
    return rendered(
        "atlas.html.j2",
        title="Atlas of laws",
        frame=frame or ALONE,
        cards=cards,
        topics=[
            (slug(topic), topic, topics.get(topic, "").partition(": ")[2] or topics.get(topic, ""))
            for topic in dict.fromkeys(card["topic"] for card in cards)
        ],
        counts=[(end, count_words(end, ends.count(end)), ends.count(end)) for end in OUTCOMES],
        readings=sum(len(one.verdict.readings) for one in ordered),
        errata=sum(card["erratum"] for card in cards),
    )


def law_page(charted: Charted, references: Mapping[str, str], frame: Frame | None = None) -> str:
    """A law with its figure, assumptions, cases, source and code."""
    name = charted.verdict.law.name
    shown = frame or replace(ALONE, root="../")
    return rendered("law.html.j2", title=name, entry=_sheet(charted, references), frame=shown)


def _ordered(charted: Iterable[Charted], topics: Mapping[str, str]) -> list[Charted]:
    place = {topic: number for number, topic in enumerate(topics)}
    return sorted(charted, key=lambda one: place.get(one.verdict.law.topic, len(place)))


def _frames(charted: Sequence[Charted], places: Sequence[str], frame: Frame) -> Iterable[Frame]:
    """The frame of each law's page, with the law before it and the one after."""
    ends = [(one.verdict.law.name, f"{place}.html") for one, place in zip(charted, places, strict=True)]
    around: list[tuple[str, str] | None] = [None, *ends, None]
    middles = list(pairwise(around))
    for (before, _), (_, after) in pairwise(middles):
        yield replace(frame, root="../", before=before, after=after)


def _card(charted: Charted) -> dict[str, Any]:
    """A law on the front page; ``dots`` are its readings on a strip whose middle half is the band."""
    law, end = charted.verdict.law, outcome(charted.verdict)
    factor = charted.verdict.resolution
    return {
        "id": slug(law.name),
        "name": law.name,
        "topic": law.topic,
        "outcome": end,
        "mark": MARKS[end],
        "claim": unicode_prose(law.claim),
        "formula": _formula(law),
        "resolution": _noticed(factor),
        "erratum": bool(law.erratum),
        "dots": tuple(place for reading in charted.verdict.readings if (place := _place(reading)) is not None)[:12],
    }


def _formula(law: Law) -> str:
    return formula(law.formula, display=True) if law.formula.strip() else ""


def _noticed(factor: float | None) -> str:
    """By how much every prediction must be off before the law is seen to fail.

    >>> _noticed(1.05), _noticed(2.0)
    ('notices 5 %', 'notices a factor of 2')
    """
    if factor is None:
        return ""
    return f"notices {plain(100 * (factor - 1), digits=1)} %" if factor < 1.2 else f"notices a factor of {factor:.3g}"


def _place(reading: Reading) -> float | None:
    """Where a reading lies on a strip of 100 whose band goes from 25 to 75; None where it has no band with a width."""
    band = reading.expected
    if band is None or not math.isfinite(reading.measured):
        return None
    if not math.isfinite(band.high - band.low):  # one-sided: inside is the middle
        return 50.0 if band.low <= reading.measured <= band.high else 95.0 if reading.measured > band.high else 5.0
    wide = band.high - band.low
    if wide <= 0:
        return 50.0 if reading.measured == band.low else None
    return round(min(97.0, max(3.0, 25 + 50 * (reading.measured - band.low) / wide)), 1)


def _sheet(charted: Charted, references: Mapping[str, str]) -> dict[str, Any]:
    """Everything that a law's own page shows."""
    verdict = charted.verdict
    law, end = verdict.law, outcome(verdict)
    rows = [reading_row(reading, f"case-{n}") for n, reading in enumerate(verdict.readings)]
    wrong: list[Row | None] = [reading_row(reading, "") for reading in verdict.refuted]
    wrong = wrong or [None] * len(rows)
    return {
        "law": law,
        "outcome": end,
        "mark": MARKS[end],
        "claim": prose(law.claim),
        "formula": _formula(law),
        "erratum": prose(law.erratum) if law.erratum else "",
        "refuted": any(r.status in ("above", "below") for r in verdict.refuted) if verdict.refuted else None,
        "figure": verdict_figure(verdict) if verdict.readings else "",
        "rows": tuple(zip(rows, wrong, strict=True)),
        "assumptions": tuple(
            _assumption(text, change, charted.breaks.get(text)) for text, change in law.assumes.items()
        ),
        "sources": tuple(source_entries(law.source, references)) if law.source else (),
        "method": _method(verdict),
        "notes": tuple(prose(" ".join(part.split())) for part in charted.notes.split("\n\n") if part.strip()),
        "code": charted.code,
    }


def _assumption(text: str, change: Mapping[str, object] | None, broken: Verdict | None) -> dict[str, Any]:
    """An assumption of a law, what breaks it, whether the break was seen (None: not tried), and its figure."""
    figure = verdict_figure(broken) if broken is not None and broken.readings else ""
    seen = None if broken is None else broken.broken
    return {"html": prose(text), "change": case_words(change) if change else "", "seen": seen, "figure": figure}


def _method(verdict: Verdict) -> str:
    law = verdict.law
    count = len(law.cases_of(verdict.size))
    cases = f"{count} case{'s' if count != 1 else ''}, {verdict.size} size"
    tolerance = f"; relative tolerance {law.tolerance:g}" if law.tolerance else ""
    observed = f"; observed, not derived: {law.observed}" if law.observed else ""
    return f"{cases}{tolerance}; {resolution_words(verdict)}{observed}"
