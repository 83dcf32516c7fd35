"""A run at one glance: curves, heat strips and phases over one axis of steps, drawn by hand so that it is made in no time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape

from theodolite.report.words import plain, printable, shortened

Across = Callable[[float], float]
WIDE, LEFT, RIGHT, PANEL, ROW, GAP = 900.0, 150.0, 12.0, 110.0, 9.0, 26.0
LETTER = 6.3
"""How wide a small letter is, about."""
BAD = ("dead", "divergent")
MOST_ROWS, MOST_COLUMNS, MOST_MARKS = 60, 120, 6


@dataclass(frozen=True)
class RunLine:
    """One curve of a panel; ``dashed`` are references."""

    label: str
    values: Sequence[float]
    dashed: bool = False


@dataclass(frozen=True)
class Panel:
    """Curves that share a vertical axis, logarithmic where they span decades."""

    name: str
    lines: Sequence[RunLine]


@dataclass(frozen=True)
class Heat:
    """One number for each layer and step, as colors on a logarithmic scale."""

    name: str
    layers: Sequence[str]
    values: Sequence[Sequence[float]]  # (layers, steps)


@dataclass(frozen=True)
class Room:
    """How wide a picture is, where its panels begin, and how much is left above each for words that have no place beside it."""

    name: str
    wide: float
    left: float
    above: float

    @property
    def right(self) -> float:
        """Where panels end."""
        return self.wide - RIGHT


DESK, PHONE = Room("wide", WIDE, LEFT, 0.0), Room("narrow", 360.0, 8.0, 20.0)


@dataclass(frozen=True)
class Dashboard:
    """All of a run: ``phases`` are (first step, name), ``marks`` (step, words, whether it is bad)."""

    steps: Sequence[float]
    panels: Sequence[Panel] = ()
    heats: Sequence[Heat] = ()
    phases: Sequence[tuple[float, str]] = ()
    marks: Sequence[tuple[float, str, bool]] = field(default_factory=tuple)

    def pictures(self) -> str:
        """The picture for a desk and the one for a phone, of which the style sheet shows one."""
        return self.svg() + self.svg(PHONE)

    def svg(self, room: Room = DESK) -> str:
        """The picture; empty where fewer than two looks were taken."""
        if len(self.steps) < 2:
            return ""
        low, high = min(self.steps), max(self.steps)
        span = (high - low) or 1.0

        def across(step: float) -> float:
            return room.left + (room.right - room.left) * (min(max(step, low), high) - low) / span

        top, parts = 4.0, []
        places = [across(step) for step in self.steps]
        for panel in self.panels:
            parts.append(_panel(panel, places, top, room))
            top += room.above + PANEL + GAP
        for heat in self.heats:
            drawn, tall = _heat(heat, places, top, room)
            parts.append(drawn)
            top += room.above + tall + GAP
        parts.append(_phases(self.phases, across, top, high, room))
        top += 30 + room.above
        for step, words, bad in self.marks:
            kind = "th-d-bad" if bad else "th-d-mark"
            parts.append(
                f'<line class="{kind}" x1="{across(step):.1f}" x2="{across(step):.1f}" y1="0" y2="{top:.0f}">'
                f"<title>{escape(printable(words))}</title></line>"
            )
        parts.append(_axis(low, high, across, top, room))
        below, tall = _named(self.marks, across, top + 24, room)
        parts.append(below)
        top += tall
        said = f"The run from step {plain(low)} to {plain(high)}: " + ", ".join(p.name for p in self.panels)
        return (
            f'<svg class="th-dashboard th-{room.name}" viewBox="0 0 {room.wide:.0f} {top + 26:.0f}" role="img" '
            f'aria-label="{escape(said)}">{"".join(parts)}</svg>'
        )


def _panel(panel: Panel, places: Sequence[float], top: float, room: Room) -> str:
    known = [v for line in panel.lines for v in line.values if math.isfinite(v)]
    logs = bool(known) and min(known) > 0 and max(known) > 20 * min(known)
    scaled = [math.log10(v) for v in known if v > 0] if logs else known
    low, high = (min(scaled), max(scaled)) if scaled else (0.0, 1.0)
    if high - low < 1e-12:
        low, high = low - 0.5, high + 0.5
    upper = top + room.above

    def down(value: float) -> float | None:
        if not math.isfinite(value) or (logs and value <= 0):
            return None
        return upper + PANEL - PANEL * ((math.log10(value) if logs else value) - low) / (high - low)

    parts = [
        f'<rect class="th-d-ground" x="{room.left}" y="{upper}" width="{room.right - room.left}" height="{PANEL}"/>'
    ]
    ends = [plain(10**end if logs else end, digits=3) for end in (high, low)]
    parts.append(_ticks(ends, upper, room))
    for number, line in enumerate(panel.lines):
        points = [(x, y) for x, v in zip(places, line.values, strict=True) if (y := down(v)) is not None]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        style = f"th-d-line th-d-{number}" + (" th-d-dashed" if line.dashed else "")
        parts.append(f'<polyline class="{style}" points="{path}"><title>{escape(line.label)}</title></polyline>')
    keys = [f"{'┄' if line.dashed else '━'} {shortened(printable(line.label), 19)}" for line in panel.lines]
    return "".join(parts) + _words(panel.name, keys, top, room, colored=True)


def _ticks(ends: Sequence[str], top: float, room: Room) -> str:
    """The ends of an upright axis: beside the panel, or inside it where there is no room."""
    if room.above:
        places = ((room.left + 4, top + 12), (room.left + 4, top + PANEL - 4))
        return "".join(
            f'<text class="th-d-key" x="{x}" y="{y}">{end}</text>' for (x, y), end in zip(places, ends, strict=True)
        )
    return "".join(
        f'<text class="th-d-tick" x="{room.left - 6}" y="{y}">{end}</text>'
        for y, end in zip((top + 10, top + PANEL), ends, strict=True)
    )


def _words(name: str, keys: Sequence[str], top: float, room: Room, *, colored: bool = False) -> str:
    """The name of a part and its keys: one under the other beside it, or in one line above it."""
    parts = [f'<text class="th-d-name" x="0" y="{top + 14}">{escape(printable(name))}</text>']
    x = 1.3 * LETTER * len(name) + 8
    for number, key in enumerate(keys):
        place = f'x="{x:.0f}" y="{top + 14}"' if room.above else f'x="0" y="{top + 34 + 17 * number}"'
        kind = f" th-d-{number}" if colored else ""
        parts.append(f'<text class="th-d-key{kind}" {place}>{escape(key)}</text>')
        x += LETTER * len(key) + 8
    return "".join(parts)


def _heat(heat: Heat, places: Sequence[float], top: float, room: Room) -> tuple[str, float]:
    """Cells from light to dark over the decades seen; a number that is not finite is red, zero is empty."""
    keep = range(0, len(heat.layers), math.ceil(len(heat.layers) / MOST_ROWS))
    columns = range(0, len(places), math.ceil(len(places) / MOST_COLUMNS))
    edges = [*(places[column] for column in columns), places[-1] + 4]
    logs = [math.log10(v) for row in heat.values for v in row if math.isfinite(v) and v > 0]
    low, high = (min(logs), max(logs)) if logs else (0.0, 1.0)
    tall = max(ROW * len(keep), 40.0)
    each = tall / max(len(keep), 1)
    first = f"top row: {shortened(printable(heat.layers[0]), 17)}" if heat.layers else ""
    keys = [_ends(low, high), *([first] if first and (room.above or tall >= 60) else [])]
    parts = [_words(heat.name, keys, top, room)]
    for number, layer in enumerate(keep):
        for column, place in enumerate(columns):
            value = heat.values[layer][place]
            if value == 0:
                continue
            finite = math.isfinite(value)
            share = (math.log10(value) - low) / (high - low) if finite and high > low else 0.5
            kind = f'fill-opacity="{0.1 + 0.9 * share:.2f}"' if finite else 'class="th-d-bad"'
            x, y, wide = edges[column], top + room.above + each * number, edges[column + 1] - edges[column]
            parts.append(f'<rect {kind} x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{each:.1f}"/>')
    return f'<g class="th-d-heat">{"".join(parts)}</g>', tall


def _ends(low: float, high: float) -> str:
    return f"{plain(10**low, digits=2)} to {plain(10**high, digits=2)}"


def _phases(phases: Sequence[tuple[float, str]], across: Across, top: float, last: float, room: Room) -> str:
    parts, top = [f'<text class="th-d-name" x="0" y="{top + 15}">phase</text>'], top + room.above
    for place, (step, name) in enumerate(phases):
        left = across(step)
        right = across(phases[place + 1][0]) if place + 1 < len(phases) else across(last)
        kind = "bad" if name in BAD else "wild" if name in ("catapult", "edge") else "calm"
        wide = max(right - left, 2.0)
        parts.append(
            f'<rect class="th-d-{kind}" x="{left:.1f}" y="{top}" width="{wide:.1f}" height="22"><title>{name} from step '
            f"{plain(step)}</title></rect>"
        )
        if wide > 7.5 * len(name) + 6:
            parts.append(f'<text class="th-d-phase th-d-on-{kind}" x="{left + 4:.1f}" y="{top + 15}">{name}</text>')
    return "".join(parts)


def _named(marks: Sequence[tuple[float, str, bool]], across: Across, top: float, room: Room) -> tuple[str, float]:
    """The marks under the axis, each with its first words where it lies; and how tall they are."""
    parts = []
    for number, (step, words, bad) in enumerate(marks[:MOST_MARKS]):
        place, down = across(step), top + 15 * number
        end = place > (room.left + room.wide) / 2
        kind = "th-d-name-bad" if bad else "th-d-name-mark"
        space = int((place if end else room.wide - place) / LETTER) - 2
        said = escape(shortened(printable(_first_words(words)), min(60, space)))
        x, text = (place + 4, f"{said} ▲") if end else (place - 4, f"▲ {said}")
        anchor = ' text-anchor="end"' if end else ""
        parts.append(f'<text class="{kind}" x="{x:.1f}" y="{down + 10:.1f}"{anchor}>{text}</text>')
    return "".join(parts), 15.0 * len(parts) + (6 if parts else 0)


def _first_words(words: str) -> str:
    """What comes before the numbers: 'step 40: step too large' of a line of a log.

    >>> _first_words("step 40: step too large: the loss rose"), _first_words("divergent: the loss grew")
    ('step 40: step too large', 'divergent')
    """
    parts = words.split(": ")
    return ": ".join(parts[:2]) if parts[0].startswith("step ") else parts[0] if len(parts) > 1 else words


def _axis(low: float, high: float, across: Across, top: float, room: Room) -> str:
    ticks = sorted({round(low + share * (high - low)) for share in (0, 0.25, 0.5, 0.75, 1)})
    if room.above:  # the ends stand inside, and the first says what they are
        ends = [f'<text class="th-d-step th-d-start" x="{room.left}" y="{top + 16}">step {plain(ticks[0])}</text>']
        ends += [f'<text class="th-d-step th-d-end" x="{room.right}" y="{top + 16}">{plain(ticks[-1])}</text>']
        inner = ticks[1:-1]
    else:
        ends, inner = [f'<text class="th-d-name" x="0" y="{top + 16}">step</text>'], ticks
    middle = (f'<text class="th-d-step" x="{across(tick):.1f}" y="{top + 16}">{plain(tick)}</text>' for tick in inner)
    return "".join((*ends, *middle))
