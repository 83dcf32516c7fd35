r"""The noise of a step's gradient, from the gradients of the micro-batches that it was accumulated from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from theodolite.core.checks import InputError, real_values
from theodolite.core.reading import SIGMAS, Estimate
from theodolite.core.statistics import skewed_error

FEWEST = 3
"""Micro-batches from which on an error can be told."""


@dataclass(frozen=True)
class AccumulatedNoise:
    r"""``share`` of $|G|^2$ that is noise, and the noise ``scale`` in batches of a step; from so many ``micro_batches``.

    ``scale`` is the number of such steps' samples at which noise and signal are equal; None where the signal is not told.
    """

    share: Estimate
    scale: Estimate | None
    micro_batches: int
    ranks: bool = False


def accumulated_noise(squares: Sequence[float], total: float, entries: Tensor) -> AccumulatedNoise:
    r"""The share of noise in $|G|^2$, $G=\sum_j g_j$, of ``k`` micro-batches with ``squares`` $|g_j|^2$ and ``total`` $|G|^2$.

    The $g_j$ are alike and independent, so that $s=(\sum_j|g_j|^2-|G|^2/k)/(k-1)$ is the variance of one without bias and $ks$
    that of $G$; a factor common to all of them does not matter. The error is the jackknife's over micro-batches, on
    ``entries`` (k, m) of the gradients: all of them, or some that are spread over the network. Source: mccandlish2018.

    >>> import torch
    >>> found = accumulated_noise([1.0, 1.0, 1.0], 3.0, torch.eye(3))  # nothing in common: noise alone
    >>> found.share.value, found.scale
    (1.0, None)
    """
    real_values(entries=entries)
    k = len(squares)
    if k < FEWEST or len(entries) != k:
        raise InputError(f"expected {FEWEST} micro-batches or more, and entries of each, got {k} and {len(entries)}")
    if not total > 0:
        raise InputError(f"expected a gradient that is not 0, got one of squared norm {total}")
    share = _share(*_moments(sum(squares), total, k), k)
    return _noise_of(share, skewed_error(_pseudo_values(entries)), k)


def noise_of_ranks(squares: Sequence[Sequence[float]], totals: Sequence[float]) -> AccumulatedNoise:
    r"""The same from processes that average their gradients: at some steps $|g_r|^2$ of each, and $|G|^2$ of their mean.

    Scatter and signal are means over the steps, whose jackknife tells the error: two ranks at one step tell none.
    Source: mccandlish2018, appendix A.1.

    >>> found = noise_of_ranks([[2.0, 2.0], [3.0, 3.0], [2.0, 4.0]], [1.5, 2.0, 2.5])
    >>> round(found.share.value, 3), found.micro_batches
    (0.333, 2)
    """
    n, k = len(squares), len(squares[0]) if squares else 0
    if n < FEWEST or k < 2 or len(totals) != n:
        raise InputError(f"expected {FEWEST} steps or more of 2 ranks or more, got {n} of {k}")
    moments = [_moments(sum(own), total * k * k, k) for own, total in zip(squares, totals, strict=True)]
    scatter, signal = (sum(column) for column in zip(*moments, strict=True))
    if not scatter + k * signal > 0:
        raise InputError("expected gradients that are not 0, got zeros")
    share = _share(scatter, signal, k)
    left = [_share(scatter - one[0], signal - one[1], k) for one in moments]
    return replace(_noise_of(share, skewed_error([n * share - (n - 1) * one for one in left]), k), ranks=True)


def _noise_of(share: float, error: float, k: int) -> AccumulatedNoise:
    if 1 - share <= SIGMAS * error:
        return AccumulatedNoise(Estimate(share, error), None, k)
    scale, end = share / (1 - share), (share + SIGMAS * error) / (1 - share - SIGMAS * error)
    return AccumulatedNoise(Estimate(share, error), Estimate(scale, (end - scale) / SIGMAS), k)


def _moments(squares: float, total: float, k: int) -> tuple[float, float]:
    """The variance of one micro-batch's gradient, and the squared norm of their common mean, without bias."""
    scatter = (squares - total / k) / (k - 1)
    return scatter, total / k**2 - scatter / k


def _share(scatter: float, signal: float, k: int) -> float:
    """The share of noise in the squared norm of a sum of k."""
    return scatter / k / (signal + scatter / k)


def _pseudo_values(entries: Tensor) -> list[float]:
    """Of the share, one for each micro-batch."""
    rows = entries.double()
    k, whole = len(rows), rows.sum(0)
    squares = rows.square().sum(1)
    every = float(squares.sum())
    full = _share(*_moments(every, float(whole.square().sum()), k), k)
    left = [
        _share(*_moments(every - float(own), float((whole - row).square().sum()), k - 1), k)
        for row, own in zip(rows, squares, strict=True)
    ]
    return [k * full - (k - 1) * one for one in left]
