"""Figures of readings and verdicts: theory as line or band, the measurement as points with error bars."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from theodolite.core.reading import CellPicture, Reading, Series
from theodolite.report.drawing.charts import MOST_POINTS, Area, Figure, Mark, Points, Polyline
from theodolite.report.drawing.scales import Scale, is_wide, named_scale, own_ticks, scale_of
from theodolite.report.drawing.shapes import group_color
from theodolite.report.words import WORST, case_words, expectation, number, plain, printable, shortened

if TYPE_CHECKING:
    from theodolite.core.law import Case, Verdict
    from theodolite.core.reading import Band

FEW_FIGURES, FIRST, MANY_PLACES, MOST_FIGURES = 8, 3, 60, 100
"""Up to so many figures of a quantity are all drawn in full and stand open; of more the first to be seen are, and the others
small; of more places than can be named at an axis too. Of hundreds those to be seen first are drawn, the others counted."""

WEDGE = 20
"""Parts in which the area between two slopes is drawn."""

ERRORS = "measured ± 1 standard error"


@dataclass(frozen=True)
class Plot:
    """A figure with its caption; words alone where nothing is drawn."""

    svg: str
    caption: str


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

    @property
    def bands(self) -> list[tuple[float, float]]:
        """What theory expects, at the places of which it says something."""
        return [(low, high) for low, high in zip(self.low, self.high, strict=True) if low <= high]

    def values(self) -> list[float]:
        """Every finite number along y, error bars aside."""
        ends = [end for band in self.bands for end in band]
        return [v for v in (*self.measured, *ends, *self.wrong) if math.isfinite(v)]

    def marks(self, group: int) -> list[Mark]:
        """The band below, the other curve over it, then the points."""
        theory = group_color(group) if group >= 0 else "theory"
        return [
            Area(self.x, self.low, self.high, theory),
            *([Polyline(self.x, self.wrong, "wrong", "dashed")] if self.wrong else []),
            Points(self.x, self.measured, self.stderr, group),
        ]


def series_figure(series: Series, *, titled: bool = True) -> str:
    """A reading's series as an inline SVG. Where it is not ``titled`` its upright axis has no name: a heading says it."""
    if isinstance(series, CellPicture):
        from theodolite.report.drawing.planes import cells_figure  # few pages have one

        return cells_figure(series.polygons, series.groups, series.points)
    chart = _series_figure(series)
    return (chart if titled else replace(chart, y_label="")).svg()


def small_figure(series: Series) -> str:
    """A series without ticks: the ends of its axes stand below it in numbers."""
    chart = _series_figure(series)
    across, up = _ends(() if chart.x.names else series.x), _ends((*series.measured, *series.low, *series.high))
    return chart.small(f"{series.x_label or 'place'}{across}; {series.y_label or 'measured'}{up}")


def _ends(values: Iterable[float | str]) -> str:
    finite = [float(value) for value in values if math.isfinite(float(value))]
    return f" {plain(min(finite), digits=3)} to {plain(max(finite), digits=3)}" if finite else ""


def _series_figure(series: Series) -> Figure:
    names = tuple(str(x) for x in series.x) if series.x and isinstance(series.x[0], str) else ()
    x = [float(place) for place in range(len(names))] if names else [float(value) for value in series.x]
    low, high, count = series.low, series.high, len(x)
    none = (-math.inf, math.inf) if low or high else (math.inf, -math.inf)  # low above high: theory says nothing
    curve = Curve(
        x=x,
        measured=list(series.measured),
        stderr=list(series.stderr) or [0.0] * count,
        low=[-math.inf if math.isnan(v) and high else v for v in low] or [none[0]] * count,
        high=[math.inf if math.isnan(v) and low else v for v in high] or [none[1]] * count,
        wrong=list(series.line),
        wrong_label=series.line_label or "fit",
    )
    logs = "x" in series.log and not names, "y" in series.log
    spoken = f"{series.y_label or 'measured'} against {series.x_label or 'place'}"
    return _figure([curve], names, logs, (series.x_label, series.y_label, spoken))


def verdict_figure(verdict: Verdict) -> str:
    """A verdict as an inline SVG: every case of a law, or the log-log fit of a law about an exponent."""
    law = verdict.law
    name = law.quantity or law.name
    spoken = f"{law.name}: {name}, prediction and measurement"
    wrong: Sequence[Reading | None] = verdict.refuted or [None] * len(verdict.readings)
    if law.exponent is not None:
        return _exponent_figure(verdict, wrong, (law.exponent, name, spoken)).svg()
    cases = law.cases_of(verdict.size)
    along = law.along if law.along and all(law.along in case for case in cases) else None
    places, names = _places(cases, along)
    curves: dict[str, Curve] = {}
    for case, x, reading, other in zip(cases, places, verdict.readings, wrong, strict=True):
        rest = case_words({k: v for k, v in case.items() if k != along and _varies(cases, k)}) if along else ""
        _add(curves.setdefault(rest, Curve(label=rest)), x, reading, other)
    logs = not names and is_wide(places), is_wide([v for curve in curves.values() for v in curve.values()])
    labels = (along or ", ".join(_varying(cases)), name, spoken)
    return _figure(list(curves.values()), names, logs, labels).svg()


