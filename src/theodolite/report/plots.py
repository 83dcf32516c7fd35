"""The figures of a page: which are drawn in full and which small, and the one of all places side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from theodolite.core.reading import CellPicture, Reading, Series
from theodolite.report.figures import series_figure
from theodolite.report.small_figures import small_figure
from theodolite.report.words import WORST

FEW_FIGURES, FIRST, MANY_PLACES, MOST_FIGURES = 8, 3, 60, 100
"""Up to so many figures of a quantity are all drawn in full and stand open; of more the first to be seen are, and the others
small; of more places than can be named at an axis too. Of hundreds those to be seen first are drawn, the others counted."""


@dataclass(frozen=True)
class Plot:
    """A figure with its caption; words alone where nothing is drawn."""

    svg: str
    caption: str


def plots_of(readings: Sequence[Reading], name: str) -> list[Plot]:
    """The figures of a group: its own series, or else all places side by side where there are three or more."""
    series: dict[Series, list[str]] = {}
    for reading in readings:
        if reading.series is not None and reading.series.x:
            series.setdefault(reading.series, []).append(reading.where)
    if not series and len(readings) > 2:
        series[_places_series(readings)] = [""]
    full = _worth_seeing(readings, series)
    drawn = _first(readings, series, MOST_FIGURES)
    rest = len(series) - len(drawn)
    plots = [
        Plot(
            _figure(data, f"{name}-{place}", readings[0].quantity)
            if data in full and not _is_crowded(data)
            else small_figure(data),
            where[0] if len(where) == 1 else "",
        )
        for place, (data, where) in enumerate(series.items())
        if data in drawn
    ]
    return plots + ([Plot("", f"{rest} more places have a figure that is not drawn here")] if rest else [])


def _is_crowded(data: Series) -> bool:
    return len(data.x) > MANY_PLACES and isinstance(data.x[0], str)


def _worth_seeing(readings: Sequence[Reading], series: Mapping[Series, Sequence[str]]) -> set[Series]:
    """Those drawn in full: all where they are few, else the ones whose readings should be seen first."""
    if len(series) <= FEW_FIGURES:
        return set(series)
    pictures = {data for data in series if isinstance(data, CellPicture)}
    return _first(readings, series, FIRST) | pictures


def _first(readings: Sequence[Reading], series: Mapping[Series, Sequence[str]], count: int) -> set[Series]:
    """So many of the series, those whose readings should be seen first; all where they are no more."""
    if len(series) <= count:
        return set(series)
    ranked = sorted(
        (reading for reading in readings if reading.series in series), key=lambda reading: WORST.index(reading.status)
    )
    return set(list(dict.fromkeys(reading.series for reading in ranked if reading.series is not None))[:count])


def _figure(data: Series, key: str, quantity: str) -> str:
    """The figure; its upright axis is named where that is not the quantity, which stands above it."""
    if isinstance(data, CellPicture):
        from theodolite.report.regions import cells_figure  # few pages have one

        return cells_figure(data, key=key)
    return series_figure(data, key=key, titled=data.y_label != quantity)


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
