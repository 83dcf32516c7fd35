"""Small figures written as SVG by hand: a page of hundreds of matrices shows each, and drawing them takes no time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from theodolite.report.words import plain, printable, shortened

if TYPE_CHECKING:
    from theodolite.core.reading import Series

WIDTH, HEIGHT = 320, 150
LEFT, RIGHT, TOP, BOTTOM = 8, 8, 8, 30


def small_figure(series: Series) -> str:
    """A series without ticks: the measurement as points, theory as a line or band, the ends of the axes in numbers."""
    named = bool(series.x) and isinstance(series.x[0], str)
    x = [float(place) for place in range(len(series.x))] if named else [float(value) for value in series.x]
    across = _Axis.over(x, log="x" in series.log and not named)
    drawn = [*series.measured, *_finite(series.low), *_finite(series.high)]
    up = _Axis.over(drawn, log="y" in series.log)
    parts = [_band(x, series, across, up), _path(x, series.line, across, up, "th-small-fit", _FIT)]
    for horizontal, value in zip(x, series.measured, strict=True):
        if across.shows(horizontal) and up.shows(value):
            parts.append(
                f'<circle cx="{_left(across, horizontal)}" cy="{_top(up, value)}" r="1.6" fill="currentColor"/>'
            )
    label = escape(printable(f"{series.y_label or 'measured'} against {series.x_label or 'place'}"), quote=True)
    return (
        f'<svg class="th-figure" role="img" aria-label="{label}" width="100%" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'style="max-width:{WIDTH}px" xmlns="http://www.w3.org/2000/svg">{_frame()}{"".join(parts)}'
        f"{_words(series, across, up, named)}</svg>"
    )


_FIT = 'stroke="var(--th-wrong, #c23b22)" stroke-dasharray="4 3"'
_THEORY = 'stroke="var(--th-theory, #2f6fb7)"'


class _Axis:
    """Numbers to a part of the way from 0 to 1, in the logarithm where asked for."""

    def __init__(self, low: float, high: float, log: bool) -> None:
        self.low, self.high, self.log = low, high, log

    @classmethod
    def over(cls, values: Iterable[float], *, log: bool) -> _Axis:
        shown = [value for value in values if math.isfinite(value) and (value > 0 or not log)]
        low, high = (min(shown), max(shown)) if shown else (1.0, 2.0)
        return cls(low, high if high > low else low + (abs(low) or 1.0), log)

    def shows(self, value: float) -> bool:
        return math.isfinite(value) and self.low <= value <= self.high

    def part(self, value: float) -> float:
        ends = (self.low, self.high, value)
        low, high, here = (math.log(end) for end in ends) if self.log else ends
        return (here - low) / (high - low)


def _finite(values: Sequence[float]) -> list[float]:
    return [value for value in values if math.isfinite(value)]


def _left(axis: _Axis, value: float) -> str:
    return f"{LEFT + axis.part(value) * (WIDTH - LEFT - RIGHT):.1f}"


def _top(axis: _Axis, value: float) -> str:
    return f"{TOP + (1 - axis.part(value)) * (HEIGHT - TOP - BOTTOM):.1f}"


def _path(x: Sequence[float], y: Sequence[float], across: _Axis, up: _Axis, name: str, stroke: str) -> str:
    points = [
        f"{_left(across, a)},{_top(up, b)}" for a, b in zip(x, y, strict=False) if across.shows(a) and up.shows(b)
    ]
    if len(points) < 2:
        return ""
    return f'<polyline class="{name}" points="{" ".join(points)}" fill="none" stroke-width="1.3" {stroke}/>'


def _band(x: Sequence[float], series: Series, across: _Axis, up: _Axis) -> str:
    ends = [_path(x, values, across, up, "th-small-theory", _THEORY) for values in (series.low, series.high)]
    return ends[0] if ends[0] == ends[1] else "".join(ends)


def _frame() -> str:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    return f'<path d="M{LEFT},{TOP}V{bottom}H{right}" fill="none" stroke="var(--th-rule, #8c96a0)" stroke-width="0.8"/>'


def _words(series: Series, across: _Axis, up: _Axis, named: bool) -> str:
    """Below the frame: what is drawn, and from where to where."""
    span = "" if named else f" from {plain(across.low)} to {plain(across.high)}"
    line = f"{series.x_label or 'place'}{span}; {series.y_label or 'measured'} {plain(up.low)} to {plain(up.high)}"
    text = escape(shortened(printable(line), 76))
    return f'<text x="{LEFT}" y="{HEIGHT - 10}" font-size="9" fill="currentColor">{text}</text>'
