"""The figures of a group of readings: their own curves, the most telling of many, or all places side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from theodolite.core.reading import CellPicture, Reading, Series
from theodolite.report.figures import series_figure

MOST_FIGURES = 24
"""Figures of one group that are drawn; a checkpoint with hundreds of matrices would make a page of many megabytes."""


@dataclass(frozen=True)
class Plot:
    """A figure with its caption."""

    svg: str
    caption: str


def plots_of(readings: Sequence[Reading], name: str) -> list[Plot]:
    """The figures of a group: its own series, or else all places side by side where there are three or more."""
    series: dict[Series, list[Reading]] = {}
    for reading in readings:
        if reading.series is not None and reading.series.x:
            series.setdefault(reading.series, []).append(reading)
    if not series and len(readings) > 2:
        return [Plot(_figure(_places_series(readings), f"{name}-0"), "")]
    drawn = _most_telling(series)
    plots = [
        Plot(_figure(data, f"{name}-{place}"), series[data][0].where if len(series[data]) == 1 else "")
        for place, data in enumerate(drawn)
    ]
    if len(drawn) < len(series):
        words = "Their numbers are in the table, their curves in the survey's json() and frame()."
        plots.append(Plot(f'<p class="th-small th-soft">{words}</p>', f"{len(series) - len(drawn)} more, not drawn"))
    return plots


def _most_telling(series: Mapping[Series, Sequence[Reading]]) -> list[Series]:
    """At most some figures: of readings that left their band where there are so many, spread evenly over the places."""
    if len(series) <= MOST_FIGURES:
        return list(series)
    outside = [data for data, own in series.items() if any(r.alarming or r.status in ("above", "below") for r in own)]
    inside = [data for data in series if data not in set(outside)]
    kept = set(_spread(outside, MOST_FIGURES))
    kept |= set(_spread(inside, MOST_FIGURES - len(kept)))
    return [data for data in series if data in kept]


def _spread(items: Sequence[Series], count: int) -> list[Series]:
    if len(items) <= count:
        return list(items)
    return [items[place * len(items) // count] for place in range(count)]


def _figure(data: Series, key: str) -> str:
    if isinstance(data, CellPicture):
        from theodolite.report.regions import cells_figure  # few pages have one

        return cells_figure(data, key=key)
    return series_figure(data, key=key)


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
