"""Groups of points with theory's band, laid on axes: what every figure of the report is drawn from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from theodolite.report.svg import GROUPS, INK, LINE, THEORY, WRONG
from theodolite.report.words import plain, printable, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKERS = "osD^vP"
MOST_POINTS, MOST_LABELS, LABEL_LETTERS = 120, 14, 22
ERRORS = "measured ± 1 standard error"
DASHES = (0, (4, 2.5))


@dataclass
class Curve:
    """One group of points with theory's band, and another curve (refuted, or a fit), at the same places."""

    label: str = ""
    x: list[float] = field(default_factory=list)
    measured: list[float] = field(default_factory=list)
    stderr: list[float] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    wrong: list[float] = field(default_factory=list)
    wrong_label: str = "form in print"


@dataclass(frozen=True)
class Scale:
    """The axes: names instead of numbers along x, which axes are logarithmic, and their limits."""

    names: tuple[str, ...]
    log_x: bool
    log_y: bool
    x_ticks: tuple[float, ...]
    x: tuple[float, float]
    y: tuple[float, float]


def drawn_values(curve: Curve) -> list[float]:
    """Every finite number along y that the curve shows, its error bars aside."""
    ends = [v for low, high in zip(curve.low, curve.high, strict=True) if low <= high for v in (low, high)]
    return [v for v in (*curve.measured, *ends, *curve.wrong) if math.isfinite(v)]


def is_wide(values: Sequence[float]) -> bool:
    """Positive values that span two decades, or grow by a constant factor to eight times the first and more."""
    if not values or min(values) <= 0:
        return False
    steps = sorted(set(values))
    ratios = [b / a for a, b in pairwise(steps)]
    even = len(ratios) >= 2 and max(ratios) < 1.1 * min(ratios) and steps[-1] >= 8 * steps[0]
    return steps[-1] > 100 * steps[0] or even


def fitting_scale(curves: list[Curve], names: tuple[str, ...], logs: tuple[bool, bool]) -> Scale:
    """Axes that hold every curve; an axis asked to be logarithmic is so only where it has positive values."""
    xs = [v for curve in curves for v in curve.x if math.isfinite(v)]
    ys = [v for curve in curves for v in drawn_values(curve)]
    bars = [
        m + sign * e
        for curve in curves
        for m, e in zip(curve.measured, curve.stderr, strict=True)
        if math.isfinite(m) and math.isfinite(e)
        for sign in (-1, 1)
    ]
    log_x = logs[0] and any(v > 0 for v in xs)
    log_y = logs[1] and any(v > 0 for v in ys)
    if log_y:
        floor = min(v for v in ys if v > 0) / 10
        bars = [v for v in bars if v >= floor]
    x = (-0.5, len(names) - 0.5) if names else limits(xs, log_x, 0.04)
    return Scale(names, log_x, log_y, _own_ticks(xs, x) if log_x else (), x, limits(ys + bars, log_y, 0.08))


def limits(values: Sequence[float], log: bool, margin: float) -> tuple[float, float]:
    """Limits that hold all values with a margin, never so narrow that the ticks would run out of digits."""
    if log:
        logs = [math.log10(v) for v in values if v > 0]
        pad = max(margin * (max(logs) - min(logs)), 0.05)
        return 10.0 ** max(min(logs) - pad, -300), 10.0 ** min(max(logs) + pad, 300)
    low, high = min(values, default=0.0), max(values, default=1.0)
    least = 2e-4 * max(abs(low), abs(high)) or 1.0
    pad = max(margin * (high - low), 0.5 * (least - (high - low)))
    return low - pad, high + pad


