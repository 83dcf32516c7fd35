"""Charts: points with error bars, lines, areas and bars over two axes, with a legend."""

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace

from theodolite.report.drawing.scales import Scale
from theodolite.report.drawing.shapes import (
    LETTER,
    Point,
    flowing,
    group_color,
    joined,
    markers,
    path,
    picture,
    short,
    text,
)
from theodolite.report.words import shortened

WIDTH, PLOT, ENLARGED = 430.0, 205.0, 1.32
"""The width of a figure and the height of its plot in the figure's own units, and by how much it grows where there is room."""

SMALL, SMALL_EDGE, SMALL_BELOW = (320.0, 150.0), 8.0, 30.0
MOST_POINTS = 120
Values = Sequence[float]


@dataclass(frozen=True)
class Canvas:
    """Where the numbers of two axes lie on the paper."""

    x: Scale
    y: Scale
    left: float
    right: float
    top: float
    bottom: float

    def across(self, value: float) -> float:
        """The place along the paper."""
        return self.left + self.x.share(value) * (self.right - self.left)

    def down(self, value: float) -> float:
        """The place down the paper."""
        return self.bottom - self.y.share(value) * (self.bottom - self.top)

    def places(self, x: Values, y: Values) -> list[Point]:
        """Points of the paper."""
        left, wide, bottom, tall = self.left, self.right - self.left, self.bottom, self.bottom - self.top
        shares = zip(self.x.shares(x), self.y.shares(y), strict=True)
        return [(left + a * wide, bottom - b * tall) for a, b in shares]


@dataclass(frozen=True)
class Points:
    """Measurements, with bars of one error each; a ``group`` has its own color and mark, -1 is ink."""

    x: Values = ()
    y: Values = ()
    errors: Values = ()
    group: int = -1
    label: str = ""

    def drawn(self, canvas: Canvas) -> str:
        """The bars below, the marks above."""
        seen = self.shown(canvas)
        marks = markers(canvas.places([self.x[k] for k in seen], [self.y[k] for k in seen]), self.group)
        errors = self.errors or [0.0] * len(self.x)
        sure = [k for k in seen if math.isfinite(errors[k]) and errors[k] > 0]
        x = [self.x[k] for k in sure]
        low = canvas.places(x, [max(self.y[k] - errors[k], canvas.y.low) for k in sure])
        high = canvas.places(x, [self.y[k] + errors[k] for k in sure])
        bars = [f"M{short(a)},{short(b)}V{short(c)}" for (a, b), (_, c) in zip(low, high, strict=True)]
        return path("".join(bars), "bar", group_color(self.group)) + marks

    def shown(self, canvas: Canvas) -> list[int]:
        """Which of them are drawn: those that have a place, thinned where they are many."""
        seen = [k for k in range(len(self.x)) if canvas.x.shows(self.x[k]) and canvas.y.shows(self.y[k])]
        return thinned(sorted(seen, key=self.x.__getitem__), self.x, self.y, canvas.x)

    def key(self, x: float, y: float) -> str:
        """The sign in the legend."""
        return markers([(x + 8, y)], self.group)


@dataclass(frozen=True)
class Polyline:
    """A curve; ``style`` is dashed, dotted or empty, ``mark`` sets a group's sign on its key, the ``title`` is read aloud."""

    x: Values = ()
    y: Values = ()
    color: str = "theory"
    style: str = ""
    label: str = ""
    mark: int | None = None
    title: str = ""

    def drawn(self, canvas: Canvas) -> str:
        """The curve through all that has a place."""
        seen = [k for k in range(len(self.x)) if canvas.x.shows(self.x[k]) and canvas.y.shows(self.y[k])]
        seen = thinned(sorted(seen, key=self.x.__getitem__), self.x, self.y, canvas.x)
        x, (y,) = stepped([self.x[k] for k in seen], canvas.x, [self.y[k] for k in seen])
        return path(joined(canvas.places(x, y)), f"line {self.style}", self.color, self.title)

    def key(self, x: float, y: float) -> str:
        """The sign in the legend."""
        line = path(f"M{short(x)},{short(y)}h16", f"line {self.style}", self.color)
        return line if self.mark is None else line + markers([(x + 8, y)], self.mark)


