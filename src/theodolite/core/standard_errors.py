"""Errors of which three reach an interval's farther end, where the interval is not as long on both sides."""

from __future__ import annotations

from typing import Any

import numpy as np

from theodolite.core.reading import SIGMAS
from theodolite.core.statistics import mean_estimate


def skewed_error(values: Any) -> float:
    r"""A standard error of a mean of skewed draws: three of them reach as far as the longer side of Hall's interval.

    With $a=\hat\gamma/\sqrt n$ of the sample skewness the transform $T+aT^2/3+a^2T^3/27+a/6$ of Student's T is normal up to
    $1/n$; its inverse at -3 and 3 says how far the mean may lie on either side. For pseudo-values of the jackknife the same
    holds of what they are the pseudo-values of. Draws that hold none of the rare large values cannot tell of them, whatever
    is done. Source: hall1992transform.

    >>> for draws in ([-1.0, 1.0] * 50, [0.0] * 98 + [1.0] * 2):
    ...     print(round(skewed_error(draws) / mean_estimate(draws).stderr, 3))
    1.0
    2.98
    """
    draws = np.asarray(values, dtype=np.float64).ravel()
    plain, n = mean_estimate(draws).stderr, len(draws)
    apart = draws - draws.mean()
    deviation = float(np.sqrt((apart**2).mean()))
    if plain == 0 or deviation == 0:
        return plain
    a = float((apart**3).mean()) / deviation**3 / np.sqrt(n)
    if abs(a) < 1e-4:
        return plain
    ends = [3 / a * (np.cbrt(1 + a * (x - a / 6)) - 1) for x in (-SIGMAS, SIGMAS)]
    return plain * max(1.0, float(np.abs(ends).max()) / SIGMAS)


def share_error(share: float, count: int, *, of: float = np.inf) -> float:
    """A standard error of a share of ``count`` samples of all ``of``: three of them reach the farther end of Wilson's interval.

    It is not zero where none or all were counted: of 120 samples without a hit up to 7 % may be hits. Of samples taken from
    few, without putting them back, the missing ones alone are unknown. Source: wilson1927.

    >>> round(SIGMAS * share_error(0.0, 120), 4), share_error(0.5, 120, of=120)
    (0.0698, 0.0)
    """
    if count >= of:
        return 0.0
    n = count / (1 - count / of)
    size = SIGMAS**2 / n
    center = (share + size / 2) / (1 + size)
    half = float(np.sqrt(size * share * (1 - share) + size**2 / 4)) / (1 + size)
    return (half + abs(center - share)) / SIGMAS
