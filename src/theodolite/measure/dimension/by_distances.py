"""Intrinsic dimension from distances to nearest neighbors: TwoNN, maximum likelihood, Gride, correlation integral."""

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from theodolite.core.checks import InputError, at_least
from theodolite.core.reading import Estimate
from theodolite.measure.dimension.neighbor_graph import CERTAIN, Neighbors, nearest_neighbors, neighbors_of
from theodolite.measure.dimension.prepared_rows import distinct_rows

TwoNNRule = Literal["line", "likelihood"]

LOOKED_AT = 1 << 20
"""Rows whose neighbors TwoNN looks for: its error is then a thousandth of the dimension, and more rows cost and tell little."""

FARTHER = 8
"""Twice as many neighbors reach 1.5 times as far as the second in five dimensions, and their ratios are known twice as well."""


@dataclass(frozen=True)
class TwoNN:
    """The dimension by TwoNN, and the line it is the slope of: -log(1 - F) against log(r2/r1)."""

    estimate: Estimate
    discarded: float
    logs: NDArray[np.float64]
    heights: NDArray[np.float64]
    misfit: float  # largest distance of F from the law, over the part that is fitted


def twonn_fit(x: Any, *, discard: float = 0.1, rule: TwoNNRule = "line") -> TwoNN:
    r"""TwoNN with what it was fitted to. $\mu=r_2/r_1$ has the law $F(\mu)=1-\mu^{-d}$ where the density is constant.

    ``line``: least squares through the origin of $-\log(1-F)$ on $\log\mu$, the largest ``discard`` of the ratios left out;
    ``likelihood``: $d=(m-1)/(\sum_{i\le m}\log\mu_i+(n-m)\log\mu_m)$, which counts those left out as larger and has the
    smaller error. The error is that of independent ratios (by the spacings of exponential order statistics, which are
    independent), widened for the neighbors that rows share; that the density changes over the second neighbor's distance
    is no part of it (see `dimension_twonn`). Of more than `LOOKED_AT` rows the neighbors of as many alone are looked for,
    among all. Source: facco2017.
    """
    if rule not in get_args(TwoNNRule) or not 0 <= discard < 1:
        raise InputError(f"expected a rule among {get_args(TwoNNRule)} and 0 <= discard < 1, got {rule!r}, {discard}")
    graph = neighbors_of(x if isinstance(x, Neighbors) else nearest_neighbors(x, 2, asked=LOOKED_AT), 2)
    ratios = log_ratios(graph, 1, 2)
    logs, count = np.sort(ratios), len(ratios)
    kept = min(int(count * (1 - discard)), count - 1)
    if kept < 2:
        raise InputError(f"expected at least 2 ratios of distances, got {kept} of {count} rows; pass more data")
    logs, share = logs[:kept], np.arange(1, kept + 1) / count
    heights = -np.log1p(-share)
    if rule == "likelihood":
        value = (kept - 1) / (logs.sum() + (count - kept) * logs[-1])
        relative = 1 / math.sqrt(kept)
    else:
        value = float(logs @ heights / (logs @ logs))
        tails = np.cumsum(heights[::-1])[::-1] / (count - np.arange(kept))
        relative = math.sqrt(float((tails**2).sum())) / float(heights @ heights)
    widened = _widening(1 / value - ratios, graph)
    estimate = Estimate(float(value), float(value * relative * widened), float(graph.distances[:, 1].mean()))
    misfit = float(np.abs(share + np.expm1(-value * logs)).max())
    return TwoNN(estimate, discard, logs, heights, misfit)


def dimension_twonn(x: Any, *, discard: float = 0.1, rule: TwoNNRule = "line") -> Estimate:
    r"""The dimension by the ratio of the second to the first neighbor's distance (see `twonn_fit`), its error with the bias.

    A reading at distance r is off by $ar$ where rows lie near an edge (a share $\propto r$ of balls is cut) and by $ar^2$
    where the density or the surface bends. Read again from neighbors q times as far, it moves by $(q-1)ar$ or
    $(q^2-1)ar^2$: the bias at r is at most that move over $q-1$. It and its own error are added to the error, which is wide
    where q is nearly one: in tens of dimensions. Source: facco2017; denti2022.

    >>> x = torch.rand(2000, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> abs(dimension_twonn(x).value - 2) < 0.2
    True
    """
    if not isinstance(x, Neighbors):
        x = distinct_rows(x)
        x = nearest_neighbors(x, max(2, min(2 * FARTHER, len(x) - 1)), asked=LOOKED_AT)
    found = twonn_fit(x, discard=discard, rule=rule).estimate
    return replace(found, stderr=math.hypot(found.stderr, *_bias(found, x)))