def set_axes(axes: Axes, scale: Scale) -> None:
    """Lay out scales, limits, ticks and grid."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator, ScalarFormatter

    for axis, log, (low, high) in ((axes.xaxis, scale.log_x, scale.x), (axes.yaxis, scale.log_y, scale.y)):
        if log:
            (axes.set_xscale if axis is axes.xaxis else axes.set_yscale)("log")
            decades = math.log10(high / low)
            parts = (1, 2, 5) if decades < 1.8 else (1, 3) if decades < 2.8 else (1,)
            axis.set_major_locator(LogLocator(subs=parts, numticks=7))
            if decades > 3:
                axis.set_minor_locator(NullLocator())
            axis.set_major_formatter(FuncFormatter(lambda value, _: plain(float(f"{value:.4g}"))))
            axis.set_minor_formatter(NullFormatter())
        else:
            axis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]))
            axis.set_major_formatter(ScalarFormatter(useOffset=False))
    if scale.x_ticks:
        axes.set_xticks(scale.x_ticks, [plain(value, digits=4) for value in scale.x_ticks])
        axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(*scale.x)
    axes.set_ylim(*scale.y)
    axes.grid(axis="y", color=LINE, linewidth=0.5, alpha=0.35)
    axes.set_axisbelow(True)
    if scale.names:
        places, shown = tick_names(scale.names)
        axes.set_xticks(places, shown, rotation=35, ha="right", rotation_mode="anchor", fontsize=10)
        if max(len(name) for name in shown) * len(shown) < 54:
            axes.set_xticks(places, shown, rotation=0, ha="center", rotation_mode="default", fontsize=11)


def wrapped(label: str) -> str:
    """A label of an upright axis on at most two lines."""
    import textwrap

    return "\n".join(textwrap.wrap(shortened(label, 56), 30, max_lines=2, placeholder=" …"))


def tick_names(names: tuple[str, ...]) -> tuple[list[int], list[str]]:
    """Which names stand below the axis, and where: not so many, nor so long, that they could not be read."""
    step = math.ceil(len(names) / MOST_LABELS)
    places = list(range(0, len(names), step))
    return places, [shortened(printable(names[place]), LABEL_LETTERS) for place in places]


def draw(axes: Axes, curve: Curve, group: int, scale: Scale) -> None:
    """One group: band below, refuted form over it, then error bars and points."""
    color = GROUPS[group % len(GROUPS)] if group >= 0 else INK
    theory = GROUPS[group % len(GROUPS)] if group >= 0 else THEORY
    order = sorted(range(len(curve.x)), key=curve.x.__getitem__)
    told = told_places(curve, scale)
    if told:
        x, (low, high) = stepped(curve, told, scale, curve.low, curve.high)
        low, high = [max(v, scale.y[0]) for v in low], [min(v, scale.y[1]) for v in high]
        if any(a < b for a, b in zip(low, high, strict=True)):
            axes.fill_between(x, low, high, color=theory, alpha=0.16, linewidth=0)
        for edge, values in (("low", low), ("high", high)):
            if edge == "low" or low != high:
                axes.plot(x, [v if v not in scale.y else math.nan for v in values], color=theory, linewidth=1.3)
    refuted = [place for place in order if math.isfinite((curve.wrong or [math.nan] * len(order))[place])]
    if refuted:
        x, (wrong,) = stepped(curve, refuted, scale, curve.wrong)
        axes.plot(x, wrong, color=WRONG, linestyle=DASHES, linewidth=1.6)
    seen = shown_places(curve, scale)
    x, y = [curve.x[place] for place in seen], [curve.measured[place] for place in seen]
    errors = [curve.stderr[place] if math.isfinite(curve.stderr[place]) else 0.0 for place in seen]
    if any(errors):
        axes.vlines(
            x,
            [max(v - e, scale.y[0]) for v, e in zip(y, errors, strict=True)],
            [v + e for v, e in zip(y, errors, strict=True)],
            color=color,
            linewidth=1.2,
        )
    marker = MARKERS[max(group, 0) % len(MARKERS)]
    axes.plot(x, y, linestyle="none", marker=marker, color=color, markeredgewidth=0)


def told_places(curve: Curve, scale: Scale) -> list[int]:
    """Where theory says something that can be drawn, along x, not too many."""
    order = sorted(range(len(curve.x)), key=curve.x.__getitem__)
    told = [
        place for place in order if curve.low[place] <= curve.high[place] and (curve.x[place] > 0 or not scale.log_x)
    ]
    return told if scale.names else _thinned(told, curve, scale.log_x)


def shown_places(curve: Curve, scale: Scale) -> list[int]:
    """The measured points that can be drawn, along x, not too many."""
    order = sorted(range(len(curve.x)), key=curve.x.__getitem__)
    return _thinned([place for place in order if _visible(curve, place, scale)], curve, scale.log_x)


def _own_ticks(xs: Sequence[float], ends: tuple[float, float]) -> tuple[float, ...]:
    """The measured places themselves as ticks of a logarithmic axis, where they are few and stand apart."""
    places = sorted({x for x in xs if x > 0})
    room = 0.09 * math.log(ends[1] / ends[0])
    return tuple(places) if len(places) < 8 and all(math.log(b / a) > room for a, b in pairwise(places)) else ()


def stepped(
    curve: Curve, places: list[int], scale: Scale, *values: list[float]
) -> tuple[list[float], list[list[float]]]:
    """The curve's corners: straight between numbers, a step for each name, a short bar where there is only one."""
    x = [curve.x[place] for place in places]
    if not scale.names and len(set(x)) > 1:
        return x, [[v[place] for place in places] for v in values]
    if scale.log_x:
        sides = [(at / 1.04, at * 1.04) for at in x]
    else:
        half = 0.5 if scale.names else 0.04 * (scale.x[1] - scale.x[0])
        sides = [(at - half, at + half) for at in x]
    corners = [v for pair in sides for v in pair]
    heights = [[v[place] for place in places for _ in (0, 1)] for v in values]
    last = len(corners) - 1
    kept = [k for k in range(last + 1) if k in (0, last) or any(len({*v[k - 1 : k + 2]}) > 1 for v in heights)]
    return [corners[k] for k in kept], [[v[k] for k in kept] for v in heights]


