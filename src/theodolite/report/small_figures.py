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
    across = _Axis.over(x, log="x" in series.log and not named, ends=(LEFT, WIDTH - RIGHT))
    drawn = [*series.measured, *_finite(series.low), *_finite(series.high)]
    up = _Axis.over(drawn, log="y" in series.log, ends=(HEIGHT - BOTTOM, TOP))
    left = across.places(x)
    parts = [_band(left, series, up), _path(left, up.places(series.line), "th-few-fit")]
    parts.append(_dots(left, up.places(series.measured)))
    label = escape(printable(f"{series.y_label or 'measured'} against {series.x_label or 'place'}"), quote=True)
    return (
        f'<svg class="th-figure th-few" role="img" aria-label="{label}" viewBox="0 0 {WIDTH} {HEIGHT}">{_FRAME}{"".join(parts)}'
        f"{_words(series, across, up, named)}</svg>"
    )


_FRAME = f'<path d="M{LEFT},{TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>'
"""How lines look is said by the style sheet: in a page with hundreds of figures each word counts."""


class _Axis:
    """Numbers to places between two ends of the figure, in the logarithm where asked for."""

    def __init__(self, low: float, high: float, log: bool, ends: tuple[float, float]) -> None:
        self.low, self.high, self.log, self._first = low, high, log, ends[0]
        self._from, to = (math.log(low), math.log(high)) if log else (low, high)
        self._unit = (ends[1] - ends[0]) / (to - self._from)

    @classmethod
    def over(cls, values: Iterable[float], *, log: bool, ends: tuple[float, float]) -> _Axis:
        shown = [value for value in values if math.isfinite(value) and (value > 0 or not log)]
        low, high = (min(shown), max(shown)) if shown else (1.0, 2.0)
        return cls(low, high if high > low else low + (abs(low) or 1.0), log, ends)

    def places(self, values: Iterable[float]) -> list[str]:
        """Each in the figure's units; empty where it is not shown."""
        low, high, first, start, unit = self.low, self.high, self._first, self._from, self._unit
        if self.log:
            return [
                f"{first + (math.log(value) - start) * unit:.1f}" if low <= value <= high else "" for value in values
            ]
        return [f"{first + (value - start) * unit:.1f}" if low <= value <= high else "" for value in values]


def _finite(values: Sequence[float]) -> list[float]:
    return [value for value in values if math.isfinite(value)]


def _path(left: Sequence[str], top: Sequence[str], name: str) -> str:
    points = [f"{a},{b}" for a, b in zip(left, top, strict=False) if a and b]
    if len(points) < 2:
        return ""
    return f'<polyline class="{name}" points="{" ".join(points)}"/>'


def _dots(left: Sequence[str], top: Sequence[str]) -> str:
    """All points as one path of strokes without length, a tenth of the bytes of as many circles."""
    points = "".join(f"M{a},{b}h0" for a, b in zip(left, top, strict=True) if a and b)
    return f'<path class="th-few-dots" d="{points}"/>'


def _band(left: Sequence[str], series: Series, up: _Axis) -> str:
    ends = [_path(left, top, "th-few-theory") for top in (up.places(series.low), up.places(series.high))]
    return ends[0] if ends[0] == ends[1] else "".join(ends)


def _words(series: Series, across: _Axis, up: _Axis, named: bool) -> str:
    """Below the frame: what is drawn, and from where to where."""
    ends = [plain(end, digits=3) for end in (across.low, across.high, up.low, up.high)]
    span = "" if named else f" {ends[0]} to {ends[1]}"
    line = f"{series.x_label or 'place'}{span}; {series.y_label or 'measured'} {ends[2]} to {ends[3]}"
    text = escape(shortened(printable(line), 76))
    return f'<text x="{LEFT}" y="{HEIGHT - 10}">{text}</text>'
