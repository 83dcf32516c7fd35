"""Ranks of a matrix of independent entries, against which the ranks of trained weights are held."""

from __future__ import annotations

import math

import numpy as np

from theodolite.theory.spectra.noise import marchenko_pastur_quantile


def noise_stable_rank(rows: int, columns: int) -> float:
    r"""Squared Frobenius over squared spectral norm of a random matrix: $nm/(\sqrt n+\sqrt m)^2$.

    Source: marchenko1967.

    >>> noise_stable_rank(100, 100)
    25.0
    """
    return rows * columns / (math.sqrt(rows) + math.sqrt(columns)) ** 2


def noise_effective_rank(rows: int, columns: int, *, count: int = 400) -> float:
    r"""The exponential of the entropy of the singular values, as shares, of a random matrix.

    With $q$ the quantiles of the Marchenko-Pastur law at the middles of p equal parts, $s_i\propto\sqrt{q_i}$. Source:
    roy2007; marchenko1967.

    >>> round(noise_effective_rank(10_000, 10) / 10, 3)
    1.0
    """
    p, n = sorted((rows, columns))
    places = (np.arange(count) + 0.5) / count
    singular = np.sqrt([marchenko_pastur_quantile(float(place), p / n) for place in places])
    share = singular / singular.sum()
    # the entropy of p values is that of the sample of quantiles, moved from ``points`` to p equal parts
    return float(np.exp(-(share * np.log(share)).sum()) * p / count)
