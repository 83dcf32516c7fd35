"""What the templates show of readings: arranged, with words, fractions and figures already made."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from theodolite.core.reading import Band, Reading
from theodolite.report.figures import Plot, plots_of
from theodolite.report.words import MARKS, WORST, by_quantity, expectation, group_words, number, plain, worst_status

if TYPE_CHECKING:
    from theodolite.core.question import Answer, Question


@dataclass(frozen=True)
class Bullet:
    """Where band, interval and value lie on a strip, in hundredths of its length."""

    low: float
    high: float
    left: float
    right: float
    value: float


@dataclass(frozen=True)
class Row:
    """One reading in words."""

    id: str
    where: str
    value: str
    expected: str
    center: str
    status: str
    mark: str
    meaning: str
    bullet: Bullet | None
    expects: bool
    quantity: str


@dataclass(frozen=True)
class Meaning:
    """A meaning that several rows share: of how many it is true, and which statuses they have."""

    text: str
    count: int
    statuses: tuple[tuple[str, str], ...]
    everywhere: bool


@dataclass(frozen=True)
class ReadingGroup:
    """All readings of one quantity, but for those ``left`` out. A meaning that rows share is told once."""

    quantity: str
    rows: tuple[Row, ...]
    shared: tuple[Meaning, ...]
    plots: tuple[Plot, ...]
    status: str = "no reference"
    mark: str = ""
    measured: str = ""
    expected: str = ""
    alarming: bool = False
    against: str = ""
    left: int = 0


@dataclass(frozen=True)
class Section:
    """One instrument with all its groups."""

    id: str
    question: Question
    seconds: str
    groups: tuple[ReadingGroup, ...]

    @property
    def status(self) -> str:
        """That of the group which should be seen first."""
        return min((group.status for group in self.groups), key=WORST.index, default="no reference")

    @property
    def alarming(self) -> bool:
        """Whether a law or the needs of a network are left anywhere in it."""
        return any(group.alarming for group in self.groups)

    @property
    def rows(self) -> tuple[Row, ...]:
        """Every row of the section."""
        return tuple(row for group in self.groups for row in group.rows)


def survey_sections(answers: Sequence[Answer], *, figures: bool = True) -> list[Section]:
    """The answers of a survey, instrument by instrument."""
    sections = []
    for place, answer in enumerate(answers):
        name = f"i{place}-{slug(answer.question.name)}"
        seconds = f"{answer.seconds:.2g} s" if answer.seconds < 10 else f"{answer.seconds:.0f} s"
        groups = tuple(
            _group(quantity, readings, f"{name}-{number}", figures)
            for number, (quantity, readings) in enumerate(by_quantity(answer.readings))
        )
        sections.append(Section(name, answer.question, seconds if answer.seconds > 0 else "", groups))
    return sections


def shortened_sections(sections: Sequence[Section], most: int) -> list[Section]:
    """Sections whose quantities have at most so many rows, those to be seen first; how many are left out is noted."""
    return [replace(section, groups=tuple(_shortened(group, most) for group in section.groups)) for section in sections]


def _shortened(group: ReadingGroup, most: int) -> ReadingGroup:
    if len(group.rows) <= most:
        return group
    first = sorted(group.rows, key=lambda row: WORST.index(row.status))[:most]
    kept = {row.id for row in first}
    return replace(group, rows=tuple(row for row in group.rows if row.id in kept), left=len(group.rows) - most)


def slug(name: str) -> str:
    """A name that is safe in an address: the law's own name where it is one.

    >>> slug("marchenko-pastur"), slug("<b>"), slug("")
    ('marchenko-pastur', 'b', 'unnamed')
    """
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-") or "unnamed"


def _group(quantity: str, readings: Sequence[Reading], name: str, figures: bool) -> ReadingGroup:
    strip = _common_strip(readings)
    rows = [reading_row(reading, f"{name}-{place}", strip) for place, reading in enumerate(readings)]
    shared = _shared_meanings(rows) if len(rows) > 1 else ()
    plots = tuple(plots_of(readings)) if figures else ()
    worst, alarming = worst_status(readings), any(reading.alarming for reading in readings)
    return ReadingGroup(
        quantity, tuple(rows), shared, plots, worst, MARKS[worst], *group_words(readings), alarming, _against(readings)
    )


def _against(readings: Sequence[Reading]) -> str:
    """What the bands are: a law, chance or the needs of a network; empty where there is none."""
    return ", ".join(dict.fromkeys(reading.against for reading in readings if reading.expected is not None))


def _shared_meanings(rows: Sequence[Row]) -> tuple[Meaning, ...]:
    """The meanings told above the table; none where most rows have one of their own, which then stands beside them."""
    members: dict[str, list[Row]] = {}
    for row in rows:
        if row.meaning:
            members.setdefault(row.meaning, []).append(row)
    if 2 * len(members) > len(rows):
        return ()
    return tuple(
        Meaning(text, len(own), tuple(dict.fromkeys((row.status, row.mark) for row in own)), len(own) == len(rows))
        for text, own in members.items()
    )


def reading_row(reading: Reading, name: str, strip: tuple[float, float] | None = None) -> Row:
    """A reading in words, with its bullet on its own strip or on one that it shares."""
    return Row(
        id=name,
        where=reading.where,
        value=number(reading.measured, reading.stderr),
        expected=expectation(reading.expected),
        center=_center(reading.expected),
        status=reading.status,
        mark=MARKS[reading.status],
        meaning=reading.meaning.strip(),
        bullet=_bullet(reading, strip),
        expects=reading.expected is not None,
        quantity=reading.quantity,
    )


def _center(band: Band | None) -> str:
    """The number in the middle of a band that has two ends, where the band's own words do not already say it."""
    if band is None or not math.isfinite(band.high - band.low):
        return ""
    center = plain(band.middle)
    return "" if center == expectation(band) else center


def _common_strip(readings: Sequence[Reading]) -> tuple[float, float] | None:
    """One scale for all rows where all have the same band, so that they can be compared down the column."""
    strips = [_strip(reading) for reading in readings]
    if len({reading.expected for reading in readings}) != 1 or len(readings) < 2:
        return None
    known = [strip for strip in strips if strip is not None]
    if not known:
        return None
    low, high = min(strip[0] for strip in known), max(strip[1] for strip in known)
    narrowest = min(strip[1] - strip[0] for strip in known)
    return (low, high) if high - low <= 8 * narrowest else None


def _strip(reading: Reading) -> tuple[float, float] | None:
    """The ends of a strip that holds band and interval with some air."""
    if not isinstance(reading.expected, Band) or reading.status == "invalid":
        return None
    ends = [v for v in (reading.expected.low, reading.expected.high, *reading.interval) if math.isfinite(v)]
    low, high = min(ends), max(ends)
    air = 0.14 * (high - low) or 0.05 * abs(high) or 1.0
    return (low - air, high + air) if math.isfinite(high - low + air) else None


def _bullet(reading: Reading, strip: tuple[float, float] | None) -> Bullet | None:
    ends = _strip(reading)
    if ends is None or reading.expected is None:
        return None
    low, high = strip or ends

    def part(value: float) -> float:
        return round(100 * min(1.0, max(0.0, (value - low) / (high - low))), 2)

    left, right = reading.interval
    return Bullet(
        part(reading.expected.low), part(reading.expected.high), part(left), part(right), part(reading.measured)
    )
