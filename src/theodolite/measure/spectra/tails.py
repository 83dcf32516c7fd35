"""Power laws in the tail of a spectrum: Clauset's fit over every threshold, exactly and fast."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from theodolite.core.checks import InputError, at_least, one_of, real_values
from theodolite.core.randomness import numpy_random

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Rule = Literal["clauset", "weightwatcher"]
FEWEST = 8
"""Fewer distinct positive values than this say nothing about a tail."""

ENOUGH, BATCH = 10, 20
"""Samples that fit no better after which no more are drawn, and how many are drawn together."""

WEIGHTWATCHER_FLOOR = 1e-5
WEIGHTWATCHER_SMALL = 20
WEIGHTWATCHER_TAIL = 8


@dataclass(frozen=True, slots=True)
class PowerLaw:
    r"""The density exponent of a tail, $\rho(\lambda)\propto\lambda^{-\alpha}$ for $\lambda\ge x_{\min}$.

    ``distance`` is the Kolmogorov distance of the tail, ``stderr`` is $(\alpha-1)/\sqrt{n_{tail}}$ at a threshold taken
    as given (the search for it adds a tenth to a quarter), ``tail`` counts the values from ``xmin`` on, ``p_value`` is
    None until refits are asked for. Where there is no fit, ``alpha`` is not a number and ``reason`` says why.
    """

    alpha: float
    xmin: float
    distance: float
    stderr: float
    p_value: float | None
    tail: int
    rule: Rule = "clauset"
    reason: str = ""


def power_law(
    eigenvalues: Any,
    *,
    rule: Rule = "clauset",
    refits: int = 0,
    generator: torch.Generator | np.random.Generator | None = None,
) -> PowerLaw:
    r"""The power law whose threshold, among all values, gives the smallest Kolmogorov distance.

    $\hat\alpha=1+n/\sum_j\log(x_j/x_{\min})$ over the n values from $x_{\min}$ on. The distance is two-sided: at each
    value the fitted distribution is compared with the empirical one just below and at the value, ties counted together.
    Values at or below rounding (N times the float64 spacing of the largest) are zeros and left out. Where no tail can be
    fitted the exponent is NaN and ``reason`` says why.

    ``rule="weightwatcher"`` does what WeightWatcher 0.7.7 does: values above 1e-5, the empirical distribution just below
    each value only, ties apart, and fewer than 20 values with the bias-corrected exponent over tails of at least 8.

    ``refits`` asks for that many semiparametric bootstrap samples, each fitted anew over all thresholds: ``p_value`` is
    the share of them (the data counted among them) that fit no better; a small one speaks against the power law. It
    needs a ``generator``. Source: clauset2009, sections 3.1, 3.3 and 4.1.

    >>> fit = power_law((1 - (np.arange(1000) + 0.5) / 1000) ** (-1 / 1.5))  # quantiles of a density of exponent 2.5
    >>> round(fit.alpha, 2), fit.tail, power_law([1.0, 2.0]).reason
    (2.5, 1000, 'only 2 distinct positive values, of 8 needed')
    """
    real_values(eigenvalues=eigenvalues)
    one_of(get_args(Rule), rule=rule)
    values = _sorted_values(eigenvalues)
    fit = _clauset(positive(values)) if rule == "clauset" else _weightwatcher(values[values > WEIGHTWATCHER_FLOOR])
    if not refits or fit.reason:
        return fit
    if rule != "clauset" or generator is None:
        raise InputError("expected rule='clauset' and a generator for refits, got neither or one; pass generator=")
    return replace(fit, p_value=bootstrap_p_value(values, fit, refits=refits, generator=generator))


def bootstrap_p_value(
    eigenvalues: Any, fit: PowerLaw, *, refits: int, generator: torch.Generator | np.random.Generator
) -> float:
    r"""How often a sample from the fit itself fits no better: $(1+\#\{D^*\ge D\})/(1+\text{refits})$.

    A sample takes each of its N values from the fitted tail with probability $n_{tail}/N$, else from the data below the
    threshold, and is fitted over all its thresholds. Where the tenth that fits no better is the l-th of at most ``refits``
    samples, no more are drawn and 10/l is returned, which is no less valid (Besag and Clifford, Biometrika 78, 1991): only
    small p-values, which speak against the law, cost all of them. Source: clauset2009, section 4.1.
    """
    at_least(0, refits=refits)
    real_values(eigenvalues=eigenvalues)
    random = numpy_random(generator)
    values = positive(_sorted_values(eigenvalues))
    if values.size < fit.tail:
        raise InputError(
            f"expected the values that were fitted, got {values.size} of a tail of {fit.tail}; pass the same"
        )
    below, count = values[: values.size - fit.tail], values.size
    worse = drawn = 0
    while drawn < refits:
        samples = np.array([_resampled(below, fit, count, random) for _ in range(min(BATCH, refits - drawn))])
        for sample, settled in zip(samples, _fit_from(fit.xmin, samples) < fit.distance, strict=True):
            drawn += 1
            worse += not (settled or _clauset(sample, limit=fit.distance).distance < fit.distance)
            if worse == ENOUGH:
                return worse / drawn
    return (1 + worse) / (1 + refits)


def _resampled(below: Floats, fit: PowerLaw, count: int, random: np.random.Generator) -> Floats:
    in_tail = int(random.binomial(count, fit.tail / count)) if below.size else count
    tail = fit.xmin * np.exp(random.exponential(1.0 / (fit.alpha - 1), in_tail))
    return np.sort(np.concatenate([random.choice(below, count - in_tail), tail])) if below.size else np.sort(tail)


def _fit_from(xmin: float, samples: Floats) -> Floats:
    """The Kolmogorov distance of each sorted sample from this threshold on, which bounds the least from above; all at once.

    Infinite where the sample has too few distinct values to be fitted. Within a tie the gap is largest at its ends.
    """
    N = samples.shape[1]
    tails = np.array([N - sample.searchsorted(xmin) for sample in samples])[:, None]  # (samples, 1)
    kept = np.arange(N) >= N - tails
    logs = np.where(kept, np.log(samples / np.take_along_axis(samples, np.minimum(N - tails, N - 1), 1)), 0.0)
    excess = logs.sum(axis=1, keepdims=True)
    distinct = (np.diff(samples, axis=1) > 0).sum(axis=1, keepdims=True) + 1
    usable = (distinct >= FEWEST) & (tails > 1) & (excess > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        model = np.exp(-(tails / excess) * logs)
        share, after = (N - np.arange(N)) / tails, (N - 1 - np.arange(N)) / tails
        gaps = np.where(kept, np.maximum(np.abs(model - share), np.abs(model - after)), 0.0)
    return np.asarray(np.where(usable[:, 0], gaps.max(axis=1), math.inf))


def positive(values: Floats) -> Floats:
    """Sorted values above rounding: more than their number times the float64 spacing of the largest. NaN is refused."""
    if values.size and not np.isfinite(values[-1]):  # sorting puts it last
        raise InputError("expected finite values, got NaN or infinity among them; leave them out")
    floor = values.size * np.finfo(np.float64).eps * values[-1] if values.size else 0.0
    return values[np.searchsorted(values, max(floor, 0.0), side="right") :]


def _sorted_values(eigenvalues: Any) -> Floats:
    if hasattr(eigenvalues, "detach"):
        eigenvalues = eigenvalues.detach().cpu().double().numpy()
    values = np.sort(np.asarray(eigenvalues, dtype=np.float64).ravel())
    if values.size and not (math.isfinite(values[0]) and math.isfinite(values[-1])):  # NaN is sorted to the end
        raise InputError("expected finite eigenvalues, got NaN or infinity; leave such a matrix out")
    return values


def _none(reason: str, rule: Rule) -> PowerLaw:
    nan = math.nan
    return PowerLaw(nan, nan, nan, nan, None, 0, rule, reason)


def _clauset(values: Floats, *, limit: float = math.inf) -> PowerLaw:
    """The fit of least distance; with a ``limit`` any whose distance is below it, and an infinite distance where none is."""
    starts = np.flatnonzero(np.diff(values, prepend=-math.inf))  # the first place of each distinct value
    if starts.size < FEWEST:
        return _none(f"only {starts.size} distinct positive values, of {FEWEST} needed", "clauset")
    logs = np.log(values / values[-1])
    tails = values.size - starts  # (u,)
    excess = np.cumsum(logs[::-1])[::-1][starts] - tails * logs[starts]  # (u,) sum of log(x / xmin)
    logs, rate = logs[starts], np.full(starts.size, math.nan)  # the largest value alone has none
    rate[:-1] = tails[:-1] / excess[:-1]
    survival = np.append(tails, 0).astype(np.float64)  # of u_j: values at or above it, and (next) above it
    best, distance = _least_distance(logs, rate, survival, two_sided=True, limit=limit)
    n = int(tails[best])
    alpha = 1 + float(rate[best])
    return PowerLaw(alpha, float(values[starts[best]]), distance, (alpha - 1) / math.sqrt(n), None, n)


def _weightwatcher(values: Floats) -> PowerLaw:
    N = values.size
    if N < 2:
        return _none(f"only {N} values above {WEIGHTWATCHER_FLOOR:g}, of 2 needed", "weightwatcher")
    logs = np.log(values)
    tails = N - np.arange(N)
    excess = np.cumsum((logs - logs[-1])[::-1])[::-1] - tails * (logs - logs[-1])
    excess[excess <= 0] = math.nan  # repeated largest values
    small = N < WEIGHTWATCHER_SMALL
    rate = (tails - small) / excess
    if small and N >= WEIGHTWATCHER_TAIL:
        rate[tails < WEIGHTWATCHER_TAIL] = math.nan
    elif small:
        rate[1:] = math.nan  # its answer to very few values: all of them
    rate[-1] = math.nan
    if not np.isfinite(rate).any():
        return _none("all values are equal", "weightwatcher")
    best, distance = _least_distance(logs, rate, np.append(tails, 0).astype(np.float64), two_sided=False)
    alpha, n = 1 + float(rate[best]), int(tails[best])
    return PowerLaw(alpha, float(values[best]), distance, (alpha - 1) / math.sqrt(n), None, n, "weightwatcher")


def _least_distance(
    logs: Floats, rate: Floats, survival: Floats, *, two_sided: bool, limit: float = math.inf
) -> tuple[int, float]:
    """The threshold of least Kolmogorov distance, and that distance: branch and bound, exact.

    The distance at any one place bounds the whole from below. Places spread over the tail start the bounds; then the
    threshold of least bound is measured in full, and the place of its largest gap becomes a probe for all that can
    still win. Neighboring thresholds have their largest gap at the same place, so a few rounds leave nothing. With a ``limit``
    the first threshold below it will do, and where there is none the distance is infinite.
    """
    bound = _probed(logs, rate, survival, two_sided)
    alive = np.flatnonzero(bound < limit)
    best, distance = -1, math.inf
    while alive.size:
        i = alive[np.argmin(bound[alive])]
        gaps = _gaps_of(i, logs, rate, survival, two_sided)
        place = int(np.argmax(gaps))
        if (gaps[place], i) < (distance, best) and gaps[place] < limit:
            best, distance = int(i), float(gaps[place])
            if limit < math.inf:
                break
        bound[i] = math.inf
        j = i + place
        reached = alive[: np.searchsorted(alive, j, side="right")]
        bound[reached] = np.maximum(bound[reached], _gaps_at(j, reached, logs, rate, survival, two_sided))
        alive = alive[bound[alive] < limit] if distance == math.inf else alive[bound[alive] <= distance]
    return best, distance


def _probed(logs: Floats, rate: Floats, survival: Floats, two_sided: bool) -> Floats:
    """The largest gap of each threshold at 24 places, dense at the end of the tail; infinite where it has no exponent."""
    last = logs.size - 1
    j = _probes(last)[:, None]  # (places, 1)
    behind = np.arange(last) <= j  # (places, thresholds); the last value alone has no exponent
    model = np.exp(np.minimum(rate[:-1] * (logs[:-1] - logs[j]), 0.0))
    gap = np.abs(model - survival[j] / survival[:last])
    if two_sided:
        np.maximum(gap, np.abs(model - survival[j + 1] / survival[:last]), out=gap)
    bound = np.append(np.where(behind, gap, 0.0).max(axis=0), math.inf)
    bound[~np.isfinite(rate)] = math.inf
    return bound


@lru_cache(maxsize=256)
def _probes(last: int) -> NDArray[np.int64]:
    steps = np.geomspace(1, last, 24).astype(np.int64)  # ascending
    return last + 1 - steps[np.flatnonzero(np.diff(steps, prepend=0))]


def _gaps_at(j: int, i: Any, logs: Floats, rate: Floats, survival: Floats, two_sided: bool) -> Floats:
    """The gap at place j, for thresholds i at or below it."""
    model = np.exp(rate[i] * (logs[i] - logs[j]))
    gap: Floats = np.abs(model - survival[j] / survival[i])
    return np.maximum(gap, np.abs(model - survival[j + 1] / survival[i])) if two_sided else gap


def _gaps_of(i: int, logs: Floats, rate: Floats, survival: Floats, two_sided: bool) -> Floats:
    """The gaps of threshold i at all places of its tail."""
    model = np.exp(rate[i] * (logs[i] - logs[i:]))
    share = survival[i:] / survival[i]
    gap: Floats = np.abs(model - share[:-1])
    return np.maximum(gap, np.abs(model - share[1:])) if two_sided else gap