def _visible(curve: Curve, place: int, scale: Scale) -> bool:
    x, y = curve.x[place], curve.measured[place]
    return math.isfinite(x) and math.isfinite(y) and (x > 0 or not scale.log_x) and (y > 0 or not scale.log_y)


def _thinned(places: list[int], curve: Curve, log_x: bool) -> list[int]:
    """At most so many places that the figure stays small: of each stretch of the axis the lowest and the highest."""
    if len(places) <= MOST_POINTS:
        return places
    low, high = curve.x[places[0]], curve.x[places[-1]]
    cells: dict[int, list[int]] = {}
    for place in places:
        x = curve.x[place]
        part = math.log(x / low) / math.log(high / low) if log_x else (x - low) / (high - low)
        cells.setdefault(round(part * (MOST_POINTS // 2 - 1)), []).append(place)
    ends = (end(cell, key=curve.measured.__getitem__) for cell in cells.values() for end in (min, max))
    return sorted({*ends, places[0], places[-1]}, key=curve.x.__getitem__)


def legend_handles(curves: list[Curve], scale: Scale) -> list[Any]:
    """What the legend shows: theory, the points, the refuted form, and each group where there are several."""
    from matplotlib.patches import Patch

    several = len(curves) > 1
    bands = [(a, b) for curve in curves for a, b in zip(curve.low, curve.high, strict=True) if a <= b]
    color = INK if several else THEORY
    handles: list[Any] = []
    if any(a < b for a, b in bands):
        handles.append(Patch(facecolor=(color, 0.16), edgecolor=color, linewidth=1.2, label="theory expects"))
    elif bands:
        handles.append(proxy(color=color, linewidth=1.3, label="theory"))
    handles.append(points_handle(curves, scale))
    if any(math.isfinite(v) for curve in curves for v in curve.wrong):
        handles.append(proxy(color=WRONG, linestyle=DASHES, label=shortened(printable(curves[0].wrong_label), 40)))
    for place, curve in enumerate(curves if several else []):
        color, marker = GROUPS[place % len(GROUPS)], MARKERS[place % len(MARKERS)]
        label = shortened(printable(curve.label), 34)
        handles.append(proxy(color=color, marker=marker, markeredgewidth=0, linewidth=1.3, label=label))
    return handles


def points_handle(curves: list[Curve], scale: Scale) -> Any:
    """The legend's entry for the measured points."""
    return proxy(color=INK, marker="o", linestyle="none", markeredgewidth=0, label=points_words(curves, scale))


def points_words(curves: list[Curve], scale: Scale) -> str:
    """What the points are, what their bars are, and what could not be drawn."""
    errors = any(e > 0 for curve in curves for e in curve.stderr)
    total = sum(len(curve.x) for curve in curves)
    lost = total - sum(_visible(curve, place, scale) for curve in curves for place in range(len(curve.x)))
    label = (ERRORS if errors else "measured") + (f" ({lost} of {total} cannot be drawn)" if lost else "")
    if not lost and any(len(curve.x) > MOST_POINTS for curve in curves):
        label += f" ({total}, thinned, extremes kept)"
    return label


def proxy(**style: Any) -> Any:
    """A line that stands only in the legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], **style)
