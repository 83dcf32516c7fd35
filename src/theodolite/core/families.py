"""Many readings of one quantity, judged together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from theodolite.core.reading import FAMILY, SIGMAS, Band, Reading, sigmas_of


def in_families(readings: Iterable[Reading]) -> tuple[Reading, ...]:
    """Readings of one quantity beside chance or health, judged together: noise leaves all alone at 98 %, however many.

    Bands of chance with two ends, drawn at three standard deviations of it, are widened as the intervals are. p-values, known by
    their name, are judged by Holm's rule: the smallest against 0.02 over their number, the next against 0.02 over one less.
    """
    found = list(readings)
    places: dict[str, list[int]] = {}
    for place, reading in enumerate(found):
        if reading.against != "law" and reading.expected is not None:
            places.setdefault(reading.quantity, []).append(place)
    for quantity, family in places.items():
        size = len(family)
        if quantity.startswith("p-value"):
            levels = _holm([found[place].measured for place in family])
            for place, level in zip(family, levels, strict=True):
                found[place] = replace(found[place], family=size, expected=Band(low=level))
        elif size > 1:
            for place in family:
                reading, band = found[place], found[place].expected
                if reading.against == "chance" and band is not None:
                    band = widened(band, size)
                found[place] = replace(reading, family=size, expected=band)
    return tuple(found)


def widened(band: Band, family: int) -> Band:
    """A band of three standard deviations of chance, as wide as so many readings beside it ask for; one-sided ones stay."""
    if not math.isfinite(band.high - band.low):
        return band
    more = (sigmas_of(family) / SIGMAS - 1) * (band.high - band.low) / 2
    return Band(band.low - more, band.high + more)


def _holm(p_values: Sequence[float]) -> list[float]:
    """The level beside which each p-value is laid; from the first that is not below its own on, none is."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    levels, stopped = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(order):
        level = stopped or FAMILY / (len(p_values) - rank)
        if not stopped and not p_values[place] < level:
            stopped = level
        levels[place] = level
    return levels
