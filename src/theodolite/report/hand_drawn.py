"""A series as SVG written by hand: what a page of many figures shows of one quantity, drawn in a millisecond."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from theodolite.report.curves import Curve, Scale, points_words, shown_places, stepped, tick_names, told_places, wrapped
from theodolite.report.words import plain, printable, shortened

WIDTH, HEIGHT, LETTER = 430.0, 275.0, 6.4
"""The figure in its own units, and how wide a letter of its small print is taken to be."""

ALONE = ("measured", "measured ± 1 standard error")
"""What needs no legend where there is nothing else in a figure."""

INK, RULE = "currentColor", "var(--th-rule, #8c96a0)"
THEORY, WRONG = "var(--th-theory, #2f6fb7)", "var(--th-wrong, #c23b22)"


@dataclass(frozen=True)
class _Frame:
    """Where numbers lie on the paper."""

    scale: Scale
    left: float
    right: float
    top: float
    bottom: float

    def x(self, value: float) -> float:
        return self.left + _part(value, self.scale.x, self.scale.log_x) * (self.right - self.left)

    def y(self, value: float) -> float:
        return self.bottom - _part(value, self.scale.y, self.scale.log_y) * (self.bottom - self.top)


def _part(value: float, ends: tuple[float, float], log: bool) -> float:
    """How far along the axis, a little beyond its ends at most."""
    low, high = ends
    if log:
        value = math.log(max(value, 1e-300))
        low, high = math.log(low), math.log(high)
    share = (value / 2 - low / 2) / (high / 2 - low / 2)  # halves: a difference of huge numbers would overflow
    return min(max(share, -0.02), 1.02)


def drawn_series(curve: Curve, scale: Scale, labels: tuple[str, str, str]) -> str:
    """The figure; labels are those of x, of y, and the one read aloud."""
    x_label, y_label, spoken = labels
    legend = _legend(curve, scale)
    heights = [(value, plain(value, digits=4)) for value in ticks(scale.y, scale.log_y)]
    title = wrapped(y_label).split("\n")
    below, deep = _below(scale)
    left = 12 + 14 * len(title) + LETTER * max((len(words) for _, words in heights), default=1)
    if below and below[0][2]:  # slanted names reach out to the left of where they end
        left = max(left, 0.82 * LETTER * len(below[0][1]) - 12)
    top = 12 + 16 * math.ceil(len(legend) / 2)
    frame = _Frame(scale, left, WIDTH - 12, top, HEIGHT - 30 - deep + (14 if not x_label else 0))
    parts = [
        *_grid(frame, heights),
        *_names(frame, below),
        *_titles(frame, title, shortened(x_label, 60)),
        *_theory(curve, frame),
        *_points(curve, frame),
        *_legend_marks(legend, left),
    ]
    return (
        f'<svg class="th-figure" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" '
        f'aria-label="{escape(spoken, quote=True)}" width="100%" style="max-width:{math.ceil(WIDTH * 1.32)}px;height:auto">'
        f"{''.join(parts)}</svg>"
    )


def ticks(ends: tuple[float, float], log: bool) -> list[float]:
    """Round numbers between the ends, at most seven.

    >>> ticks((0.0, 10.0), False), ticks((0.5, 200.0), True)
    ([0.0, 2.0, 4.0, 6.0, 8.0, 10.0], [1.0, 3.0, 10.0, 30.0, 100.0])
    """
    low, high = ends
    if log:
        decades = math.log10(high) - math.log10(low)
        parts = (1.0, 2.0, 5.0) if decades < 1.8 else (1.0, 3.0) if decades < 2.8 else (1.0,)
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        step = max(1, math.ceil(decades / 7))
        powers = range(-(-first // step) * step, last + 1, step)
        found = [float(f"{part:g}e{power}") for power in powers for part in parts if -300 < power < 300]
        found = [value for value in found if low <= value <= high]
        if len(found) > 1:
            return found
    span = high - low
    if not math.isfinite(span) or span <= 0:
        return []
    unit = 10.0 ** math.floor(math.log10(span / 6))
    step_size = next((f * unit for f in (1, 2, 2.5, 5, 10) if span / (f * unit) <= 6), 10 * unit)
    first = math.ceil(low / step_size - 1e-9)
    return [float(f"{k * step_size:.12g}") for k in range(first, math.floor(high / step_size + 1e-9) + 1)]


def _below(scale: Scale) -> tuple[list[tuple[float, str, bool]], float]:
    """What stands below the axis: where, the words and whether they are slanted; and the room that it takes."""
    if scale.names:
        places, shown = tick_names(scale.names)
        slanted = max(len(name) for name in shown) * len(shown) >= 54
        room = min(80.0, 0.57 * LETTER * max(len(name) for name in shown)) + 6 if slanted else 14.0
        return [(float(at), name, slanted) for at, name in zip(places, shown, strict=True)], room
    values = scale.x_ticks or tuple(ticks(scale.x, scale.log_x))
    return [(value, plain(value, digits=4), False) for value in values], 14.0


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return f'<path d="M{x1:.1f},{y1:.1f}L{x2:.1f},{y2:.1f}" fill="none" {style}/>'


def _text(x: float, y: float, words: str, size: int = 11, anchor: str = "start", more: str = "") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{INK}"{more}>'
        f"{escape(printable(words))}</text>"
    )


def _grid(frame: _Frame, heights: Sequence[tuple[float, str]]) -> list[str]:
    parts = []
    for value, words in heights:
        y = frame.y(value)
        parts.append(_line(frame.left, y, frame.right, y, f'stroke="{RULE}" stroke-width="0.5" opacity="0.35"'))
        parts.append(_text(frame.left - 5, y + 4, words, anchor="end"))
    style = f'stroke="{RULE}" stroke-width="0.8"'
    parts.append(_line(frame.left, frame.top, frame.left, frame.bottom, style))
    parts.append(_line(frame.left, frame.bottom, frame.right, frame.bottom, style))
    return parts


def _names(frame: _Frame, below: Sequence[tuple[float, str, bool]]) -> list[str]:
    parts = []
    for value, words, slanted in below:
        x, y = frame.x(value), frame.bottom
        parts.append(_line(x, y, x, y + 3.5, f'stroke="{RULE}" stroke-width="0.8"'))
        turned = f' transform="rotate(-35 {x:.1f} {y + 12:.1f})"' if slanted else ""
        parts.append(_text(x, y + (12 if slanted else 15), words, 10 if slanted else 11, _END[slanted], turned))
    return parts


_END = {True: "end", False: "middle"}


def _titles(frame: _Frame, title: Sequence[str], x_label: str) -> list[str]:
    middle = (frame.top + frame.bottom) / 2
    parts = [
        _text(13 + 14 * row, middle, line, 12, "middle", f' transform="rotate(-90 {13 + 14 * row} {middle:.1f})"')
        for row, line in enumerate(title)
        if line
    ]
    if x_label:
        parts.append(_text((frame.left + frame.right) / 2, HEIGHT - 6, x_label, 12, "middle"))
    return parts


def _theory(curve: Curve, frame: _Frame) -> list[str]:
    """The band with its edges, and the other curve over it."""
    scale, parts = frame.scale, []
    told = told_places(curve, scale)
    if told:
        x, (low, high) = stepped(curve, told, scale, curve.low, curve.high)
        low, high = [max(v, scale.y[0]) for v in low], [min(v, scale.y[1]) for v in high]
        if any(a < b for a, b in zip(low, high, strict=True)):
            corners = _joined(frame, [*x, *reversed(x)], [*low, *reversed(high)])
            parts.append(f'<path d="M{corners}Z" fill="{THEORY}" opacity="0.16"/>')
        for values in (low, high) if low != high else (low,):
            seen = [(a, b) for a, b in zip(x, values, strict=True) if b not in scale.y]
            if len(seen) > 1:
                path = _joined(frame, [a for a, _ in seen], [b for _, b in seen])
                parts.append(f'<path d="M{path}" fill="none" stroke="{THEORY}" stroke-width="1.3"/>')
    fitted = [place for place, value in enumerate(curve.wrong) if math.isfinite(value)]
    fitted.sort(key=curve.x.__getitem__)
    if fitted:
        x, (line,) = stepped(curve, fitted, scale, curve.wrong)
        path = _joined(frame, x, line)
        parts.append(f'<path d="M{path}" fill="none" stroke="{WRONG}" stroke-width="1.6" stroke-dasharray="4 2.5"/>')
    return parts


def _joined(frame: _Frame, x: Sequence[float], y: Sequence[float]) -> str:
    return "L".join(f"{frame.x(a):.1f},{frame.y(b):.1f}" for a, b in zip(x, y, strict=True))


def _points(curve: Curve, frame: _Frame) -> list[str]:
    parts = []
    for place in shown_places(curve, frame.scale):
        x, value, error = frame.x(curve.x[place]), curve.measured[place], curve.stderr[place]
        if math.isfinite(error) and error > 0:
            ends = frame.y(max(value - error, frame.scale.y[0])), frame.y(value + error)
            parts.append(_line(x, ends[0], x, ends[1], f'stroke="{INK}" stroke-width="1.2"'))
        parts.append(f'<circle cx="{x:.1f}" cy="{frame.y(value):.1f}" r="2.5" fill="{INK}"/>')
    return parts


_Mark = Callable[[float, float], str]


def _legend(curve: Curve, scale: Scale) -> list[tuple[_Mark, str]]:
    """What the signs mean, each with how it is drawn at a place; nothing where the measurement is alone."""
    bands = [(a, b) for a, b in zip(curve.low, curve.high, strict=True) if a <= b]
    found: list[tuple[_Mark, str]] = []
    if any(a < b for a, b in bands):
        found.append((_patch, "theory expects"))
    elif bands:
        found.append((lambda x, y: _line(x, y, x + 16, y, f'stroke="{THEORY}" stroke-width="1.3"'), "theory"))
    dot: _Mark = lambda x, y: f'<circle cx="{x + 8:.1f}" cy="{y:.1f}" r="2.5" fill="{INK}"/>'  # noqa: E731
    found.append((dot, points_words([curve], scale)))
    if any(math.isfinite(value) for value in curve.wrong):
        style = f'stroke="{WRONG}" stroke-width="1.6" stroke-dasharray="4 2.5"'
        found.append((lambda x, y: _line(x, y, x + 16, y, style), shortened(printable(curve.wrong_label), 40)))
    return found if len(found) > 1 or found[0][1] not in ALONE else []


def _patch(x: float, y: float) -> str:
    size = f'x="{x:.1f}" y="{y - 4:.1f}" width="16" height="8"'
    return f'<rect {size} fill="{THEORY}" fill-opacity="0.16" stroke="{THEORY}" stroke-width="1.2"/>'


def _legend_marks(legend: Sequence[tuple[_Mark, str]], left: float) -> list[str]:
    parts, room = [], 28 + LETTER * max((len(words) for _, words in legend[::2]), default=0)
    for place, (mark, words) in enumerate(legend):
        x, y = left + (place % 2) * room, 10.0 + 16 * (place // 2)
        parts += [mark(x, y), _text(x + 21, y + 4, words)]
    return parts