def plots_of(readings: Sequence[Reading]) -> list[Plot]:
    """The figures of a group: its own series, or else all places side by side where there are three or more."""
    series: dict[Series, list[str]] = {}
    for reading in readings:
        if reading.series is not None and reading.series.x:
            series.setdefault(reading.series, []).append(reading.where)
    if not series and len(readings) > 2:
        series[_places_series(readings)] = [""]
    full = set(series) if len(series) <= FEW_FIGURES else _first(readings, series, FIRST)
    drawn = _first(readings, series, MOST_FIGURES)
    rest = len(series) - len(drawn)
    plots = []
    for data, where in series.items():
        crowded = len(data.x) > MANY_PLACES and isinstance(data.x[0], str)
        if data in drawn:
            large = isinstance(data, CellPicture) or (data in full and not crowded)
            figure = series_figure(data, titled=data.y_label != readings[0].quantity) if large else small_figure(data)
            plots.append(Plot(figure, where[0] if len(where) == 1 else ""))
    return plots + ([Plot("", f"{rest} more places have a figure that is not drawn here")] if rest else [])


def _first(readings: Sequence[Reading], series: Mapping[Series, Sequence[str]], count: int) -> set[Series]:
    """So many of the series, those whose readings should be seen first; all where they are no more."""
    if len(series) <= count:
        return set(series)
    ranked = sorted((r for r in readings if r.series in series), key=lambda reading: WORST.index(reading.status))
    return set(list(dict.fromkeys(reading.series for reading in ranked if reading.series is not None))[:count])


def _places_series(readings: Sequence[Reading]) -> Series:
    bands = [reading.expected for reading in readings]
    told = any(band is not None for band in bands)
    ends = [v for band in bands if band for v in (band.low, band.high) if math.isfinite(v)]
    values = [v for v in (*ends, *(reading.measured for reading in readings)) if math.isfinite(v)]
    return Series(
        x=tuple(reading.where or str(place + 1) for place, reading in enumerate(readings)),
        measured=tuple(reading.measured for reading in readings),
        stderr=tuple(reading.stderr for reading in readings),
        low=tuple(band.low if band else math.inf for band in bands) if told else (),
        high=tuple(band.high if band else -math.inf for band in bands) if told else (),
        y_label=readings[0].quantity,
        log="y" if values and min(values) > 0 and max(values) > 100 * min(values) else "",
    )


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
    curves: Sequence[Curve], names: Sequence[str], logs: tuple[bool, bool], labels: tuple[str, str, str]
) -> Figure:
    """The chart of all curves with its legend; labels are those of x, of y, and the one read aloud."""
    x, y = _scales(curves, names, logs)
    several = len(curves) > 1
    marks = [mark for place, curve in enumerate(curves) for mark in curve.marks(place if several else -1)]
    keys = _keys(curves, x, y, "ink" if several else "theory")
    for place, curve in enumerate(curves if several else ()):
        keys.append(Polyline(color=group_color(place), mark=place, label=shortened(printable(curve.label), 34)))
    x_label, y_label, spoken = (printable(label) for label in labels)
    return Figure(x, y, marks, keys, x_label, y_label, spoken)


def _keys(curves: Sequence[Curve], x: Scale, y: Scale, color: str) -> list[Mark]:
    """What the legend says of band, points and the other curve; nothing where the points are alone and all there."""
    bands = [band for curve in curves for band in curve.bands]
    keys: list[Mark] = []
    if any(low < high for low, high in bands):
        keys.append(Area(color=color, label="theory expects"))
    elif bands:
        keys.append(Polyline(color=color, label="theory"))
    keys.append(Points(label=_points_words(curves, x, y)))
    if any(math.isfinite(value) for curve in curves for value in curve.wrong):
        words = shortened(printable(curves[0].wrong_label), 40)
        keys.append(Polyline(color="wrong", style="dashed", label=words))
    return keys if len(keys) > 1 or keys[0].label not in ("measured", ERRORS) else []


def _points_words(curves: Sequence[Curve], x: Scale, y: Scale) -> str:
    """What the points are, what their bars are, and what could not be drawn."""
    pairs = [pair for curve in curves for pair in zip(curve.x, curve.measured, strict=True)]
    lost = sum(not (x.shows(a) and y.shows(b)) for a, b in pairs)
    label = ERRORS if any(error > 0 for curve in curves for error in curve.stderr) else "measured"
    if lost:
        return f"{label} ({lost} of {len(pairs)} cannot be drawn)"
    many = any(len(curve.x) > MOST_POINTS for curve in curves)
    return f"{label} ({len(pairs)}, thinned, extremes kept)" if many else label


