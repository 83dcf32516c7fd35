"""What noise of a shape looks like to the spectral measurements, so that nothing is called structure that noise shows."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from theodolite.core.checks import InputError, at_least, one_of, within
from theodolite.core.reading import Band

Floats = NDArray[np.float64]

PATH = Path(__file__).with_name("spectral_null.json")
"""Written by ``python -m benchmarks.spectral_nulls``."""

PROBABILITIES = (
    0.002,
    0.005,
    0.01,
    0.0167,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    0.75,
    0.9,
    0.95,
    0.975,
    0.9833,
    0.99,
    0.995,
    0.998,
)

Statistic = Literal["alpha", "weightwatcher alpha", "distance", "tail", "bulk", "excess"]
GROWING = ("alpha", "weightwatcher alpha", "tail", "bulk")
"""Statistics that grow or fall without end with the side; the others reach a limit."""

NORMAL = NormalDist()
SMALLEST = 8
SHARES = 4  # the level is shared by three tests and the errors of the table


@dataclass(frozen=True, slots=True)
class Structure:
    """How surprising a spectrum would be were the matrix noise: ``p_value``, and the statistic that says so."""

    p_value: float
    cause: str

    def at(self, significance: float = 0.05) -> bool:
        """Whether the matrix is called structured at this level."""
        return self.p_value <= significance


def null_quantiles(
    statistic: Statistic, rows: int, columns: int, *, probabilities: Sequence[float] = (0.05, 0.5, 0.95)
) -> tuple[float, ...]:
    r"""Quantiles of a statistic of the spectrum of an independent Gaussian matrix of this shape, by simulation.

    ``alpha``, ``distance`` and ``tail`` (share of the eigenvalues) are those of the power-law fit, ``bulk`` is the
    Kolmogorov distance from the Marchenko-Pastur bulk times the smaller side, ``excess`` is that of the largest
    eigenvalue over the edge in units of its fluctuation. Interpolated in the logarithms of side and aspect ratio, then
    in the normal score of the probability; monotone in the probability. A smaller side below 8 is refused; above 4096
    the trend of the sides from 768 on is continued, or what has a limit is taken as there. Above an aspect ratio of 128
    the bulk is a narrow semicircle of relative width $\sqrt{p/n}$: exponents less one grow as its inverse, the rest
    stays. Independent entries of lighter laws (the uniform one of a fresh layer) scatter less: their largest eigenvalue goes
    beyond an upper quantile half as often at side 64, so that tests by this table are then cautious. Heavier ones (Student's t
    of 5 degrees, one entry in ten not zero) go beyond it more often at any size people have. The limit is the same for all.

    >>> low, middle, high = null_quantiles("alpha", 384, 384)
    >>> low < middle < high
    True
    """
    table, places = _table(), [min(max(p, 1e-12), 1 - 1e-12) for p in probabilities]
    one_of(table, statistic=statistic)
    values = _at_shape(statistic, rows, columns)
    return tuple(np.interp(_scores(places), _scores(PROBABILITIES), values).tolist())


def null_alpha_quantiles(
    rows: int, columns: int, *, probabilities: Sequence[float] = (0.05, 0.5, 0.95), rule: str = "clauset"
) -> tuple[float, ...]:
    """Quantiles of the power-law exponent that noise of this shape is given, by either rule of the fit.

    >>> len(null_alpha_quantiles(64, 512, rule="weightwatcher"))
    3
    """
    statistic: Statistic = "weightwatcher alpha" if rule == "weightwatcher" else "alpha"
    return null_quantiles(statistic, rows, columns, probabilities=probabilities)


def null_alpha(rows: int, columns: int, *, significance: float = 0.05, rule: str = "clauset") -> Band:
    """The interval that holds the exponent of noise of this shape, but for a share ``significance`` of matrices.

    >>> null_alpha(256, 256).low > 1.5
    True
    """
    within(0, 1, significance=significance)
    low, high = null_alpha_quantiles(rows, columns, probabilities=(significance / 2, 1 - significance / 2), rule=rule)
    return Band(low, high)


def structure(rows: int, columns: int, *, alpha: float, bulk_distance: float, excess: float) -> Structure:
    r"""Whether a spectrum could be noise: three tests, $p=\min(1,4\min_ip_i)$, so at most 5 % of noise has p ≤ 5 %.

    A largest eigenvalue too far above the edge (spikes), a bulk too far from Marchenko-Pastur (rows or columns of unequal
    size, correlations, power laws), an exponent too small (heavy tail). Four rather than three keeps a quarter of the
    level back for the errors of a simulated table. Beyond its quantiles the logarithm of the tail is continued in a
    straight line, which overstates p. Statistics that are not a number are left out.

    >>> structure(256, 128, alpha=8.0, bulk_distance=0.01, excess=30.0).cause
    'spikes'
    """
    at_least(1, rows=rows, columns=columns)
    p = min(rows, columns)
    if p < SMALLEST:
        return Structure(1.0, f"smaller side {p}: too few eigenvalues to tell from noise")
    found = {
        "spikes": _tail("excess", rows, columns, excess, upper=True),
        "bulk": _tail("bulk", rows, columns, p * bulk_distance, upper=True),
        "heavy tail": _tail("alpha", rows, columns, alpha, upper=False),
    }
    known = {cause: value for cause, value in found.items() if not math.isnan(value)}
    if not known:
        return Structure(1.0, "no statistic could be taken")
    cause = min(known, key=lambda name: known[name])
    return Structure(min(1.0, SHARES * known[cause]), cause)


def _tail(statistic: Statistic, rows: int, columns: int, value: float, *, upper: bool) -> float:
    """How often noise gives a value at least (or at most) this one."""
    if math.isnan(value):
        return math.nan
    quantiles, share = _at_shape(statistic, rows, columns), np.asarray(PROBABILITIES)
    if upper:  # work on the lower tail of the negative
        quantiles, share, value = -quantiles[::-1], (1 - share)[::-1], -value
    if value < quantiles[0]:
        slope = math.log(share[1] / share[0]) / max(quantiles[1] - quantiles[0], 1e-12)
        return float(share[0] * math.exp(max(slope * (value - quantiles[0]), -700.0)))
    return NORMAL.cdf(float(np.interp(value, quantiles, _scores(tuple(share))))) if value < quantiles[-1] else 1.0


def _scores(probabilities: Sequence[float]) -> list[float]:
    """The normal quantiles."""
    return [NORMAL.inv_cdf(float(p)) for p in probabilities]


@lru_cache(maxsize=1)
def _stored() -> dict[str, Any]:
    return dict(json.loads(PATH.read_text(encoding="utf-8")))


@lru_cache(maxsize=1)
def _table() -> dict[str, Floats]:
    """Each statistic as (sides, ratios, probabilities)."""
    stored = _stored()
    if tuple(stored["probabilities"]) != PROBABILITIES:
        raise InputError(
            f"expected the probabilities of this version in {PATH.name}, got others; write the table again"
        )
    return {name: np.asarray(values, dtype=np.float64) for name, values in stored["quantiles"].items()}


@lru_cache(maxsize=4096)
def _at_shape(statistic: Statistic, rows: int, columns: int) -> Floats:
    p, n = sorted((rows, columns))
    if p < SMALLEST:
        raise InputError(
            f"expected a smaller side of at least {SMALLEST}, got {p}; so few eigenvalues look like anything"
        )
    stored, table = _stored(), _table()[statistic]
    logs = statistic != "excess"  # the one that may be negative
    floor = 1.0 if statistic.endswith("alpha") else 0.0  # exponents less one are powers of side and ratio
    sides, ratios = np.log(stored["sides"]), np.log(stored["ratios"])
    heights = np.swapaxes(np.log(table - floor) if logs else table, 0, 1)
    across = _between(heights, ratios, min(math.log(n / p), ratios[-1]))  # (sides, probabilities)
    side = math.log(p) if statistic in GROWING else min(math.log(p), sides[-1])
    values = _between(across, sides, side) if side <= sides[-1] else _beyond(across, sides, side)
    values = np.maximum.accumulate(np.exp(values) if logs else values)
    narrower = max(n / p / stored["ratios"][-1], 1.0) ** 0.5 if floor else 1.0
    return np.asarray(floor + narrower * values)


def _between(values: Floats, places: Floats, place: float) -> Floats:
    """Linear between the two nearest places of the first axis."""
    i = int(np.clip(np.searchsorted(places, place, side="right") - 1, 0, len(places) - 2))
    part = (place - places[i]) / (places[i + 1] - places[i])
    return np.asarray((1 - part) * values[i] + part * values[i + 1])


def _beyond(values: Floats, places: Floats, place: float) -> Floats:
    """The straight line through the last five places, continued."""
    last = slice(len(places) - 5, len(places))
    slope, height = np.polyfit(places[last], values[last], 1)
    return np.asarray(height + slope * place)
