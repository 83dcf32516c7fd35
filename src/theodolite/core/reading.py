"""The atom: one measured number beside the interval in which theory expects it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Status = Literal["agrees", "above", "below", "inconclusive", "invalid", "no reference"]
Corners = tuple[tuple[float, float], ...]
SIGMAS = 3.0  # how many standard errors either side of a measurement must fit into the band


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
            raise ValueError(f"expected a band with low <= high, got {self.low} and {self.high}; exchange the ends")

    @classmethod
    def around(cls, value: float, *, rel: float = 0.0, abs: float = 0.0) -> Band:
        """The band of half-width ``rel * |value| + abs`` about ``value``."""
        half = rel * math.fabs(value) + abs
        return cls(value - half, value + half)

    @property
    def middle(self) -> float:
        """The centre, or the finite end of a one-sided band."""
        if math.isinf(self.low):
            return self.high
        return self.low if math.isinf(self.high) else 0.5 * (self.low + self.high)

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def __str__(self) -> str:
        if math.isinf(self.low):
            return "anything" if math.isinf(self.high) else f"≤ {self.high:.6g}"
        if math.isinf(self.high):
            return f"≥ {self.low:.6g}"
        if f"{self.low:.4g}" == f"{self.high:.4g}":
            return f"{self.middle:.6g}"
        return f"{self.low:.4g} … {self.high:.4g}"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its standard error and, where it has one, the scale at which it was taken."""

    value: float
    stderr: float = 0.0
    scale: float | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """What a figure draws: measurements at ``x`` (numbers, or names such as layers) and theory's band there.

    ``low`` and ``high`` are empty where theory says nothing; at a single place ``low > high`` says so. ``log`` names the
    logarithmic axes, as in ``"xy"``. ``line`` is another curve, such as a fit, not a number where it does not apply.
    """

    x: tuple[float, ...] | tuple[str, ...]
    measured: tuple[float, ...]
    stderr: tuple[float, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    x_label: str = ""
    y_label: str = ""
    log: str = ""
    line: tuple[float, ...] = ()
    line_label: str = ""

    def __post_init__(self) -> None:
        given = (self.stderr, self.low, self.high, self.line)
        lengths = {len(self.x), len(self.measured), *(len(values) for values in given if values)}
        if len(lengths) > 1:
            raise ValueError(f"expected as many values as places in every list, got lengths {sorted(lengths)}")


@dataclass(frozen=True, slots=True)
class CellPicture(Series):
    """Polygons of a plane, each with its group (such as the class answered there), and points marked among them."""

    polygons: tuple[Corners, ...] = ()
    groups: tuple[int, ...] = ()
    points: Corners = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One quantity, measured ± its standard error, beside what theory expects, and what that means."""

    quantity: str
    measured: float
    stderr: float = 0.0
    expected: Band | None = None
    where: str = ""
    meaning: str = ""
    series: Series | None = None

    @property
    def interval(self) -> tuple[float, float]:
        """Measured ± 3 standard errors."""
        return self.measured - SIGMAS * self.stderr, self.measured + SIGMAS * self.stderr

    @property
    def status(self) -> Status:
        """By intervals: wholly inside the band agrees, wholly outside is above or below, else inconclusive."""
        if not math.isfinite(self.measured) or math.isnan(self.stderr) or self.stderr < 0:
            return "invalid"
        if self.expected is None:
            return "no reference"
        low, high = self.interval
        if self.expected.low <= low and high <= self.expected.high:
            return "agrees"
        if low > self.expected.high:
            return "above"
        return "below" if high < self.expected.low else "inconclusive"
