"""Which hidden unit is to fit which point: projections, the order of the points along them, groups and slots.

Points are put in order along a line, $z=u\\cdot x$, and cut into groups. In each group every unit of the second layer crosses
zero once, at its *slot*: a point it fits, or a place between points where there is nothing to fit. Slots go up, down, up,
down; so an even number of slots lies before every point that the block of units does not fit, and there it says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Slots:
    """The slots of a block, by group: the point each fits (-1: none), its place, and how far the next points are."""

    point: Integers  # (groups, size)
    z: Floats  # (groups, size)
    left: Floats  # (groups, size); infinite where there is no point to the left within the group
    right: Floats  # (groups, size)
    bounds: Floats  # (groups + 1,)

    @property
    def width(self) -> Floats:
        """The lengths of the groups along the line."""
        return np.diff(self.bounds)


@dataclass(frozen=True)
class Direction:
    """A projection of the points, and the smallest distance along it that a unit must resolve, over their range."""

    vector: Floats  # (d,)
    z: Floats  # (n,)
    gap: float


def slots_needed(z: Floats, fitted: Flags) -> int:
    """How many slots a block needs: one a fitted point, and one more wherever their number between two others is odd."""
    mine = fitted[np.argsort(z, kind="stable")]
    run = np.cumsum(~mine)
    odd = np.bincount(run[mine], minlength=1) % 2
    return int(mine.sum() + odd.sum())


def slots(z: Floats, fitted: Flags, *, groups: int, size: int) -> Slots:
    """The slots of ``groups`` groups of ``size``; those to spare stand in the widest gaps, which evens out the groups."""
    order = np.argsort(z, kind="stable")
    ordered, mine = z[order], fitted[order]
    pad = _pads(ordered, size)
    edges = np.concatenate([[ordered[0] - pad[0]], ordered, [ordered[-1] + pad[1]]])
    empty = _empty_slots(np.diff(edges), mine, total=groups * size)
    places = np.repeat(np.arange(len(empty)), empty)
    within = np.arange(len(places)) - np.repeat(np.cumsum(empty) - empty, empty)
    share = (within + 1) / (empty[places] + 1)
    between = edges[places] + share * (edges[places + 1] - edges[places])
    left = np.concatenate([np.diff(edges)[:-1][mine], between - edges[places]])
    right = np.concatenate([np.diff(edges)[1:][mine], edges[places + 1] - between])
    point = np.concatenate([order[mine], np.full(len(places), -1)])
    where = np.concatenate([ordered[mine], between])
    rank = np.argsort(where, kind="stable")
    point, where, left, right = (v[rank].reshape(groups, size) for v in (point, where, left, right))
    bounds = np.concatenate([edges[:1], 0.5 * (where[:-1, -1] + where[1:, 0]), edges[-1:]])
    outside = where - left <= bounds[:-1, None]
    left = np.where(outside, np.inf, left)
    right = np.where(where + right >= bounds[1:, None], np.inf, right)
    return Slots(point, where, left, right, bounds)


def _pads(ordered: Floats, size: int) -> tuple[float, float]:
    """How far the line goes on beyond the first and last points: about as far as points lie apart there."""
    last = len(ordered) - 1
    if last == 0:
        return 1.0, 1.0
    k = min(size, last)
    return float(ordered[k] - ordered[0]) / k, float(ordered[last] - ordered[last - k]) / k


def _empty_slots(gaps: Floats, mine: Flags, *, total: int) -> Integers:
    """How many slots without a point stand in each gap: what evenness asks for, then the spare ones in wide gaps."""
    run = np.concatenate([[0], np.cumsum(~mine)])  # of each gap: how many points not fitted lie before it
    odd = np.bincount(run[:-1][mine], minlength=run[-1] + 1) % 2 == 1
    widest = np.lexsort((gaps, run))[np.searchsorted(run, np.arange(run[-1] + 1), side="right") - 1]
    empty = np.zeros(len(gaps), dtype=np.int64)
    empty[widest[odd]] = 1
    spare = int(total - mine.sum() - empty.sum())
    if spare < 0:
        raise ValueError(f"expected at most {total} slots, got {total - spare}; use wider layers")
    step = 1 if mine.all() else 2
    low, high = 0.0, float(gaps.max()) * 2
    for _ in range(60):  # the length at which a gap is divided, by bisection
        middle = 0.5 * (low + high)
        many = step * np.floor(gaps / (middle * step)).sum() > spare
        low, high = (middle, high) if many else (low, middle)
    more = (step * np.floor(gaps / (high * step))).astype(np.int64)
    rest = int(spare - more.sum()) // step
    share = gaps / (more + empty + 1)
    while rest > 0:
        chosen = np.argsort(-share)[:rest]
        more[chosen] += step
        rest -= len(chosen)
        share = gaps / (more + empty + 1)
    if (spare - more.sum()) % 2:  # every point fitted: an odd one is of no consequence
        more[np.argmax(share)] += 1
    return empty + more


def nearest(z: Floats, relevant: Flags | None = None) -> Floats:
    """The distance along the line from each point to the next, infinite for points that need not be told apart."""
    order = np.argsort(z, kind="stable")
    gaps = np.concatenate([[np.inf], np.diff(z[order]), [np.inf]])
    found = np.empty(len(z))
    found[order] = np.minimum(gaps[:-1], gaps[1:])
    return found if relevant is None else np.where(relevant, found, np.inf)


def direction(x: Floats, fitted: Flags, *, tries: int, generator: np.random.Generator) -> Direction:
    """The best of several random projections, its smallest gaps then widened by small changes of the vector."""
    spread = x.std(0)
    usable = np.where(spread > 0, 1.0 / np.where(spread > 0, spread, 1.0), 0.0)
    found = []
    for _ in range(tries if x.shape[1] > 1 else 1):
        vector = generator.standard_normal(x.shape[1]) * usable if usable.any() else np.ones(x.shape[1])
        vector = vector / (np.std(x @ vector) or 1.0)
        found.append(_scored(x, vector, fitted))
    best = max(found, key=lambda candidate: candidate.gap)
    return _repaired(x, best, fitted)


def _scored(x: Floats, vector: Floats, fitted: Flags) -> Direction:
    z = x @ vector
    gap = nearest(z, fitted).min() / (np.ptp(z) or 1.0)
    return Direction(vector, z, float(min(gap, 1.0)))


def _repaired(x: Floats, start: Direction, fitted: Flags, rounds: int = 40) -> Direction:
    """Widen the smallest gaps: the least change of the vector that sets them all to the size of the next one."""
    best, dimension, failures = start, x.shape[1], 0
    count = max(1, dimension // 3)
    while rounds and failures < 6 and dimension > 1:
        rounds -= 1
        order = np.argsort(best.z, kind="stable")
        gaps = np.diff(best.z[order])
        gaps[~(fitted[order][:-1] | fitted[order][1:])] = np.inf
        if len(gaps) <= count + 1 or not np.isfinite(gaps).any():
            return best
        smallest = np.argpartition(gaps, count)[: count + 1]
        smallest = smallest[np.argsort(gaps[smallest])]
        aim, smallest = gaps[smallest[-1]] * 1.5, smallest[:-1]
        difference = x[order[smallest + 1]] - x[order[smallest]]
        change = np.linalg.lstsq(difference, aim - gaps[smallest], rcond=1e-10)[0]
        tried = _scored(x, best.vector + change, fitted)
        if tried.gap > best.gap:
            best, failures = tried, 0
        else:
            failures, count = failures + 1, max(1, count * 2 // 3)
    return best