def _bias(found: Estimate, graph: Neighbors) -> tuple[float, float]:
    """How far off the reading is at most for the distance it is taken at, and how well that is known.

    Zeros where no farther neighbors are known.
    """
    near = min(FARTHER, graph.count // 2)
    if near < 2 or not found.scale:
        return 0.0, 0.0
    inner, outer = graph.distances[:, near - 1], graph.distances[:, 2 * near - 1]
    mean = float(np.log(outer / inner).mean())
    reach = float(outer.mean()) / found.scale
    if mean <= 0 or reach <= 1:
        return 0.0, 0.0
    # d log(r_2k / r_k) has this mean where density is constant
    farther = sum(1 / k for k in range(near, 2 * near)) / mean
    return (found.value - farther) / (reach - 1), found.stderr / (reach - 1)  # the farther ratios are known better


def dimension_mle(x: Any, *, neighbors: tuple[int, int] = (10, 20)) -> Estimate:
    r"""Levina and Bickel's maximum likelihood, averaged over rows as MacKay and Ghahramani, then over k from first to last.

    $1/d_k=\frac1{n(k-1)}\sum_i\sum_{j<k}\log\frac{r_k(i)}{r_j(i)}$: inverse dimensions are averaged, since the mean over
    rows of the dimensions themselves is too large by (k-1)/(k-2). Source: levina2004; mackay2005.

    >>> x = torch.rand(2000, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> abs(dimension_mle(x).value - 2) < 0.15
    True
    """
    first, last = neighbors
    if not 2 <= first <= last:
        raise InputError(f"expected 2 <= first <= last neighbors, got {neighbors}; pass (10, 20), say")
    graph = neighbors_of(x, last)
    logs = np.log(graph.distances[:, :last])
    log_ratios(graph, 1, last)
    values, influences = [], np.zeros(len(graph))
    for k in range(first, last + 1):
        own = logs[:, k - 1] - logs[:, : k - 1].mean(1)  # the inverse dimension at each row
        value = 1 / own.mean()
        values.append(value)
        influences -= value**2 * (own - own.mean()) / len(own)
    influences /= len(values)
    error = shared_error(influences, graph.indices[:, :last])
    middle = (first + last) // 2
    return Estimate(float(np.mean(values)), error, float(graph.distances[:, middle - 1].mean()))


def dimension_gride(x: Any, *, near: int = 1, far: int | None = None) -> Estimate:
    r"""Gride: maximum likelihood from the ratio of the distances to the ``far``-th and ``near``-th neighbors.

    $\mu=r_{n_2}/r_{n_1}$ has the density $d(\mu^d-1)^{n_2-n_1-1}/(B(n_2-n_1,n_1)\mu^{(n_2-1)d+1})$, $n_2=2n_1$ unless told.
    Larger n1 look at a larger scale. The error is that of the likelihood, widened for shared neighbors. Source: denti2022.

    >>> x = torch.rand(2000, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> abs(dimension_gride(x, near=4).value - 2) < 0.15
    True
    """
    far = 2 * near if far is None else far
    if not 1 <= near < far:
        raise InputError(f"expected 1 <= near < far, got {near} and {far}; leave out far for twice near")
    graph = neighbors_of(x, far)
    ratios = log_ratios(graph, near, far)
    value, scores, information = _gride(ratios, near, far)
    error = max(information**-0.5, shared_error(scores / information, graph.indices[:, :far]))
    return Estimate(value, error, float(graph.distances[:, far - 1].mean()))


def gride_curve(x: Any, *, largest: int = 64) -> tuple[Estimate, ...]:
    """Gride at n1 = 1, 2, 4, ... up to ``largest``, from one pass over neighbors: the dimension across scales."""
    if not isinstance(x, Neighbors):
        x = distinct_rows(x)
        x = neighbors_of(x, min(2 * largest, len(x) - 1))
    graph: Neighbors = x
    steps = [2**power for power in range(32) if 2**power <= largest and 2 ** (power + 1) <= graph.count]
    return tuple(dimension_gride(graph, near=near) for near in steps)


def dimension_correlation(x: Any, *, neighbors: tuple[int, int] = (10, 20)) -> Estimate:
    r"""The slope of the correlation integral between two radii: $\log(C(r_2)/C(r_1))/\log(r_2/r_1)$.

    $C(r)$ is the share of all pairs closer than r; the radii are the medians over rows of the distances to the two
    ``neighbors``. Counts come from the graph, and for the few rows that have more within $r_2$ than it knows, from all
    others. On a lattice the radii lie halfway between shells of equal distance and each row counts itself, so that a
    regular line reads exactly 1. Source: grassberger1983.

    >>> x = torch.rand(2000, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> abs(dimension_correlation(x).value - 2) < 0.2
    True
    """
    first, last = neighbors
    if not 1 <= first < last:
        raise InputError(f"expected 1 <= first < last neighbors, got {neighbors}; pass (10, 20), say")
    if not isinstance(x, Neighbors):
        x = distinct_rows(x)
        x = neighbors_of(x, max(last, min(3 * last, len(x) - 1)))
    graph = neighbors_of(x, last)
    lattice = graph.ties > 0.5
    radii = _between_shells(graph) if lattice else [float(np.median(graph.distances[:, k - 1])) for k in neighbors]
    if not 0 < radii[0] < radii[1]:
        raise InputError(f"expected two radii, got {radii[0]:g} twice: data on a lattice; take other neighbors")
    counts = _counts(graph, radii) + lattice  # (2, n)
    totals = counts.sum(1)
    if totals[0] == 0:
        raise InputError("expected pairs closer than the smaller radius, got none; take more neighbors")
    length = math.log(radii[1] / radii[0])
    value = math.log(totals[1] / totals[0]) / length
    share = counts / totals[:, None]
    error = shared_error((share[1] - share[0]) / length, graph.indices[:, :last])
    return Estimate(value, error, radii[1])


def shared_error(
    influences: NDArray[np.float64], indices: NDArray[np.int64], asked: NDArray[np.int64] | None = None
) -> float:
    r"""The standard error of a sum over rows whose terms share neighbors.

    Two rows of which a share $s_{ij}$ of k + 1 neighbors (themselves counted) is common have terms correlated by about
    $s_{ij}$: $\mathrm{var}=g^\top Sg$ with $S=GG^\top/(k+1)$, G the graph with its diagonal, so that it is never negative.
    On flat tori it is 0.8 to 1.35 of the spread over draws, where the error of independent rows is 0.6 to 0.85 of it.
    ``asked`` are the rows that the terms belong to; without it all, in order.

    >>> shared_error(np.array([3.0, 4.0]), np.zeros((2, 0), dtype=np.int64))
    5.0
    """
    count = indices.shape[1]
    own = np.arange(len(influences)) if asked is None else asked
    places = np.concatenate([own[:, None], indices], axis=1)
    gathered = np.bincount(places.ravel(), np.repeat(influences, count + 1))
    independent = float((influences**2).sum())
    return math.sqrt(max(independent, float((gathered**2).sum()) / (count + 1)))


def log_ratios(graph: Neighbors, near: int, far: int) -> NDArray[np.float64]:
    """The logarithm of the far-th distance over the near-th, 0 where they are equal but for rounding."""
    at_least(0, near=near, far=far)
    ratios = np.log(graph.distances[:, far - 1] / graph.distances[:, near - 1])
    ratios[ratios <= CERTAIN] = 0.0
    tied = float((ratios == 0).mean())
    if tied > 0.5:
        raise InputError(
            f"expected neighbors {near} and {far} at different distances, got {100 * tied:.0f} % of rows where they are "
            "equal: data on a lattice; use the correlation dimension"
        )
    return ratios


def _between_shells(graph: Neighbors) -> list[float]:
    """Radii halfway between the first two shells of equal distance, and about the middle of those that the graph knows."""
    steps = np.sort(graph.distances, axis=None)
    shells = steps[np.concatenate([[True], steps[1:] > steps[:-1] * (1 + CERTAIN)])]
    shells = shells[shells <= np.median(graph.distances[:, -1])]
    if len(shells) < 3:
        raise InputError(
            f"expected neighbors at three distances or more, got {len(shells)}: all rows are equally far from each other, "
            "as one-hot rows are; pass what they stand for"
        )
    middle = max(1, min(len(shells) - 2, int(np.searchsorted(shells, np.median(graph.distances[:, graph.count // 2])))))
    return [float(shells[place] + shells[place + 1]) / 2 for place in (0, middle)]


def _widening(scores: NDArray[np.float64], graph: Neighbors) -> float:
    return shared_error(scores, graph.indices[:, :2], graph.asked) / math.sqrt(float((scores**2).sum()))


def _gride(ratios: NDArray[np.float64], near: int, far: int) -> tuple[float, NDArray[np.float64], float]:
    """The maximum of the likelihood by Newton's method, the score of each row there, and the information."""
    between = far - near - 1
    value = sum(1 / j for j in range(near, far)) / float(ratios.mean())  # the mean of log mu, times d, is that sum
    for _ in range(100):
        grown = np.expm1(np.minimum(value * ratios, 700.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            pull = np.where(ratios > 0, ratios * (1 + 1 / grown), 1 / value)
            bend = np.where(ratios > 0, ratios**2 * (1 + grown) / grown**2, 1 / value**2)
        scores = 1 / value + between * pull - (far - 1) * ratios
        information = float((1 / value**2 + between * bend).sum())
        step = float(scores.sum()) / information
        value = value + step if value + step > 0 else value / 2
        if abs(step) <= 1e-12 * value:
            break
    return float(value), scores, information


def _counts(graph: Neighbors, radii: list[float]) -> NDArray[np.float64]:
    """How many other rows lie closer than each radius to each row."""
    counts = np.stack([(graph.distances < radius).sum(1) for radius in radii]).astype(np.float64)
    full = torch.from_numpy(np.flatnonzero(graph.distances[:, -1] < radii[1]))
    points = graph.rows.points - graph.rows.points.mean(0)
    reach = float(points.square().sum(1).max()) ** 0.5 * graph.rows.scale
    products = radii[0] > 1e-4 * reach  # squares of distances by products err by 1e-13 of that of the reach
    mode = "use_mm_for_euclid_dist" if products else "donot_use_mm_for_euclid_dist"
    for some in torch.split(full, max(1, (1 << 21) // len(points))) if len(full) else ():
        apart = torch.cdist(points[some], points, compute_mode=mode) * graph.rows.scale
        for place, radius in enumerate(radii):
            counts[place, some.numpy()] = ((apart < radius).sum(1) - 1).cpu().numpy()
    return counts