@dataclass(frozen=True)
class Area:
    """What lies between two curves, ``edged`` by them; nothing where ``low`` is above ``high``."""

    x: Values = ()
    low: Values = ()
    high: Values = ()
    color: str = "theory"
    label: str = ""
    edged: bool = True

    def drawn(self, canvas: Canvas) -> str:
        """The area, clipped to the axes, and those parts of its edges that lie within."""
        told = [k for k in range(len(self.x)) if self.low[k] <= self.high[k] and canvas.x.shows(self.x[k])]
        told.sort(key=self.x.__getitem__)
        if not canvas.x.names:
            told = thinned(told, self.x, self.high, canvas.x)
        if not told:
            return ""
        ends = [self.low[k] for k in told], [self.high[k] for k in told]
        x, (low, high) = stepped([self.x[k] for k in told], canvas.x, *ends)
        low, high = [max(v, canvas.y.low) for v in low], [min(v, canvas.y.high) for v in high]
        wide = any(a < b for a, b in zip(low, high, strict=True))
        around = joined(canvas.places([*x, *reversed(x)], [*low, *reversed(high)])) + "Z" if wide else ""
        sides = (low, high) if wide and self.edged else () if wide else (low,)
        edges = "".join(self._edge(canvas, x, values) for values in sides)
        return path(around, "area", self.color) + path(edges, "line thin", self.color)

    @staticmethod
    def _edge(canvas: Canvas, x: Values, values: Values) -> str:
        """The edge, but for where it was clipped."""
        runs: list[list[Point]] = [[]]
        for value, place in zip(values, canvas.places(x, values), strict=True):
            if canvas.y.low < value < canvas.y.high:
                runs[-1].append(place)
            elif runs[-1]:
                runs.append([])
        return "".join(map(joined, runs))

    def key(self, x: float, y: float) -> str:
        """The sign in the legend."""
        box = f"M{short(x)},{short(y - 4)}h16v8h-16z"
        return path(box, "area", self.color) + path(box, "line thin", self.color)


@dataclass(frozen=True)
class Bars:
    """A bar from zero at each place, ``width`` of the way to the next one wide and ``beside`` it by so much."""

    x: Values = ()
    y: Values = ()
    color: str = "c0"
    label: str = ""
    width: float = 0.7
    beside: float = 0.0

    def drawn(self, canvas: Canvas) -> str:
        """All bars."""
        foot, parts = canvas.down(max(0.0, canvas.y.low)), []
        for x, y in zip(self.x, self.y, strict=True):
            if canvas.y.shows(y):
                left, right = (canvas.across(x + self.beside + side * self.width / 2) for side in (-1, 1))
                parts.append(f"M{short(left)},{short(foot)}V{short(canvas.down(y))}H{short(right)}V{short(foot)}z")
        return path("".join(parts), "mark", self.color)

    def key(self, x: float, y: float) -> str:
        """The sign in the legend."""
        return path(f"M{short(x)},{short(y - 4)}h16v8h-16z", "mark", self.color)


Mark = Points | Polyline | Area | Bars


@dataclass(frozen=True)
class Figure:
    """Marks over two axes, the first below the others; ``keys`` are what the legend explains."""

    x: Scale
    y: Scale
    marks: Sequence[Mark]
    keys: Sequence[Mark] = ()
    x_label: str = ""
    y_label: str = ""
    spoken: str = ""

    def svg(self) -> str:
        """The figure with its axes and its legend."""
        upright, below = self.y.ticks(), _fitting_ticks(self.x)
        title = textwrap.wrap(shortened(self.y_label, 56), 30, max_lines=2, placeholder=" …")
        letters = max((len(words) for _, words in below), default=0)
        slanted = bool(self.x.names) and letters * len(below) >= 54
        left = 12 + 14 * len(title) + LETTER * max((len(words) for _, words in upright), default=1)
        if slanted:  # the first name reaches out to the left of where it ends
            left = max(left, 0.82 * LETTER * len(below[0][1]) - 12)
        last = 0.0 if slanted or not below else 0.5 * LETTER * len(below[-1][1]) * (self.x.share(below[-1][0]) > 0.93)
        legend, rows = _legend(self.keys, left)
        top = 12.0 + 16 * rows
        canvas = Canvas(self.x, self.y, left, WIDTH - max(12.0, last), top, top + PLOT)
        names = min(86.0, 0.6 * LETTER * letters + 10) if slanted else 14.0
        tall = canvas.bottom + names + (22 if self.x_label else 8)
        parts = [*_axes(canvas, upright, below, slanted=slanted), *(mark.drawn(canvas) for mark in self.marks), *legend]
        middle = (canvas.top + canvas.bottom) / 2
        parts += [text(13 + 14 * row, middle, line, "title middle", turned=-90) for row, line in enumerate(title)]
        if self.x_label:
            words = shortened(self.x_label, 60)
            parts.append(text((canvas.left + canvas.right) / 2, tall - 5, words, "title middle"))
        return picture(parts, (WIDTH, tall), self.spoken, enlarged=ENLARGED)

    def small(self, words: str) -> str:
        """The figure without ticks and error bars, for pages that have hundreds; the words say from where to where it goes."""
        wide, tall = SMALL
        canvas = Canvas(self.x, self.y, SMALL_EDGE, wide - SMALL_EDGE, SMALL_EDGE, tall - SMALL_BELOW)
        sides = path(f"M{short(canvas.left)},{short(canvas.top)}V{short(canvas.bottom)}H{short(canvas.right)}", "axis")
        marks = [_bare(mark).drawn(canvas) for mark in self.marks]
        line = text(SMALL_EDGE, tall - 10, shortened(words, 72))
        return picture([sides, *marks, line], SMALL, self.spoken, "th-figure th-few")


