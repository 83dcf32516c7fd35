"""Figures: theory as line or band, the measurement as points with error bars."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from theodolite.core.checks import InputError
from theodolite.report.curves import (
    DASHES,
    MARKERS,
    Curve,
    draw,
    drawn_values,
    fitting_scale,
    is_wide,
    legend_handles,
    points_handle,
    proxy,
    set_axes,
    tick_names,
    wrapped,
)
from theodolite.report.formulas import formula
from theodolite.report.hand_drawn import drawn_series
from theodolite.report.svg import GROUPS, INK, THEORY, WRONG, drawing, inline_svg
from theodolite.report.words import case_words, expectation, number, plain, printable, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from theodolite.core.law import Case, Verdict
    from theodolite.core.reading import Band, Reading, Series

__all__ = ["formula", "series_figure", "verdict_figure"]


def series_figure(series: Series, *, key: str = "", titled: bool = True) -> str:
    """A reading's series as an inline SVG without ids; the ``key`` is taken for the sake of those that have some.

    Where it is not ``titled`` its upright axis has no name: a heading above says it.
    """
    names = tuple(str(x) for x in series.x) if series.x and isinstance(series.x[0], str) else ()
    x = [float(place) for place in range(len(names))] if names else [float(value) for value in series.x]
    count = len(x)
    curve = Curve(
        x=x,
        measured=list(series.measured),
        stderr=list(series.stderr) or [0.0] * count,
        low=list(series.low) or [math.nan if series.high else math.inf] * count,
        high=list(series.high) or [math.nan if series.low else -math.inf] * count,
        wrong=list(series.line),
        wrong_label=series.line_label or "fit",
    )
    curve.low = [-math.inf if math.isnan(v) and series.high else v for v in curve.low]
    curve.high = [math.inf if math.isnan(v) and series.low else v for v in curve.high]
    log_x, log_y = "x" in series.log and not names, "y" in series.log
    label = f"{series.y_label or 'measured'} against {series.x_label or 'place'}"
    labels = (printable(series.x_label), printable(series.y_label) if titled else "", printable(label))
    return drawn_series(curve, fitting_scale([curve], names, (log_x, log_y)), labels)


def verdict_figure(verdict: Verdict, *, key: str = "") -> str:
    """A verdict as an inline SVG: every case of a law, or the log-log fit of a law about an exponent."""
    law = verdict.law
    name = law.quantity or law.name
    label = f"{law.name}: {name}, prediction and measurement"
    if law.exponent is not None:
        return _exponent_figure(verdict, label, key=key)
    cases = law.cases_of(verdict.size)
    along = law.along if law.along and all(law.along in case for case in cases) else None
    places, names = _places(cases, along)
    curves: dict[str, Curve] = {}
    wrong: Sequence[Reading | None] = verdict.refuted or [None] * len(verdict.readings)
    for case, x, reading, other in zip(cases, places, verdict.readings, wrong, strict=True):
        rest = case_words({k: v for k, v in case.items() if k != along and _varies(cases, k)}) if along else ""
        _add(curves.setdefault(rest, Curve(label=rest)), x, reading, other)
    logs = (not names and is_wide(places), is_wide([v for curve in curves.values() for v in drawn_values(curve)]))
    return _figure(list(curves.values()), names, logs, (along or ", ".join(_varying(cases)), name, label), key=key)


def _add(curve: Curve, x: float, reading: Reading, wrong: Reading | None) -> None:
    band: Band | None = reading.expected
    curve.x.append(x)
    curve.measured.append(reading.measured)
    curve.stderr.append(reading.stderr)
    curve.low.append(band.low if band else math.inf)
    curve.high.append(band.high if band else -math.inf)
    curve.wrong.append(wrong.expected.middle if wrong and wrong.expected else math.nan)


def _places(cases: Sequence[Case], along: str | None) -> tuple[list[float], tuple[str, ...]]:
    """Where each case stands along x, and the names there where they are no numbers."""
    if along is None:
        alike = all(case.keys() == cases[0].keys() for case in cases)  # then the axis can name the keywords
        words = [
            ", ".join(("" if alike else f"{key}=") + _short(case[key]) for key in _varying(cases) if key in case)
            for case in cases
        ]
        return [float(place) for place in range(len(cases))], tuple(words)
    values = [case[along] for case in cases]
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return [float(value) for value in values], ()
    names = list(dict.fromkeys(str(value) for value in values))
    return [float(names.index(str(value))) for value in values], tuple(names)


def _varying(cases: Sequence[Case]) -> list[str]:
    return [key for key in dict.fromkeys(key for case in cases for key in case) if _varies(cases, key)]


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _varies(cases: Sequence[Case], keyword: str) -> bool:
    return len({repr(case.get(keyword)) for case in cases}) > 1


def _figure(
    curves: list[Curve], names: tuple[str, ...], logs: tuple[bool, bool], labels: tuple[str, str, str], *, key: str
) -> str:
    """The common drawing; labels are those of x, of y, and the one read aloud."""
    x_label, y_label, spoken = (printable(label) for label in labels)
    scale = fitting_scale(curves, names, logs)
    slanted = tick_names(names)[1] if names else []
    extra = 6 * max((len(name) for name in slanted), default=0) * 0.6 if slanted else 0
    rows = math.ceil((len(curves) + 2) / 2) if len(curves) > 1 else 1
    with drawing(height=275 + min(extra, 80) + 14 * (rows - 1)) as (figure, axes):
        set_axes(axes, scale)
        axes.set_xlabel(shortened(x_label, 60))
        axes.set_ylabel(wrapped(y_label))
        for place, curve in enumerate(curves):
            draw(axes, curve, place if len(curves) > 1 else -1, scale)
        handles = legend_handles(curves, scale)
        if handles:
            figure.legend(handles=handles, loc="outside upper left", ncols=2)
        return inline_svg(figure, spoken, key=key)


def _exponent_figure(verdict: Verdict, spoken: str, *, key: str) -> str:
    """Points in log-log with the fitted slope, the predicted one and, where there is one, the refuted one."""
    wrong: Sequence[Reading | None] = verdict.refuted or [None] * len(verdict.readings)
    drawn = [pair for pair in zip(verdict.readings, wrong, strict=True) if pair[0].series is not None]
    curves = [_bare_curve(reading) for reading, _ in drawn]
    scale = fitting_scale(curves, (), (True, True))
    several = len(curves) > 1
    with drawing(height=262 + 16 * (len(curves) + 1 if several else 2)) as (figure, axes):
        set_axes(axes, scale)
        axes.set_xlabel(shortened(printable(verdict.law.exponent), 60))
        axes.set_ylabel(wrapped(printable(verdict.law.quantity or verdict.law.name)))
        handles = [points_handle(curves, scale)]
        for place, (curve, (reading, other)) in enumerate(zip(curves, drawn, strict=True)):
            group = place if several else -1
            draw(axes, curve, group, scale)
            handles += _slope_lines(axes, curve, group, reading, other)
        unique = sorted({h.get_label(): h for h in handles}.values(), key=lambda h: bool(h.get_color() == WRONG))
        figure.legend(handles=unique, loc="outside upper left", ncols=1)
        return inline_svg(figure, printable(spoken), key=key)


def _bare_curve(reading: Reading) -> Curve:
    series = reading.series
    if series is None:
        raise InputError(f"expected a reading with a series, got {reading.quantity!r} without")
    count = len(series.x)
    return Curve(
        label=reading.where,
        x=[float(value) for value in series.x],
        measured=list(series.measured),
        stderr=list(series.stderr) or [0.0] * count,
        low=[math.inf] * count,
        high=[-math.inf] * count,
    )


def _slope_lines(axes: Axes, curve: Curve, group: int, reading: Reading, wrong: Reading | None) -> list[Any]:
    """The straight lines through the middle of the points, and what the legend says of them."""
    logs = [(math.log(x), math.log(y)) for x, y in zip(curve.x, curve.measured, strict=True) if x > 0 < y < math.inf]
    if not logs:
        return []
    center = tuple(sum(pair[axis] for pair in logs) / len(logs) for axis in (0, 1))
    ends = [min(x for x, _ in logs) - 0.05, max(x for x, _ in logs) + 0.05]

    def line(slope: float) -> list[float]:
        return [math.exp(center[1] + slope * (x - center[0])) for x in ends]

    x, color = [math.exp(end) for end in ends], GROUPS[group % len(GROUPS)] if group >= 0 else INK
    theory, said = (color if group >= 0 else THEORY), _slope_words(reading.expected)
    handles: list[Any] = []
    refuted: list[Any] = []
    if reading.expected and math.isfinite(reading.expected.middle):
        slopes = [v for v in (reading.expected.low, reading.expected.high) if math.isfinite(v)]
        axes.fill_between(x, line(slopes[0]), line(slopes[-1]), color=theory, alpha=0.16, linewidth=0)
        handles += axes.plot(x, line(reading.expected.middle), color=theory, linewidth=1.5, label=f"theory: {said}")
    fit = f"fit: slope {number(reading.measured, reading.stderr)}"
    handles += axes.plot(x, line(reading.measured), color=color, linewidth=1.1, linestyle=(0, (1, 1.5)), label=fit)
    if wrong and wrong.expected and math.isfinite(wrong.expected.middle):
        slope = wrong.expected.middle
        text = f"form in print: slope {plain(slope, digits=4)}"
        refuted += axes.plot(x, line(slope), color=WRONG, linestyle=DASHES, label=text)
    if group < 0:
        return handles + refuted
    label = f"{printable(curve.label)}: {fit}, theory {said.removeprefix('slope ')}"
    marker = MARKERS[group % len(MARKERS)]
    return [proxy(color=color, marker=marker, linewidth=1.3, label=shortened(label, 66)), *refuted]


def _slope_words(band: Band | None) -> str:
    if band is None:
        return "says nothing"
    half = (band.high - band.low) / 2
    if not math.isfinite(half):
        return f"slope {expectation(band)}"
    return f"slope {plain(band.middle, digits=4)}" + (f" ± {plain(half, digits=2)}" if half > 0 else "")
