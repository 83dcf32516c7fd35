"""Intrinsic dimension from angles: the expected simplex skewness (ESS), and angles with norms beside balls (DANCo)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from theodolite.core.checks import InputError
from theodolite.core.reading import Estimate
from theodolite.measure.dimension.by_distances import log_ratios, shared_error
from theodolite.measure.dimension.neighbor_graph import Neighbors, nearest_neighbors, neighbors_of
from theodolite.measure.dimension.prepared_rows import distinct_rows

LARGEST_TAU = 100.0
"""The concentration of angles above which a row counts as all on one side, as at the end of a curve."""
DRAWS, GROUPS = 3, 10
"""Draws of each ball that are averaged, and groups that rows are cut into for the error of DANCo."""


def dimension_ess(x: Any, *, neighbors: int = 30, most: int = 1000) -> Estimate:
    r"""The expected simplex skewness: how much of the largest area two vectors from a local center span on average.

    In each neighborhood $s=\sum_{i<j}|v_i\wedge v_j|/\sum_{i<j}|v_i||v_j|$ of the vectors from its mean; directions without
    preference in d dimensions have $E\sin\theta=\Gamma(d/2)^2/(\Gamma(\frac{d+1}2)\Gamma(\frac{d-1}2))$, which grows with d
    and is solved for it, at any real d. Angles do not ask for a constant density along the radius, so that this falls less
    with the dimension than distances do. Source: johnsson2015, version a with d = 1.

    Differs from the source: s is averaged over neighborhoods before it is solved for d, which is bent, so that its mean over
    neighborhoods would be too large.

    >>> x = torch.rand(1000, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> abs(dimension_ess(x).value - 3) < 0.2
    True
    """
    if not neighbors >= 2:
        raise InputError(f"expected at least 2 neighbors, got {neighbors}; pass 30, say")
    graph = neighbors_of(x, neighbors)
    chosen, patches = graph.patches(neighbors, most=most)
    skewness = np.concatenate([_skewness(local) for local in patches])
    mean = float(skewness.mean())
    value = _solved(_expected_sine, mean)
    slope = (_expected_sine(1.001 * value) - _expected_sine(value)) / (0.001 * value)
    influences = (skewness - mean) / (slope * len(skewness))
    whole = len(chosen) == len(graph)
    error = shared_error(influences, graph.indices[:, :neighbors] if whole else np.zeros((len(chosen), 0), np.int64))
    return Estimate(value, error, float(graph.distances[chosen, neighbors - 1].mean()))


def dimension_danco(x: Any, *, neighbors: int = 10, most: int = 1500, largest: int = 400) -> Estimate:
    r"""DANCo: the dimension of the ball on which norms and angles of neighbors are distributed most alike.

    Of the data, and of as many points drawn from balls of d = 1, 2, ..., three numbers are taken: $\hat d$ by the likelihood
    $kd\rho^{d-1}(1-\rho^d)^{k-1}$ of $\rho=r_1/r_{k+1}$, and the mean direction $\nu$ and concentration $\tau$ of the angles
    between neighbors, fitted by von Mises' law at each row and averaged. The value is the d of least
    $KL(\hat d,\hat d_d)+KL(\nu,\tau;\nu_d,\tau_d)$, references interpolated between whole d. Of larger data ``most`` rows are
    drawn. The error is that of ten groups of rows. Source: ceruti2014.

    Differs from the source: the concentration is solved for, not approximated, and a real number is given, not the nearest
    whole one.

    >>> x = torch.rand(400, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> abs(dimension_danco(x).value - 3) < 0.4
    True
    """
    rows = distinct_rows(x).sample(most)
    if not 2 <= neighbors <= len(rows) - 2:
        raise InputError(f"expected from 2 to {len(rows) - 2} neighbors of {len(rows)} rows, got {neighbors}")
    graph = nearest_neighbors(rows, neighbors + 1)
    log_ratios(graph, 1, neighbors + 1)  # refuses a lattice
    ratios, angles = _concentration(graph, neighbors)
    seen = _summary(ratios, angles, neighbors)
    limit = min(largest, max(2 * rows.columns, 4))

    def reference(d: int) -> tuple[float, float, float]:
        return _ball_summary(d, len(rows), neighbors)

    def loss(d: int) -> float:
        return _divergence(seen, reference(d), neighbors)

    low, high = 1, 2
    while high < limit and loss(high) < loss(low):
        low, high = high, min(limit, 2 * high)
    low = max(1, low // 2)
    while high - low > 2:
        middle = (low + high) // 2
        low, high = (low, middle + 1) if loss(middle) < loss(middle + 1) else (middle, high)
    places = np.arange(max(1, low - 2), min(high + 2, limit) + 1)
    table = np.array([reference(int(d)) for d in places])
    value = _nearest(seen, places, table, neighbors)
    groups = np.array_split(np.random.default_rng(0).permutation(len(ratios)), min(GROUPS, len(ratios) // 10 or 1))
    parts = [_nearest(_summary(ratios[g], angles[g], neighbors), places, table, neighbors) for g in groups]
    error = float(np.std(parts, ddof=1) / math.sqrt(len(parts))) if len(parts) > 1 else math.nan
    return Estimate(value, error, float(graph.distances[:, neighbors - 1].mean()))


@dataclass(frozen=True)
class _Angles:
    """At each row: the mean direction of the angles between its neighbors, and how concentrated they are."""

    directions: NDArray[np.float64]
    taus: NDArray[np.float64]

    def __getitem__(self, rows: NDArray[np.int64]) -> _Angles:
        return _Angles(self.directions[rows], self.taus[rows])


def _skewness(local: Tensor) -> NDArray[np.float64]:
    gram = local @ local.transpose(1, 2)
    squares = gram.diagonal(dim1=1, dim2=2)
    products = squares[:, :, None] * squares[:, None, :]
    upper = torch.triu(torch.ones(gram.shape[1:], dtype=torch.bool, device=gram.device), diagonal=1)
    areas = (products - gram.square()).clamp(min=0.0).sqrt()[:, upper].sum(1)
    return np.asarray((areas / products.sqrt()[:, upper].sum(1)).cpu().numpy())


def _expected_sine(dimension: float) -> float:
    """The mean sine of the angle between random directions."""
    d = dimension
    if d <= 1:
        return 0.0
    return math.exp(2 * math.lgamma(d / 2) - math.lgamma((d + 1) / 2) - math.lgamma((d - 1) / 2))


def _solved(growing: Callable[[float], float], target: float, *, low: float = 1.0, high: float = 1e7) -> float:
    """Where a growing function of a positive number takes this value, by bisection of the logarithm."""
    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if growing(middle) < target else (low, middle)
    return math.sqrt(low * high)


def _concentration(graph: Neighbors, count: int) -> tuple[NDArray[np.float64], _Angles]:
    """Of every row: r_1 over r_{k+1}, and von Mises' fit to the angles between its first k neighbors."""
    from scipy.special import i0e, i1e

    points = graph.rows.points
    cosines, sines = [], []
    upper = torch.triu(torch.ones(count, count, dtype=torch.bool), diagonal=1)
    near = torch.from_numpy(graph.indices[:, :count])
    everyone = torch.arange(len(points))
    for some in torch.split(everyone, max(1, (1 << 21) // (points.shape[1] * count))):
        apart = points[near[some].to(points.device)] - points[some.to(points.device), None]
        unit = apart / apart.norm(dim=2, keepdim=True)
        cosine = (unit @ unit.transpose(1, 2)).cpu()[:, upper].clamp(-1.0, 1.0)
        cosines.append(cosine.mean(1))
        sines.append((1 - cosine.square()).sqrt().mean(1))
    c, s = (torch.cat(parts).numpy() for parts in (cosines, sines))
    grid = np.concatenate([[0.0], np.geomspace(1e-3, LARGEST_TAU, 4000)])
    taus = np.interp(np.hypot(c, s), i1e(grid) / i0e(grid), grid)
    return graph.distances[:, 0] / graph.distances[:, count], _Angles(np.arctan2(s, c), taus)


def _summary(ratios: NDArray[np.float64], angles: _Angles, count: int) -> tuple[float, float, float]:
    logs = np.log(ratios)

    def score(d: float) -> float:  # minus the slope of the likelihood, which falls with d
        rest = np.full_like(logs, 1 / d)  # its limit where the ratio is one
        inner = logs < 0
        rest[inner] = -logs[inner] / np.expm1(np.minimum(-d * logs[inner], 700.0))
        return -float(1 / d + (logs + (count - 1) * rest).mean())

    return _solved(score, 0.0, low=1e-3), float(angles.directions.mean()), float(angles.taus.mean())


@lru_cache(maxsize=2048)
def _ball_summary(dimension: int, rows: int, count: int) -> tuple[float, float, float]:
    generator = torch.Generator().manual_seed(1000 * dimension + rows)
    found = []
    for _ in range(DRAWS):
        x = torch.randn(rows, dimension, generator=generator, dtype=torch.float64)
        radii = torch.rand(rows, 1, generator=generator, dtype=torch.float64) ** (1 / dimension)
        graph = nearest_neighbors(x / x.norm(dim=1, keepdim=True) * radii, count + 1)
        found.append(_summary(*_concentration(graph, count), count))
    d, direction, tau = np.mean(found, axis=0)
    return float(d), float(direction), float(tau)


def _divergence(seen: Any, other: Any, count: int) -> float:
    """Kullback and Leibler's divergence of norms and of angles, of the data from a reference."""
    from scipy.special import binom, digamma, i0e, i1e

    (d, nu, tau), (e, mu, kappa) = seen, other
    c, i = e / d, np.arange(count + 1)
    harmonic = float((1 / np.arange(1, count + 1)).sum())
    rest = float(((-1.0) ** i * binom(count, i) * digamma(1 + i / c)).sum())
    norms = (c - 1) * harmonic - math.log(c) - (count - 1) / count - (count - 1) * rest
    mean = float(i1e(tau) / i0e(tau))
    angles = math.log(i0e(kappa) / i0e(tau)) + kappa - tau + mean * (tau - kappa * math.cos(nu - mu))
    return float(norms + angles)


def _nearest(
    seen: tuple[float, float, float], places: NDArray[np.int64], table: NDArray[np.float64], count: int
) -> float:
    """The real d of least divergence, the references interpolated between whole ones."""
    fine = np.linspace(places[0], places[-1], 50 * (len(places) - 1) + 1)
    columns = np.stack([np.interp(fine, places, column) for column in table.T], axis=1)
    return float(fine[int(np.argmin([_divergence(seen, row, count) for row in columns]))])
