"""Axes: where a number lies between two ends, and which round numbers stand beside it."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from theodolite.report.words import plain, printable, shortened

MOST_NAMES, NAME_LETTERS, OWN_TICKS = 14, 22, 8


@dataclass(frozen=True)
class Scale:
    """An axis from ``low`` to ``high``: even, logarithmic, or with a name at each whole number.

    ``own`` are ticks that are asked for, such as the places that were measured.
    """

    low: float
    high: float
    log: bool = False
    names: tuple[str, ...] = ()
    own: tuple[float, ...] = ()

    def shows(self, value: float) -> bool:
        """Whether the value has a place on the axis."""
        return math.isfinite(value) and (value > 0 or not self.log)

    def share(self, value: float) -> float:
        """How far along the axis, from 0 to 1, or a little beyond its ends where the value is far.

        >>> Scale(0.0, 4.0).share(1.0), Scale(1.0, 100.0, log=True).share(10.0), Scale(0.0, 1.0).share(9.0)
        (0.25, 0.5, 1.02)
        """
        return self.shares([value])[0]

    def shares(self, values: Sequence[float]) -> list[float]:
        """How far along the axis each value is."""
        low, high = self.low, self.high
        if self.log:
            low, high = math.log10(low), math.log10(high)
            values = [math.log10(value) if value > 1e-300 else -300.0 for value in values]
        half = high / 2 - low / 2  # halves: a difference of huge numbers would overflow
        if half == 0:
            return [0.5] * len(values)
        low /= 2
        return [min(max((value / 2 - low) / half, -0.02), 1.02) for value in values]

    def ticks(self, most: int = 7) -> list[tuple[float, str]]:
        """The numbers or names that stand at the axis, each with its words."""
        if self.names:
            step = math.ceil(len(self.names) / MOST_NAMES)
            places = range(0, len(self.names), step)
            return [(float(at), shortened(printable(self.names[at]), NAME_LETTERS)) for at in places]
        values = self.own or (_round_powers if self.log else _round_numbers)(self.low, self.high, most)
        return list(zip(values, _tick_words(values), strict=True))


def scale_of(values: Iterable[float], *, log: bool = False, margin: float = 0.04) -> Scale:
    """An axis that holds all values with a margin; logarithmic only where there is a positive value.

    >>> scale_of([1.0, 3.0], margin=0.5), scale_of([-1.0, -3.0], log=True, margin=0.0).log
    (Scale(low=0.0, high=4.0, log=False, names=(), own=()), False)
    """
    finite = [value for value in values if math.isfinite(value)]
    logs = [math.log10(value) for value in finite if value > 0] if log else []
    if logs:
        pad = max(margin * (max(logs) - min(logs)), 0.05)
        return Scale(10.0 ** max(min(logs) - pad, -300), 10.0 ** min(max(logs) + pad, 300), log=True)
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    least = 2e-4 * max(abs(low), abs(high)) or 1.0  # narrower, and the ticks would run out of digits
    pad = max(margin * (high - low), 0.5 * (least - (high - low)))
    return Scale(low - pad, high + pad)


def named_scale(names: Sequence[str]) -> Scale:
    """An axis with a name at each whole number from 0 on."""
    return Scale(-0.5, len(names) - 0.5, names=tuple(names))


def own_ticks(values: Iterable[float], scale: Scale) -> tuple[float, ...]:
    """The values themselves as ticks of a logarithmic axis, where they are few and stand apart; else nothing."""
    places = sorted({value for value in values if scale.log and value > 0 and math.isfinite(value)})
    apart = all(scale.share(b) - scale.share(a) > 0.09 for a, b in pairwise(places))
    return tuple(places) if len(places) < OWN_TICKS and apart else ()


def is_wide(values: Sequence[float]) -> bool:
    """Positive values that span two decades, or grow by a constant factor to eight times the first and more."""
    if not values or min(values) <= 0:
        return False
    steps = sorted(set(values))
    ratios = [b / a for a, b in pairwise(steps)]
    even = len(ratios) >= 2 and max(ratios) < 1.1 * min(ratios) and steps[-1] >= 8 * steps[0]
    return steps[-1] > 100 * steps[0] or even


def _tick_words(values: Sequence[float]) -> list[str]:
    """Numbers with as many digits as tell them apart; a power of ten as such.

    >>> _tick_words([0.01, 1e5]), _tick_words([100000.0, 100000.5])
    (['0.01', '10⁵'], ['100000', '100000.5'])
    """
    words: list[str] = []
    for digits in (4, 6, 8, 12):
        words = [long.removeprefix("1×") for long in (plain(value, digits=digits) for value in values)]
        if len(set(words)) == len(values):
            break
    return words


def _round_powers(low: float, high: float, most: int) -> list[float]:
    """Powers of ten, and where these are few also some numbers between.

    >>> _round_powers(0.5, 200.0, 7), _round_powers(1e-9, 1e9, 4)
    ([1.0, 3.0, 10.0, 30.0, 100.0], [1e-05, 1.0, 100000.0])
    """
    decades = math.log10(high) - math.log10(low)
    parts = (1, 2, 5) if decades < 0.26 * most else (1, 3) if decades < 0.4 * most else (1,)
    step = max(1, math.ceil(decades / most))
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    powers = [power for power in range(-(-first // step) * step, last + 1, step) if -300 < power < 300]
    found = [float(f"{part}e{power}") for power in powers for part in parts]
    found = [value for value in found if low <= value <= high]
    return found if len(found) > 1 else _round_numbers(low, high, most)


def _round_numbers(low: float, high: float, most: int) -> list[float]:
    """Multiples of 1, 2, 2.5 or 5 times a power of ten.

    >>> _round_numbers(0.0, 10.0, 7), _round_numbers(-0.3, 0.7, 4)
    ([0.0, 2.0, 4.0, 6.0, 8.0, 10.0], [0.0, 0.5])
    """
    span = high - low
    if not math.isfinite(span) or span <= 0:
        return []
    unit = 10.0 ** math.floor(math.log10(span / (most - 1)))
    step = next((f * unit for f in (1, 2, 2.5, 5, 10) if span / (f * unit) <= most - 1), 10 * unit)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]
