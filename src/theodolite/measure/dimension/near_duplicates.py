"""Rows that come with near-duplicates: whether they rule the smallest scales, and the data without them."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from theodolite.core.checks import at_least
from theodolite.measure.dimension.by_distances import gride_curve
from theodolite.measure.dimension.neighbor_graph import Neighbors, nearest_neighbors, neighbors_of
from theodolite.measure.dimension.prepared_rows import Rows, distinct_rows

MISFIT = 0.06
"""A distance from the law of the ratios that bends and edges do not reach, beside twice 1/sqrt(rows) for chance."""
RISE = 2.0
"""By what factor at least the dimension rises from the scale that copies rule: clusters make it rise by less."""


@dataclass(frozen=True)
class NearCopies:
    """The distance below which rows count as copies, the share of rows that have one, and one row of each group."""

    radius: float
    share: float
    rows: Rows
    misfit: float


def gride_misfit(x: Any, *, near: int = 1) -> float:
    r"""How far the ratios are from the law they are read by: the largest distance between distribution functions.

    On a manifold $\mu^{-d}$, $\mu=r_{2n}/r_n$, has the distribution Beta(n, n), whatever d. Bends and edges hardly change
    that at the nearest neighbors; rows that come in groups do, since $\mu$ jumps where a group ends. Source: denti2022.

    >>> x = torch.rand(2000, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> gride_misfit(x) < 0.05
    True
    """
    from scipy.special import betainc

    from theodolite.measure.dimension.by_distances import dimension_gride

    graph = neighbors_of(x, 2 * near)
    value = dimension_gride(graph, near=near).value
    shares = np.sort((graph.distances[:, 2 * near - 1] / graph.distances[:, near - 1]) ** -value)
    law = betainc(near, near, shares.clip(0.0, 1.0))
    steps = np.arange(len(shares) + 1) / len(shares)
    return float(max((steps[1:] - law).max(), (law - steps[:-1]).max()))


def near_copies(x: Any, *, largest: int = 4) -> NearCopies | None:
    """The near-duplicates that rule the smallest scales, None where none do.

    Two signs together: the dimension doubles at least from its lowest (looked for up to the ``largest`` neighbor) to larger
    scales, and where it is lowest the ratios do not obey the law they are read by. A rise alone is no sign: a surface that
    bends back on itself, as a helix or a roll, meets itself at larger scales, and there the smallest scale is the one to go
    by.
    """
    at_least(1, largest=largest)
    graph = x if isinstance(x, Neighbors) else _graph(x, 128)
    curve = gride_curve(graph)
    within = curve[: max(1, int(largest).bit_length())]
    if len(curve) < 2:
        return None
    place = min(range(len(within)), key=lambda i: within[i].value)
    low, top = curve[place], max(curve[place:], key=lambda estimate: estimate.value)
    if top.value <= RISE * low.value or top.value - low.value <= 3 * math.hypot(low.stderr, top.stderr):
        return None
    misfit = gride_misfit(graph, near=2**place)
    if misfit <= MISFIT + 2 / math.sqrt(len(graph)):
        return None
    radius = _between(graph.distances[:, [2**place - 1, 2 ** (place + 1) - 1]])
    kept, copied = _apart(graph, radius)
    rows = graph.rows
    note = f"{len(rows) - len(kept):,} near-duplicates closer than {radius:.3g} left out"
    chosen = torch.from_numpy(kept).to(rows.points.device)
    thinned = replace(rows, points=rows.points[chosen], kept=rows.kept[chosen], notes=(*rows.notes, note))
    return NearCopies(radius, copied, thinned, misfit)


def _graph(x: Any, count: int) -> Neighbors:
    rows = distinct_rows(x)
    return nearest_neighbors(rows, min(count, len(rows) - 1))


def _between(distances: NDArray[np.float64]) -> float:
    """The distance that parts these best in two, by the variance between the two groups of their logarithms (Otsu)."""
    logs = np.sort(np.log(distances), axis=None)
    below = np.arange(1, len(logs))
    sums = np.cumsum(logs)
    apart = sums[:-1] / below - (sums[-1] - sums[:-1]) / (len(logs) - below)
    place = int((below * (len(logs) - below) * apart**2).argmax())
    return float(np.exp((logs[place] + logs[place + 1]) / 2))


def _apart(graph: Neighbors, radius: float) -> tuple[NDArray[np.int64], float]:
    """Rows taken in order, each leaving out those closer than the radius; and the share of rows that have such ones."""
    close = graph.distances < radius
    left_out = np.zeros(len(graph), dtype=bool)
    for row in range(len(graph)):
        if not left_out[row]:
            left_out[graph.indices[row, close[row]]] = True
    return np.flatnonzero(~left_out), float(close[:, 0].mean())
