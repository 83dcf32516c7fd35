"""The atom: one measured number beside the interval in which theory expects it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Literal

from theodolite.core.checks import InputError
from theodolite.core.series import CellPicture, Series

__all__ = ["FAMILY", "SIGMAS", "Against", "Band", "CellPicture", "Estimate", "Reading", "Series", "Status", "sigmas_of"]

Status = Literal["agrees", "above", "below", "not random", "inconclusive", "invalid", "no reference"]
Against = Literal["law", "chance", "health"]
SIGMAS = 3.0  # how many standard errors either side of a measurement must fit into the band
FAMILY = 0.02  # how often at most one or more of all readings of a quantity may leave chance by chance


@dataclass(frozen=True, slots=True)
class Band:
    """The interval in which theory expects a quantity; one-sided when an end is infinite.

    >>> Band.around(2.0, rel=0.1)
    Band(low=1.8, high=2.2)
    >>> print(Band(high=20.0))
    ≤ 20
    """

    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise InputError(f"expected a band with low <= high, got {self.low} and {self.high}; swap the ends")

    @classmethod
    def around(cls, value: float, *, rel: float = 0.0, abs: float = 0.0) -> Band:
        """The band of half-width ``rel * |value| + abs`` about ``value``."""
        half = rel * math.fabs(value) + abs
        return cls(value - half, value + half)

    @property
    def middle(self) -> float:
        """The center, or the finite end of a one-sided band."""
        if math.isinf(self.low):
            return self.high
        return self.low if math.isinf(self.high) else 0.5 * (self.low + self.high)

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def __str__(self) -> str:
        if math.isinf(self.low):
            return "anything" if math.isinf(self.high) else f"≤ {self.high:.4g}"
        if math.isinf(self.high):
            return f"≥ {self.low:.4g}"
        if f"{self.low:.4g}" == f"{self.high:.4g}":
            return f"{self.middle:.6g}"
        return f"{self.low:.4g} … {self.high:.4g}"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its standard error and, where it has one, the scale at which it was taken."""

    value: float
    stderr: float = 0.0
    scale: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One quantity: measured ± its standard error, what theory expects, and what that means.

    ``against`` says where the expected band comes from: a ``"law"`` that must hold here (outside it, an assumption does not
    hold, or there is a bug); ``"chance"``, what random weights, random labels or noise give (outside it is structure,
    never an alarm); or ``"health"``, what a network needs in order to work (outside it is a problem). ``family`` is how
    many readings of this quantity were judged together: the more, the wider the interval.
    """

    quantity: str
    measured: float
    stderr: float = 0.0
    expected: Band | None = None
    where: str = ""
    meaning: str = ""
    series: Series | None = None
    against: Against = "law"
    family: int = 1

    @property
    def interval(self) -> tuple[float, float]:
        """Measured ± 3 standard errors, or more where many readings are judged together."""
        sigmas = sigmas_of(self.family)
        return self.measured - sigmas * self.stderr, self.measured + sigmas * self.stderr

    @property
    def status(self) -> Status:
        """By intervals: wholly inside the band agrees, wholly outside is above or below (of chance: not random), else open."""
        if not math.isfinite(self.measured) or math.isnan(self.stderr) or self.stderr < 0:
            return "invalid"
        if self.expected is None:
            return "no reference"
        low, high = self.interval
        if self.expected.low <= low and high <= self.expected.high:
            return "agrees"
        if low > self.expected.high:
            return "not random" if self.against == "chance" else "above"
        if high < self.expected.low:
            return "not random" if self.against == "chance" else "below"
        return "inconclusive"

    @property
    def alarming(self) -> bool:
        """Whether it is outside what must be: a law or the needs of a working network, or no number at all."""
        return self.status in ("above", "below", "invalid")


@lru_cache(maxsize=4096)
def sigmas_of(family: int) -> float:
    """How many standard errors keep a whole family of so many normal readings inside at 98 %, but never fewer than three.

    By Sidak's rule each may leave with probability 1 - 0.98^(1/family).

    >>> sigmas_of(1), round(sigmas_of(200), 2)
    (3.0, 3.89)
    """
    each = 1 - (1 - FAMILY) ** (1 / family)
    return max(SIGMAS, -NormalDist().inv_cdf(each / 2))
