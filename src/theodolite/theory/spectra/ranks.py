"""Ranks of a matrix of independent entries, against which the ranks of trained weights are held."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from theodolite.core.reading import Band
from theodolite.theory.spectra.noise import marchenko_pastur_quantile, noise_edge, tracy_widom_quantile


def noise_stable_rank(rows: int, columns: int) -> float:
    r"""Squared Frobenius over squared spectral norm of a random matrix: $nm/(\sqrt n+\sqrt m)^2$.

    Source: marchenko1967.

    >>> noise_stable_rank(100, 100)
    25.0
    """
    return rows * columns / (math.sqrt(rows) + math.sqrt(columns)) ** 2


def noise_stable_rank_band(rows: int, columns: int, *, significance: float = 0.002) -> Band:
    r"""The interval that holds the stable rank of noise of this shape, whichever way it is turned.

    The largest eigenvalue is $\mu+s\,T$ with T of Tracy and Widom's law, the squared norm $np(1\pm3\sqrt{2/np})$.
    Source: johnstone2001; ma2012.

    >>> noise_stable_rank_band(2048, 16) == noise_stable_rank_band(16, 2048)
    True
    """
    edge, unit = noise_edge(rows, columns)
    low, high = (edge + unit * tracy_widom_quantile(p) for p in (significance / 2, 1 - significance / 2))
    spread = 3 * math.sqrt(2 / (rows * columns))
    p = min(rows, columns)
    first = max(1.0, rows * columns * (1 - spread) / high)
    return Band(first, max(first, min(p, rows * columns * (1 + spread) / max(low, 1e-300))))


def noise_effective_rank(rows: int, columns: int, *, count: int = 400) -> float:
    r"""The exponential of the entropy of the singular values, as shares, of a random matrix.

    With $q$ the quantiles of the Marchenko-Pastur law at the middles of p equal parts, $s_i\propto\sqrt{q_i}$. Source:
    roy2007; marchenko1967.

    >>> round(noise_effective_rank(10_000, 10) / 10, 3)
    1.0
    """
    p, n = sorted((rows, columns))
    return _even_share(p / n, count) * p


@lru_cache(maxsize=256)
def _even_share(ratio: float, count: int) -> float:
    """The effective rank beside the side: one number for all matrices of a shape, of which a network has many."""
    places = (np.arange(count) + 0.5) / count
    singular = np.sqrt([marchenko_pastur_quantile(float(place), ratio) for place in places])
    share = singular / singular.sum()
    # the entropy of p values is that of the sample of quantiles, moved from ``count`` to p equal parts
    return float(np.exp(-(share * np.log(share)).sum()) / count)
