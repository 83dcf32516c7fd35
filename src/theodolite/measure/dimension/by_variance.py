"""Dimension by variance: how many directions, or as if how many, hold the data, globally and locally."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from theodolite.core.checks import InputError, at_least, real_values, within
from theodolite.core.reading import Estimate
from theodolite.core.statistics import mean_estimate
from theodolite.measure.dimension.by_distances import shared_error
from theodolite.measure.dimension.neighbor_graph import Neighbors, neighbors_of
from theodolite.measure.dimension.prepared_rows import Rows, distinct_rows
from theodolite.measure.spectra import gram_eigenvalues


def variances(x: Any, *, standardized: bool = False) -> NDArray[np.float64]:
    """The eigenvalues of the covariance, largest first, of the data or of its columns scaled to variance one.

    >>> variances([[3.0, 0], [-3, 0], [0, 1], [0, -1]]).round(6).tolist()
    [6.0, 0.666667]
    """
    rows = distinct_rows(x)
    centered = rows.points - rows.points.mean(0)
    if standardized:
        centered = centered / centered.std(0)
    values = gram_eigenvalues(centered).flip(0).cpu().numpy() / (len(centered) - 1)
    if standardized:
        return np.asarray(values)
    with np.errstate(over="ignore", under="ignore"):
        found = np.asarray(values * rows.scale * rows.scale)
    if values[0] > 0 and not 0 < found[0] < math.inf:
        raise InputError(f"expected variances that float64 can hold, got data of scale {rows.scale:.3g}; rescale them")
    return found


def dimension_pca(x: Any, *, share: float = 0.95, standardized: bool = False) -> Estimate:
    """The fewest directions that hold this ``share`` of the variance: the linear hull, whatever curves inside it.

    Exact for data on a linear subspace as the share goes to 1. It depends on the columns' units: on the digits 29 directions
    hold 95 %, and 40 where every pixel is scaled to variance one. Source: jolliffe2002.

    >>> dimension_pca([[3.0, 0, 3], [-3, 0, -3], [0, 1, 0], [0, -1, 0]], share=0.99).value
    2.0
    """
    if not 0 < share <= 1:
        raise InputError(f"expected a share from 0 to 1, got {share}; pass 0.95, say")
    found = variances(distinct_rows(x).unscaled(), standardized=standardized)
    return Estimate(float(directions_needed(found, share)))


def linear_rank(x: Any) -> int:
    """How many directions the data has at all, above rounding: the dimension of its linear hull."""
    rows = distinct_rows(x).unscaled()
    return rank_of(variances(rows), rows)


def rank_of(values: NDArray[np.float64], rows: Rows) -> int:
    """How many of these variances of the rows, largest first, lie above rounding, that of their storage and of float64.

    Stored numbers that were computed in that precision err by a few roundings: 16 times its variance are allowed.
    """
    real_values(values=values)
    if not len(values) or not np.isfinite(values).all():
        raise InputError(f"expected finite variances, got {values}; look at the data")
    stored = 16 * rows.rounding * rows.scale * rows.scale * (1 + math.sqrt(rows.columns / len(rows))) ** 2
    return int((values > max(stored, len(values) * np.finfo(np.float64).eps * values[0])).sum())


def dimension_participation(x: Any, *, groups: int = 20) -> Estimate:
    r"""As if so many directions shared the variance equally: $(\sum\lambda)^2/\sum\lambda^2$; the error by jackknife.

    >>> round(dimension_participation([[1.0, 1], [1, -1], [-1, 1], [-1, -1]], groups=2).value, 6)
    2.0
    """
    at_least(2, groups=groups)
    rows = distinct_rows(x)
    centered = rows.points - rows.points.mean(0)
    wide = centered.shape[1] > 2 * len(centered)
    value = _participation(centered)
    parts = min(groups, len(rows) // 2)
    if wide or parts < 2:
        return Estimate(value, math.nan if parts < 2 else _half_spread(centered))
    order = torch.randperm(len(centered), generator=torch.Generator().manual_seed(0)).to(centered.device)
    pieces = order.chunk(parts)
    total, sums = centered.T @ centered, centered.sum(0)
    left = []
    for piece in pieces:
        own = centered[piece]
        count = len(centered) - len(own)
        mean = (sums - own.sum(0)) / count
        scatter = total - own.T @ own - count * torch.outer(mean, mean)
        left.append(float(scatter.diagonal().sum() ** 2 / scatter.square().sum()))
    spread = np.asarray(left)
    error = math.sqrt((parts - 1) / parts * float(((spread - spread.mean()) ** 2).sum()))
    return Estimate(value, error)


def dimension_parallel(x: Any, *, shuffles: int = 19, seed: int = 0) -> Estimate:
    """Horn's parallel analysis: how many leading variances exceed those of the same columns shuffled independently.

    The k-th eigenvalue of the correlations must exceed the k-th of all ``shuffles`` (19 make a test at 5 %), and the first
    that does not ends the count. Source: horn1965.

    >>> z = torch.randn(500, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> x = z.repeat(1, 3) + 0.5 * torch.randn(500, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    >>> dimension_parallel(x).value
    2.0
    """
    at_least(0, shuffles=shuffles)
    rows = distinct_rows(x)
    z = rows.points - rows.points.mean(0)
    z = z / z.std(0)
    seen = gram_eigenvalues(z).flip(0)
    generator = torch.Generator().manual_seed(seed)
    highest = torch.zeros_like(seen)
    for _ in range(shuffles):
        order = torch.rand(z.shape[1], len(z), generator=generator).argsort(dim=1).T.to(z.device)
        highest = torch.maximum(highest, gram_eigenvalues(z.gather(0, order)).flip(0))
    below = (seen <= highest).nonzero().flatten()
    return Estimate(float(below[0] if len(below) else len(seen)))


@dataclass(frozen=True)
class LocalPca:
    """Over neighborhoods: the directions that hold the share of variance, and the participation ratio."""

    needed: Estimate
    participation: Estimate


def local_pca(x: Any, *, neighbors: int = 30, share: float = 0.95, most: int = 1000) -> LocalPca:
    """PCA inside the neighborhood of each row (of at most so many rows), averaged.

    The count answers what a tangent space needs, but too few where the neighborhood has few rows for its dimension (15 of
    20 with 30 neighbors), too many where it curves. The participation ratio of k rows is at most k - 1. Source: fukunaga1971.
    """
    graph = neighbors_of(x, neighbors)
    chosen, patches = graph.patches(neighbors, most=most)
    counts, ratios = [], []
    for local in patches:
        gram = local @ local.transpose(1, 2) if local.shape[2] > local.shape[1] else local.transpose(1, 2) @ local
        values = torch.linalg.eigvalsh(gram).flip(1).clamp(min=0.0)
        reached = values.cumsum(1) / values.sum(1, keepdim=True)
        counts.append((reached < share - 1e-12).sum(1) + 1)
        ratios.append(values.sum(1) ** 2 / values.square().sum(1))
    scale = float(graph.distances[chosen, neighbors - 1].mean())
    whole = len(chosen) == len(graph)
    return LocalPca(*(_mean_over(torch.cat(parts), graph, scale, whole, neighbors) for parts in (counts, ratios)))


def dimension_local_pca(x: Any, *, neighbors: int = 30, share: float = 0.95) -> Estimate:
    """The mean over neighborhoods of the directions that hold this share of the variance: see `local_pca`.

    >>> line = torch.linspace(0, 1, 200, dtype=torch.float64)[:, None] * torch.tensor([[1.0, 2.0, 3.0]])
    >>> dimension_local_pca(line).value
    1.0
    """
    return local_pca(x, neighbors=neighbors, share=share).needed


@dataclass(frozen=True)
class Mixture:
    """A Gaussian mixture chosen by BIC, and the ranks of its covariances averaged by weight.

    ``responsibilities`` are the probabilities of each piece given each of the rows it was fitted to, ``rows``.
    """

    dimension: Estimate
    participation: Estimate
    components: int
    scores: dict[int, float]
    note: str = ""
    responsibilities: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)), repr=False)  # (n, pieces)
    rows: Rows | None = field(default=None, repr=False)


def gaussian_mixture(x: Any, *, share: float = 0.95, most: int = 2000, widest: int = 20, seed: int = 0) -> Mixture:
    r"""Dimension of the pieces of a Gaussian mixture: $\sum_k\pi_kd_k$, $d_k$ the directions that hold the share in piece k.

    The number of pieces (1, 2, 4, 8, 16) is the one of least BIC. Data of more than ``widest`` columns is first turned to
    its leading directions, since a covariance of D columns needs many more than D rows. Source: dempster1977; schwarz1978.
    """
    import warnings

    from sklearn.mixture import GaussianMixture

    rows = distinct_rows(x).sample(most)
    centered = (rows.points - rows.points.mean(0)).cpu()
    note = ""
    if centered.shape[1] > widest:
        directions = torch.linalg.svd(centered, full_matrices=False)[2][:widest]
        held = float((centered @ directions.T).square().sum() / centered.square().sum())
        centered, note = (
            centered @ directions.T,
            f"in the {widest} leading directions, {100 * held:.0f} % of the variance",
        )
    table, scores, fits = centered.numpy(), {}, {}
    for pieces in (1, 2, 4, 8, 16):
        if len(table) < 3 * pieces * (table.shape[1] + 1):
            break
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = GaussianMixture(pieces, random_state=seed, reg_covar=1e-9, max_iter=60).fit(table)
        scores[pieces], fits[pieces] = float(fit.bic(table)), fit
    if not fits:
        raise InputError(
            f"expected at least {3 * (table.shape[1] + 1)} rows for a mixture, got {len(table)}; pass more data"
        )
    best = min(scores, key=lambda pieces: scores[pieces])
    spectra = [np.linalg.eigvalsh(c)[::-1].clip(min=0.0) for c in fits[best].covariances_]
    weights = fits[best].weights_
    needed = sum(w * directions_needed(values, share) for w, values in zip(weights, spectra, strict=True))
    ratio = sum(w * values.sum() ** 2 / (values**2).sum() for w, values in zip(weights, spectra, strict=True))
    shares = fits[best].predict_proba(table)
    return Mixture(Estimate(float(needed)), Estimate(float(ratio)), best, scores, note, shares, rows)


def _mean_over(values: Tensor, graph: Neighbors, scale: float, whole: bool, count: int) -> Estimate:
    draws = values.double().cpu().numpy()
    if not whole:  # far apart in a large table: as good as independent
        found = mean_estimate(draws)
        return Estimate(found.value, found.stderr, scale)
    influences = (draws - draws.mean()) / len(draws)
    return Estimate(float(draws.mean()), shared_error(influences, graph.indices[:, :count]), scale)


def directions_needed(values: NDArray[np.float64], share: float) -> int:
    """The fewest of these variances, largest first, that make up a share of their sum.

    >>> directions_needed(np.array([8.0, 1.0, 1.0]), 0.9)
    2
    """
    within(0, 1, share=share)
    if not np.isfinite(values).all():
        raise InputError("expected finite variances, got NaN or infinity among them; look at the data")
    reached = np.cumsum(values) / values.sum()
    return min(int((reached < share - 1e-12).sum()) + 1, len(values))


def _participation(centered: Tensor) -> float:
    values = gram_eigenvalues(centered)
    return float(values.sum() ** 2 / values.square().sum())


def _half_spread(centered: Tensor) -> float:
    """With more columns than rows: half the difference between the two halves of the rows."""
    halves = [_participation(part - part.mean(0)) for part in (centered[::2], centered[1::2])]
    return abs(halves[0] - halves[1]) / 2