def _scales(curves: Sequence[Curve], names: Sequence[str], logs: tuple[bool, bool]) -> tuple[Scale, Scale]:
    """Axes that hold every curve with its error bars; a bar that reaches far down a logarithmic axis is cut."""
    xs, ys = [v for curve in curves for v in curve.x], [v for curve in curves for v in curve.values()]
    bars = [m + s * e for c in curves for m, e in zip(c.measured, c.stderr, strict=True) for s in (-1, 1)]
    bars = [bar for bar in bars if math.isfinite(bar)]
    positive = [v for v in ys if v > 0]
    if logs[1] and positive:
        floor = min(positive) / 10
        bars = [bar for bar in bars if bar >= floor]
    x = named_scale(names) if names else scale_of(xs, log=logs[0])
    return replace(x, own=own_ticks(xs, x)), scale_of((*ys, *bars), log=logs[1] and bool(positive), margin=0.08)


def _exponent_figure(verdict: Verdict, wrong: Sequence[Reading | None], labels: tuple[str, str, str]) -> Figure:
    """Points in log-log with the fitted slope, the predicted one and, where there is one, the refuted one."""
    drawn = [
        (reading, series, other)
        for reading, other in zip(verdict.readings, wrong, strict=True)
        if (series := reading.series) is not None
    ]
    curves = [_bare_curve(reading, series) for reading, series, _ in drawn]
    x, y = _scales(curves, (), (True, True))
    marks: list[Mark] = []
    keys: list[Mark] = [Points(label=_points_words(curves, x, y))]
    refuted: list[Mark] = []
    for place, (curve, (reading, _, other)) in enumerate(zip(curves, drawn, strict=True)):
        group = place if len(curves) > 1 else -1
        lines = _slope_lines(curve, group, y, reading, other)
        marks += [*lines, *curve.marks(group)]
        told = [mark for mark in lines if mark.label]
        refuted += [mark for mark in told if isinstance(mark, Polyline) and mark.color == "wrong"]
        if group < 0:
            keys += [mark for mark in told if mark not in refuted]
        else:
            slope = _slope_words(reading.expected).removeprefix("slope ")
            fit = f": fit: slope {number(reading.measured, reading.stderr)}, theory {slope}"
            label = shortened(printable(curve.label), max(66 - len(fit), 12)) + fit
            keys.append(Polyline(color=group_color(group), mark=group, label=label))
    once = {mark.label: mark for mark in refuted}
    x_label, y_label, spoken = (printable(label) for label in labels)
    return Figure(x, y, marks, [*keys, *once.values()], x_label, y_label, spoken)


def _bare_curve(reading: Reading, series: Series) -> Curve:
    count = len(series.x)
    return Curve(
        label=reading.where,
        x=[float(value) for value in series.x],
        measured=list(series.measured),
        stderr=list(series.stderr) or [0.0] * count,
        low=[math.inf] * count,
        high=[-math.inf] * count,
    )


def _slope_lines(curve: Curve, group: int, y: Scale, reading: Reading, wrong: Reading | None) -> list[Mark]:
    """The straight lines through the middle of the points, with what the legend says of them."""
    logs = [(math.log(x), math.log(y)) for x, y in zip(curve.x, curve.measured, strict=True) if x > 0 < y < math.inf]
    if not logs:
        return []
    center = [sum(pair[axis] for pair in logs) / len(logs) for axis in (0, 1)]
    ends = min(x for x, _ in logs) - 0.05, max(x for x, _ in logs) + 0.05
    across = [ends[0] + (ends[1] - ends[0]) * part / WEDGE for part in range(WEDGE + 1)]
    color = group_color(group)

    def line(slope: float, color: str, style: str, label: str) -> Polyline:
        heights = [min(max(center[1] + slope * (end - center[0]), math.log(y.low)), math.log(y.high)) for end in ends]
        cut = [
            center[0] + (height - center[1]) / slope if slope else end
            for height, end in zip(heights, ends, strict=True)
        ]
        return Polyline([math.exp(v) for v in cut], [math.exp(v) for v in heights], color, style, label)

    marks: list[Mark] = []
    theory, expected = (color if group >= 0 else "theory"), reading.expected
    if expected and math.isfinite(expected.middle):
        low, high = (v if math.isfinite(v) else expected.middle for v in (expected.low, expected.high))
        sides = [sorted(math.exp(center[1] + v * (x - center[0])) for v in (low, high)) for x in across]
        lower, upper = ([side[end] for side in sides] for end in (0, 1))
        marks.append(Area([math.exp(x) for x in across], lower, upper, theory, edged=False))
        marks.append(line(expected.middle, theory, "", f"theory: {_slope_words(expected)}"))
    marks.append(line(reading.measured, color, "dotted", f"fit: slope {number(reading.measured, reading.stderr)}"))
    if wrong and wrong.expected and math.isfinite(wrong.expected.middle):
        slope = wrong.expected.middle
        marks.append(line(slope, "wrong", "dashed", f"form in print: slope {plain(slope, digits=4)}"))
    return marks


def _slope_words(band: Band | None) -> str:
    if band is None:
        return "says nothing"
    half = (band.high - band.low) / 2
    if not math.isfinite(half):
        return f"slope {expectation(band)}"
    return f"slope {plain(band.middle, digits=4)}" + (f" ± {plain(half, digits=2)}" if half > 0 else "")