def _bare(mark: Mark) -> Mark:
    """The mark as a small figure shows it: a point without its bar, an area without edges."""
    if isinstance(mark, Points):
        return replace(mark, errors=())
    return replace(mark, edged=False) if isinstance(mark, Area) else mark


def thinned(places: list[int], x: Values, values: Values, scale: Scale) -> list[int]:
    """At most so many places that the figure stays small: of each stretch of the axis the lowest and the highest."""
    if len(places) <= MOST_POINTS:
        return places
    cells: dict[int, list[int]] = {}
    for place in places:
        cells.setdefault(round(scale.share(x[place]) * (MOST_POINTS // 2 - 1)), []).append(place)
    ends = {end(cell, key=values.__getitem__) for cell in cells.values() for end in (min, max)}
    return sorted({*ends, places[0], places[-1]}, key=x.__getitem__)


def stepped(x: Values, scale: Scale, *values: Values) -> tuple[list[float], list[list[float]]]:
    """The corners of curves: straight between numbers, a step for each name, a short bar where there is only one place.

    >>> from theodolite.report.drawing.scales import named_scale
    >>> stepped([0, 1], named_scale(["a", "b"]), [3, 4])
    ([-0.5, 0.5, 0.5, 1.5], [[3, 3, 4, 4]])
    """
    if not scale.names and len(set(x)) != 1:
        return list(x), [list(v) for v in values]
    if scale.log:
        sides = [(at / 1.04, at * 1.04) for at in x]
    else:
        half = 0.5 if scale.names else 0.04 * (scale.high - scale.low)
        sides = [(at - half, at + half) for at in x]
    corners = [side for pair in sides for side in pair]
    heights = [[height for height in v for _ in (0, 1)] for v in values]
    last = len(corners) - 1
    kept = [k for k in range(last + 1) if k in (0, last) or any(len({*v[k - 1 : k + 2]}) > 1 for v in heights)]
    return [corners[k] for k in kept], [[v[k] for k in kept] for v in heights]


def _fitting_ticks(scale: Scale) -> list[tuple[float, str]]:
    """Ticks of a level axis, so few that their words do not touch."""
    for most in (7, 5, 4):
        found = scale.ticks(most)
        if sum(LETTER * len(words) + 8 for _, words in found) < WIDTH - 60:
            return found
    return found


def _axes(
    canvas: Canvas, upright: Sequence[tuple[float, str]], below: Sequence[tuple[float, str]], *, slanted: bool
) -> list[str]:
    """Grid, axes, ticks and their words."""
    left, right, bottom = short(canvas.left), short(canvas.right), short(canvas.bottom)
    grid = "".join(f"M{left},{short(canvas.down(value))}H{right}" for value, _ in upright)
    ticks = "".join(f"M{short(canvas.across(value))},{bottom}v3.5" for value, _ in below)
    parts = [path(grid, "grid"), path(f"M{left},{short(canvas.top)}V{bottom}H{right}{ticks}", "axis")]
    parts += [text(canvas.left - 5, canvas.down(value) + 4, words, "end") for value, words in upright]
    for value, words in below:
        x, y = canvas.across(value), canvas.bottom + (12 if slanted else 15)
        parts.append(text(x, y, words, "slant end", turned=-35) if slanted else text(x, y, words, "middle"))
    return parts


def _legend(keys: Sequence[Mark], left: float) -> tuple[list[str], int]:
    """The signs with their words in lines above the plot, and how many lines these are."""
    widths = [38 + LETTER * len(mark.label) for mark in keys]
    start = min(left, max(4.0, WIDTH - max(widths, default=0.0)))  # a long label begins further to the left
    places = flowing(widths, start, WIDTH)
    parts = []
    for mark, (x, line) in zip(keys, places, strict=True):
        y = 10.0 + 16 * line
        parts += [mark.key(x, y), text(x + 21, y + 4, mark.label)]
    return parts, places[-1][1] + 1 if places else 0
