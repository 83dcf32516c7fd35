"""Numbers with their errors: of repeated draws, of shares, of fits."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from theodolite.core.checks import InputError
from theodolite.core.reading import SIGMAS, Estimate


def student_inflation(draws: int) -> float:
    """The factor by which a standard error from few draws grows so that ± 3 of them still cover 99.73 %.

    The quantile of Student's t with ``draws - 1`` degrees of freedom over the normal one; 1 as draws grow.
    """
    from scipy.special import ndtr, stdtrit

    return float(stdtrit(draws - 1, ndtr(SIGMAS)) / SIGMAS)


def mean_estimate(draws: Any) -> Estimate:
    """The mean of independent draws and its standard error, widened for small samples by Student's t.

    >>> mean_estimate([1.0, 1.0, 1.0, 1.0])
    Estimate(value=1.0, stderr=0.0, scale=None)
    """
    values = np.asarray(draws, dtype=np.float64).ravel()
    if values.size < 2:
        raise InputError(f"expected at least two draws to know an error, got {values.size}; draw more")
    error = values.std(ddof=1) / np.sqrt(values.size)
    return Estimate(float(values.mean()), float(error * student_inflation(values.size)))


def pooled_estimate(results: Sequence[Any], *, certain: bool = False) -> Estimate:
    """One estimate from what an experiment returned, run after run: numbers, arrays of draws, or estimates.

    A single number is refused unless it is ``certain`` (deterministic): its error would be unknown. Estimates are
    pooled with the larger of their own errors and their spread.
    """
    if isinstance(results[0], Estimate):
        own = sum(result.stderr**2 for result in results) ** 0.5 / len(results)
        seen = mean_estimate([result.value for result in results]) if len(results) > 1 else results[0]
        return Estimate(seen.value, max(own, seen.stderr), results[0].scale)
    draws = np.concatenate([np.asarray(result, dtype=np.float64).ravel() for result in results])
    return Estimate(float(draws[0])) if certain and draws.size == 1 else mean_estimate(draws)


def left_out_errors(statistic: Any, count: int, *, of: int, blocks: int = 8) -> tuple[float, ...]:
    """What it costs to know some numbers from ``count`` samples rather than from all ``of`` them, by the jackknife.

    ``statistic(rows)`` gives the numbers from the samples of these rows. Blocks of samples are left out in turn; the error
    has their spread and the bias that they show, and falls to zero as all samples are seen.

    >>> x = np.arange(100.0)
    >>> left_out_errors(lambda rows: [x[rows].mean()], 100, of=100)
    (0.0,)
    """
    whole = np.asarray(statistic(np.arange(count)), dtype=np.float64)
    blocks = min(blocks, count)
    if count >= of or blocks < 2:
        return (0.0,) * len(whole)
    place = np.arange(count) % blocks
    parts = np.array([statistic(np.flatnonzero(place != block)) for block in range(blocks)], dtype=np.float64)
    rest = 1 - count / of
    spread = np.sqrt(rest * (blocks - 1) / blocks * ((parts - parts.mean(0)) ** 2).sum(0))
    bias = rest * (blocks - 1) * np.abs(parts.mean(0) - whole)
    return tuple(float(e) for e in np.hypot(spread * student_inflation(blocks), bias))


def parted_error(whole: float, parts: Sequence[float], *, left_out: float) -> float:
    """What it costs to know a number from a share of the samples, told by the same number from parts of that share.

    The error has the spread of the parts and the bias that going from a part to the whole shows; ``left_out`` is the share
    of all samples that was not seen. With two parts alone the spread is itself known but roughly, and is doubled.

    >>> parted_error(1.0, [1.0, 1.0], left_out=0.5), parted_error(1.0, [0.0, 2.0], left_out=0.0)
    (0.0, 0.0)
    """
    k, values = len(parts), np.asarray(parts, dtype=np.float64)
    if k < 2:
        return abs(whole) / SIGMAS if left_out > 0 else 0.0
    spread = float(values.std(ddof=1)) / np.sqrt(k) * min(student_inflation(k), 4.0)
    bias = (whole - float(values.mean())) / (k - 1)
    return float(np.sqrt(max(0.0, left_out)) * np.hypot(spread, bias))


def log_slope(x: Sequence[float], y: Sequence[Estimate]) -> Estimate:
    r"""The exponent $p$ of $y\propto x^p$: weighted least squares of log y on log x, with its error.

    Points with errors are weighted by them, and the error of the slope is scaled up by the misfit when the points
    scatter more than their errors say (never down). Points without errors count alike.
    """
    if len(x) < 3:
        raise InputError(f"expected at least three points to fit an exponent with its error, got {len(x)}; add cases")
    a, b = np.log(np.asarray(x, dtype=np.float64)), np.log([estimate.value for estimate in y])
    relative = np.array([estimate.stderr / abs(estimate.value) for estimate in y])
    known = bool((relative > 0).all())
    weight = relative**-2 if known else np.ones_like(a)
    center = np.average(a, weights=weight)
    moment = (weight * (a - center) ** 2).sum()
    slope = (weight * (a - center) * b).sum() / moment
    rest = b - np.average(b, weights=weight) - slope * (a - center)
    misfit = (weight * rest**2).sum() / (len(a) - 2)
    scale = max(1.0, misfit) if known else misfit
    inflation = 1.0 if known and misfit <= 1 else student_inflation(len(a) - 1)
    return Estimate(float(slope), float(np.sqrt(scale / moment) * inflation))


def holm(p_values: Sequence[float]) -> list[float]:
    r"""P-values of several tests, corrected so that the chance of any false call among those at most 5 % is at most 5 %.

    The k-th smallest of m times m - k + 1, never below the one before it, at most 1. Source: holm1979.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    corrected, largest = [1.0] * len(order), 0.0
    for k, i in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - k) * p_values[i]))
        corrected[i] = largest
    return corrected


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
    center, half = wilson_interval(share, count / (1 - count / of))
    return (half + abs(center - share)) / SIGMAS


def wilson_interval(share: float, count: float, sigmas: float = SIGMAS) -> tuple[float, float]:
    """The middle and the half-width of Wilson's interval of a share of ``count`` samples. Source: wilson1927."""
    size = sigmas**2 / count
    half = math.sqrt(size * share * (1 - share) + size**2 / 4) / (1 + size)
    return (share + size / 2) / (1 + size), half
