"""Many readings of one quantity, judged together."""

import math
from collections.abc import Iterable
from dataclasses import replace

from theodolite.core.reading import SIGMAS, Band, Reading, sigmas_of


def in_families(readings: Iterable[Reading]) -> tuple[Reading, ...]:
    """Readings of one quantity beside chance or health, judged together: noise leaves all alone at 98 %, however many.

    Bands of chance with two ends, drawn at three standard deviations of it, are widened as the intervals are. p-values
    are corrected where they are made (Holm).
    """
    found = list(readings)
    places: dict[str, list[int]] = {}
    for place, reading in enumerate(found):
        if reading.against != "law" and reading.expected is not None:
            places.setdefault(reading.quantity, []).append(place)
    for family in places.values():
        size = len(family)
        if size > 1:
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
