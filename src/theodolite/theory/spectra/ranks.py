"""Ranks of a matrix of independent entries, against which the ranks of trained weights are held."""

import math
from functools import lru_cache

import numpy as np

from theodolite.core.checks import at_least, within
from theodolite.core.reading import Band
from theodolite.theory.spectra.noise import _quantiles, noise_edge, tracy_widom_quantile


def noise_stable_rank(rows: int, columns: int) -> float:
    r"""Squared Frobenius over squared spectral norm of a random matrix: $nm/(\sqrt n+\sqrt m)^2$.

    Source: marchenko1967.

    >>> noise_stable_rank(100, 100)
    25.0
    """
    at_least(1, rows=rows, columns=columns)
    return rows * columns / (math.sqrt(rows) + math.sqrt(columns)) ** 2


def noise_stable_rank_band(rows: int, columns: int, *, significance: float = 0.002) -> Band:
    r"""The interval that holds the stable rank of noise of this shape, whichever way it is turned.

    The largest eigenvalue is $\mu+s\,T$ with T of Tracy and Widom's law, the squared norm $np(1\pm3\sqrt{2/np})$.
    Source: johnstone2001; ma2012.

    >>> noise_stable_rank_band(2048, 16) == noise_stable_rank_band(16, 2048)
    True
    """
    at_least(1, rows=rows, columns=columns)
    within(0, 1, significance=significance)
    return _stable_rank_band(rows, columns, significance)


@lru_cache(maxsize=4096)  # a network has few shapes and many matrices of each
def _stable_rank_band(rows: int, columns: int, significance: float) -> Band:
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
    at_least(1, rows=rows, columns=columns, count=count)
    return _effective_rank(*sorted((rows, columns)), count)


@lru_cache(maxsize=4096)
def _effective_rank(p: int, n: int, count: int) -> float:
    places = (np.arange(count) + 0.5) / count
    singular = np.sqrt(_quantiles(places, p / n))
    share = singular / singular.sum()
    # the entropy of p values is that of the sample of quantiles, moved from ``points`` to p equal parts
    return float(np.exp(-(share * np.log(share)).sum()) * p / count)


def random_product_rank_band(rows: int, inner: int, columns: int, *, draws: int = 24) -> Band:
    r"""Where the effective rank of a product of two Gaussian factors lies: rows by ``inner`` and ``inner`` by columns.

    Both factors are drawn as their triangular parts (Bartlett: chi variables on the diagonal, Gaussian ones above), whose
    product has the singular values of the whole. Four standard deviations around the mean of ``draws`` draws from a fixed
    seed. Source: roy2007.

    >>> random_product_rank_band(100_000, 4, 100_000).low > 3.99
    True
    """
    at_least(1, rows=rows, inner=inner, columns=columns, draws=draws)
    return _product_rank_band(rows, inner, columns, draws)


@lru_cache(maxsize=4096)
def _product_rank_band(rows: int, inner: int, columns: int, draws: int) -> Band:
    random = np.random.default_rng([rows, inner, columns])
    found = []
    for _ in range(draws if inner > 1 else 0):
        left, right = (_triangular(random, size, inner) for size in (rows, columns))
        singular = np.linalg.svd(left @ right.T, compute_uv=False)
        share = singular[singular > 0] / singular.sum()
        found.append(float(np.exp(-(share * np.log(share)).sum())))
    if not found:
        return Band(1.0, 1.0)
    middle, spread = float(np.mean(found)), float(np.std(found, ddof=1))
    return Band(max(1.0, middle - 4 * spread), min(float(inner), middle + 4 * spread))


def _triangular(random: np.random.Generator, size: int, inner: int) -> np.ndarray:
    upper = np.triu(random.standard_normal((inner, inner)), 1)
    return np.asarray(upper + np.diag(np.sqrt(random.chisquare(np.maximum(size - np.arange(inner), 1)))))
