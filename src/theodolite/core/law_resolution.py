"""How finely readings can tell: the factor by which their predictions could be off unnoticed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from theodolite.core.reading import Band, Reading

OF_BANDS, OF_BOUNDS = 1.2, 3.0  # a law that holds with its prediction off by such a factor must say so


def largest_factor(readings: Sequence[Reading]) -> float | None:
    """The largest factor, up or down, with which all readings would still agree; None where there is nothing to scale.

    Of a band the middle is multiplied and the width stays; of a bound only the direction that makes it tighter counts. A zero
    and a sign are changed by no factor.

    >>> largest_factor([Reading(quantity="x", measured=2.0, expected=Band(high=5.0))])
    2.5
    """
    spans = [span for span in map(_factors, readings) if span]
    down = min((1 / low if low > 0 else math.inf for low, _ in spans if low > -math.inf), default=1.0)
    up = min((high for _, high in spans if high < math.inf), default=1.0)
    return max(up, down) if spans else None


def least_resolution(readings: Sequence[Reading]) -> float:
    """What is asked where nothing coarser is stated: 1.2, or 3 where every reading stands beside a one-sided bound."""
    bands = [r.expected for r in readings if r.expected is not None]
    return OF_BOUNDS if all(math.inf in (-band.low, band.high) for band in bands) else OF_BANDS


def _factors(reading: Reading) -> tuple[float, float] | None:
    """The least and the largest factor of its prediction with which a reading agrees; an infinite end does not bind."""
    band = reading.expected
    if band is None or band.middle == 0 or math.isinf(band.middle):
        return None
    low, high = reading.interval
    if band.middle < 0:
        band, low, high = Band(-band.high, -band.low), -high, -low
    if math.isinf(band.low):
        return high / band.high, math.inf
    if math.isinf(band.high):
        return -math.inf, low / band.low
    half = 0.5 * (band.high - band.low)
    return (high - half) / band.middle, (low + half) / band.middle
