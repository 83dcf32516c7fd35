"""The noise part of a spectrum: a Marchenko-Pastur law fitted to the bulk, and what stands out above it."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from theodolite.core.checks import InputError, real_values
from theodolite.measure.spectra.tails import _sorted_values

ALLOWANCE = 2.0234
"""The 99 % point of the largest eigenvalue of noise, in units of its own fluctuation (Tracy-Widom, real matrices)."""


@dataclass(frozen=True, slots=True)
class Bulk:
    r"""A Marchenko-Pastur bulk of entries of ``variance`` v, all in the units of the eigenvalues of $W^\top W$.

    ``low`` and ``high`` are the edges $v(\sqrt n\mp\sqrt p)^2$; ``threshold`` adds the finite-size allowance; ``spikes``
    eigenvalues lie above it and hold ``share`` of the trace; ``excess`` is how far the largest lies above the edge, in
    units of its own fluctuation, before any spike is taken out; ``distance`` is the Kolmogorov distance of the rest from
    the law. ``reason`` says why there is no fit.
    """

    variance: float
    low: float
    high: float
    threshold: float
    spikes: int
    share: float
    excess: float
    distance: float
    reason: str = ""


def marchenko_pastur_bulk(eigenvalues: Any, rows: int, columns: int, *, allowance: float = ALLOWANCE) -> Bulk:
    r"""The bulk of a spectrum of $W^\top W$, p eigenvalues of a matrix whose sides are $n\ge p$.

    The variance is that at which the mean of the *middle half* of the eigenvalues below the threshold is that of the
    law, so that neither spikes nor a tail move it much; both are taken again until the number of spikes stays. k spikes
    leave a bulk of n - k by p - k. The threshold is $v[\mu+\text{allowance}\cdot s]$ with
    $\mu=(\sqrt{n-\frac12}+\sqrt{p-\frac12})^2$ and
    $s=\sqrt\mu(1/\sqrt{n-\frac12}+1/\sqrt{p-\frac12})^{1/3}$; the default allowance lets noise through once or twice in
    a hundred matrices (six times at 8 x 8, where v itself is uncertain). A planted direction shows only where its
    strength exceeds $v\sqrt{np}$. Source: johnstone2001; ma2012 (the halves).

    >>> import torch
    >>> w = torch.randn(300, 100, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    >>> bulk = marchenko_pastur_bulk(torch.linalg.svdvals(w) ** 2, 300, 100)
    >>> bulk.spikes, round(bulk.variance, 1)
    (0, 1.0)
    """
    real_values(eigenvalues=eigenvalues)
    values = _sorted_values(eigenvalues)
    p, n = sorted((rows, columns))
    if values.size != p:
        raise InputError(f"expected {p} eigenvalues of a {rows} x {columns} matrix, got {values.size}; pass them all")
    positive = int((values > p * np.finfo(np.float64).eps * values[-1]).sum())
    if p < 4 or positive <= p // 2 + 1:
        nan = math.nan
        why = f"smaller side {p}, of 4 needed" if p < 4 else f"only {positive} of {p} eigenvalues above rounding"
        return Bulk(nan, nan, nan, nan, 0, nan, nan, nan, why)
    spikes, excess = 0, math.nan
    for _ in range(p):
        m = p - spikes
        a, b = m // 4, m - m // 4
        variance = float(values[a:b].mean()) / _mean_between(n - spikes, m, a, b)
        edge, unit = _edge(n - spikes, m)
        if not spikes:
            excess = float((values[-1] / variance - edge) / unit)
        above = int(p - np.searchsorted(values, variance * (edge + allowance * unit), side="right"))
        if above <= spikes or above >= p // 2:
            break
        spikes = above
    kept = values[: p - spikes]
    root = math.sqrt(n - spikes), math.sqrt(p - spikes)
    return Bulk(
        variance=variance,
        low=variance * (root[0] - root[1]) ** 2,
        high=variance * (root[0] + root[1]) ** 2,
        threshold=variance * (edge + allowance * unit),
        spikes=spikes,
        share=float(values[p - spikes :].sum() / values.sum()),
        excess=excess,
        distance=_distance(kept / variance, n - spikes, p - spikes),
    )


def _edge(n: int, p: int) -> tuple[float, float]:
    """Where the largest eigenvalue of noise of unit variance lies, and how much it fluctuates."""
    a, b = math.sqrt(n - 0.5), math.sqrt(p - 0.5)
    return (a + b) ** 2, (a + b) * (1 / a + 1 / b) ** (1 / 3)


def _share_above(angle: Any, ratio: float) -> Any:
    r"""The mass of the law above $1+q+2\sqrt q\cos\theta$: the integral of $\frac2\pi\sin^2/(1+q+2\sqrt q\cos)$."""
    A, B = 1 + ratio, 2 * math.sqrt(ratio)
    tangent = np.tan(np.minimum(angle, math.pi * (1 - 1e-15)) / 2)
    inner = A * angle / B**2 - np.sin(angle) / B
    return (2 / math.pi) * (inner - 2 * (1 - ratio) / B**2 * np.arctan((1 - ratio) / (1 + B / 2) ** 2 * tangent))


@lru_cache(maxsize=1024)
def _mean_between(n: int, p: int, first: int, last: int) -> float:
    """What eigenvalues first..last (of p, ascending, unit variance) have as their mean under the law."""

    ratio = p / n
    A, B = 1 + ratio, 2 * math.sqrt(ratio)

    def angle(below: float) -> float:
        """That above which the rest lies, by Newton's steps between bounds; `_share_above` of a number."""
        low, high, share = 0.0, math.pi, (1 - below) * math.pi / 2
        found = 0.5 * math.pi
        for _ in range(100):
            sine, cosine = math.sin(found), math.cos(found)
            turned = math.atan((1 - ratio) / (1 + B / 2) ** 2 * math.tan(min(found, math.pi * (1 - 1e-15)) / 2))
            gap = A * found / B**2 - sine / B - 2 * (1 - ratio) / B**2 * turned - share
            low, high = (found, high) if gap < 0 else (low, found)
            step = gap * (A + B * cosine) / sine**2
            following = found - step if low < found - step < high else 0.5 * (low + high)
            if abs(following - found) <= 1e-15 * found:
                return following
            found = following
        return found

    top, bottom = angle(last / p), angle(first / p)
    moment = (bottom - top - math.sin(bottom) * math.cos(bottom) + math.sin(top) * math.cos(top)) / math.pi
    return n * moment * p / (last - first)


def _distance(values: NDArray[np.float64], n: int, p: int) -> float:
    cosine = np.clip((values / n - 1 - p / n) / (2 * math.sqrt(p / n)), -1, 1)
    model = 1 - _share_above(np.arccos(cosine), p / n)
    steps = np.arange(values.size + 1) / values.size
    return float(max(np.abs(model - steps[:-1]).max(), np.abs(model - steps[1:]).max()))
