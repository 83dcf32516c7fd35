"""A run at one glance: curves, heat strips and phases over one axis of steps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from theodolite.report.drawing.charts import Canvas, Polyline
from theodolite.report.drawing.scales import Scale, scale_of
from theodolite.report.drawing.shapes import LETTER, group_color, path, picture, short, text
from theodolite.report.words import plain, printable, shortened

WIDE, LEFT, RIGHT, PANEL, ROW, GAP = 900.0, 200.0, 12.0, 110.0, 9.0, 26.0
BAD = ("dead", "divergent")
MOST_ROWS, MOST_COLUMNS, MOST_MARKS, HEATS = 60, 120, 6, 12


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

    @property
    def has_a_course(self) -> bool:
        """Whether it was measured at two steps or more; 0 is a step without a measurement."""
        return sum(any(column) for column in zip(*self.values, strict=True)) > 1

    def scale(self) -> Scale:
        """From the smallest number seen to the largest."""
        seen = [value for row in self.values for value in row if math.isfinite(value) and value > 0] or [1.0]
        return Scale(min(seen), max(seen), log=True)

    def keys(self, tall: float, room: Room) -> list[str]:
        """What the colors mean, and which layer is the first where there is room for it."""
        first = f"top row: {shortened(printable(self.layers[0]), 17)}" if self.layers else ""
        scale = self.scale()
        ends = f"{plain(scale.low, digits=2)} to {plain(scale.high, digits=2)}"
        return [ends, *([first] if first and (room.above or tall >= 60) else [])]


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

    def canvas(self, across: Scale, top: float, up: Scale | None = None) -> Canvas:
        """Where a part that begins at the ``top`` has its numbers."""
        return Canvas(across, up or Scale(0.0, 1.0), self.left, self.right, top + self.above, top + self.above + PANEL)


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
        """The picture; empty where fewer than two measurements were made."""
        if len(self.steps) < 2:
            return ""
        steps = Scale(min(self.steps), max(self.steps) if max(self.steps) > min(self.steps) else min(self.steps) + 1)
        top, parts = 4.0, []
        for panel in self.panels:
            parts += _panel(panel, self.steps, steps, room, top)
            top += room.above + PANEL + GAP
        for heat in (heat for heat in self.heats if heat.has_a_course):
            drawn, tall = _heat(heat, self.steps, room.canvas(steps, top))
            parts += [*_words(heat.name, heat.keys(tall, room), top, room), *drawn]
            top += room.above + tall + GAP
        canvas = room.canvas(steps, top)
        parts += _phases(self.phases, canvas, top)
        top += 30 + room.above
        for step, words, bad in self.marks:
            parts.append(path(f"M{short(canvas.across(step))},0V{top:.0f}", "bad" if bad else "mark-line", title=words))
        parts += _step_axis(canvas, top, room)
        below = list(_named(self.marks, canvas, top + 24, room))
        tall = top + 26 + (15.0 * len(below) + 6 if below else 0)
        said = f"The run from step {plain(steps.low)} to {plain(steps.high)}: " + ", ".join(p.name for p in self.panels)
        return picture([*parts, *below], (room.wide, tall), said, f"th-figure th-dashboard th-{room.name}")


def _panel(panel: Panel, steps: Sequence[float], across: Scale, room: Room, top: float) -> list[str]:
    known = [v for line in panel.lines for v in line.values if math.isfinite(v)]
    logs = bool(known) and min(known) > 0 and max(known) > 20 * min(known)
    canvas = room.canvas(across, top, scale_of(known, log=logs))
    ticks = [(canvas.down(value), words) for value, words in canvas.y.ticks(4)]
    left, right = short(canvas.left), short(canvas.right)
    ground = f"M{left},{short(canvas.top)}H{right}V{short(canvas.bottom)}H{left}z"
    parts = [path(ground, "ground"), path("".join(f"M{left},{short(y)}H{right}" for y, _ in ticks), "grid")]
    for number, line in enumerate(panel.lines):
        style = "dashed" if line.dashed else ""
        parts.append(Polyline(steps, line.values, group_color(number), style, title=line.label).drawn(canvas))
    keys = [f"{'┄' if line.dashed else '━'} {shortened(printable(line.label), 22)}" for line in panel.lines]
    if room.above:  # inside the panel, where there is no room beside it
        parts += [
            text(canvas.left + 3, y - 2 if y - 2 > canvas.top + 9 else y + 10, words, "soft") for y, words in ticks
        ]
    else:
        parts += [text(canvas.left - 6, y + 4, words, "soft end") for y, words in ticks]
    return [*parts, *_words(panel.name, keys, top, room, colored=True)]


def _words(name: str, keys: Sequence[str], top: float, room: Room, *, colored: bool = False) -> list[str]:
    """The name of a part and its keys: one under the other beside it, or in one line above it."""
    parts = [text(0, top + 14, name, "name")]
    x = 1.3 * LETTER * len(name) + 8
    for number, key in enumerate(keys):
        place = (x, top + 14) if room.above else (0.0, top + 34 + 17 * number)
        parts.append(text(*place, key, "" if colored else "soft", color=group_color(number) if colored else ""))
        x += LETTER * len(key) + 8
    return parts


def _heat(heat: Heat, steps: Sequence[float], canvas: Canvas) -> tuple[list[str], float]:
    """Cells from light to dark over the decades seen, and how tall they are; what is not finite is red, zero is empty."""
    keep = range(0, len(heat.layers), math.ceil(len(heat.layers) / MOST_ROWS))
    columns = range(0, len(steps), math.ceil(len(steps) / MOST_COLUMNS))
    edges = [*(canvas.across(steps[column]) for column in columns), canvas.right + 4]
    tall = max(ROW * len(keep), 40.0)
    each = tall / max(len(keep), 1)
    scale, shades = heat.scale(), dict[str, list[str]]()
    for number, layer in enumerate(keep):
        for column, place in enumerate(columns):
            value = heat.values[layer][place]
            if value == 0:
                continue
            dark = f"heat heat{round(HEATS * scale.share(value))}" if scale.shows(value) else "bad"
            x, y, wide = edges[column], canvas.top + each * number, edges[column + 1] - edges[column]
            cell = f"M{short(x)},{short(y)}h{short(wide)}v{short(each)}h{short(-wide)}z"
            shades.setdefault(dark, []).append(cell)
    return [path("".join(own), dark) for dark, own in shades.items()], tall


def _phases(phases: Sequence[tuple[float, str]], canvas: Canvas, top: float) -> Iterator[str]:
    yield text(0, top + 15, "phase", "name")
    for place, (step, name) in enumerate(phases):
        left = canvas.across(step)
        right = canvas.across(phases[place + 1][0] if place + 1 < len(phases) else canvas.x.high)
        kind = "bad" if name in BAD else "wild" if name in ("catapult", "edge") else "calm"
        wide = max(right - left, 2.0)
        box = f"M{short(left)},{short(canvas.top)}h{short(wide)}v22h{short(-wide)}z"
        yield path(box, kind, title=f"{name} from step {plain(step)}")
        if wide > 7.5 * len(name) + 6:
            yield text(left + 4, canvas.top + 15, name, f"on-{kind}")


def _named(marks: Sequence[tuple[float, str, bool]], canvas: Canvas, top: float, room: Room) -> Iterator[str]:
    """The marks under the axis, each in a line, with its first words where it lies."""
    for number, (step, words, bad) in enumerate(marks[:MOST_MARKS]):
        place, down = canvas.across(step), top + 15 * number + 10
        end = place > (room.left + room.wide) / 2
        space = int((place if end else room.wide - place) / LETTER) - 2
        said = shortened(printable(_first_words(words)), min(60, space))
        color = "wrong" if bad else ""
        if end:
            yield text(place + 4, down, f"{said} ▲", "soft end", color=color)
        else:
            yield text(place - 4, down, f"▲ {said}", "soft", color=color)


def _first_words(words: str) -> str:
    """What comes before the numbers: 'step 40: step too large' of a line of a log.

    >>> _first_words("step 40: step too large: the loss rose"), _first_words("divergent: the loss grew")
    ('step 40: step too large', 'divergent')
    """
    parts = words.split(": ")
    return ": ".join(parts[:2]) if parts[0].startswith("step ") else parts[0] if len(parts) > 1 else words


def _step_axis(canvas: Canvas, top: float, room: Room) -> Iterator[str]:
    low, high = canvas.x.low, canvas.x.high
    ticks = sorted({round(low + share * (high - low)) for share in (0, 0.25, 0.5, 0.75, 1)})
    if room.above:  # the ends stand inside, and the first says what they are
        yield text(room.left, top + 16, f"step {plain(ticks[0])}", "soft")
        yield text(room.right, top + 16, plain(ticks[-1]), "soft end")
        ticks = ticks[1:-1]
    else:
        yield text(0, top + 16, "step", "name")
    for tick in ticks:
        kind = "soft end" if tick == round(high) else "soft middle"  # the last one would be cut off
        yield text(canvas.across(tick), top + 16, plain(tick), kind)
