"""Which hidden unit is to fit which point: projections, the order of the points along them, groups and slots.

Points are put in order along a line, $z=u\\cdot x$, and cut into groups. In each group every unit of the second layer crosses
zero once, at its *slot*: a point it fits, or a place between points where there is nothing to fit. Slots go up, down, up,
down; so an even number of slots lies before every point that the block of units does not fit, and there it says nothing.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from theodolite.core.checks import InputError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
ROOM = 12  # slots to spare in each group from which on its boundaries can be chosen
LENGTH = 0.5  # the share of spare slots that goes by length rather than to the choice of boundaries


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
    """The slots of at most ``groups`` groups of ``size``; boundaries, and slots to spare, stand in wide gaps.

    A slot near a boundary changes |P| by a large factor, so groups that need not be full end in the widest gap about.
    """
    order = np.argsort(z, kind="stable")
    ordered, mine = z[order], fitted[order]
    pad = _pads(ordered, size)
    edges = np.concatenate([[ordered[0] - pad[0]], ordered, [ordered[-1] + pad[1]]])
    gaps = np.diff(edges)
    empty = _evening(gaps, mine)
    needed = int(mine.sum() + empty.sum())
    roomy = groups * size - needed >= ROOM * groups and len(gaps) >= ROOM * groups
    if not roomy and (needed > groups * size or not mine.all()):
        raise InputError(f"expected {groups} groups of {size} to hold {needed} slots with room; use wider layers")
    if roomy:
        cuts = _cuts(gaps, mine, empty, groups=groups, size=size)
        empty = _filled(edges, mine, empty, cuts, size)
    else:
        groups, cuts = -(-needed // size), np.zeros(0, dtype=np.int64)
        empty = _spread(gaps, empty, groups * size - needed)
    ends = np.zeros(len(gaps), dtype=np.int64)
    ends[cuts] = 1
    places = np.repeat(np.arange(len(empty)), empty)
    within = np.arange(len(places)) - np.repeat(np.cumsum(empty) - empty, empty)
    between = edges[places] + (within + 1) / (empty + ends + 1)[places] * gaps[places]
    left = np.concatenate([gaps[:-1][mine], between - edges[places]])
    right = np.concatenate([gaps[1:][mine], edges[places + 1] - between])
    point = np.concatenate([order[mine], np.full(len(places), -1)])
    where = np.concatenate([ordered[mine], between])
    rank = np.argsort(where, kind="stable")
    point, where, left, right = (v[rank].reshape(groups, size) for v in (point, where, left, right))
    inner = edges[cuts] + (empty[cuts] + 1) / (empty[cuts] + 2) * gaps[cuts]
    inner = inner if roomy else 0.5 * (where[:-1, -1] + where[1:, 0])
    bounds = np.concatenate([edges[:1], inner, edges[-1:]])
    left = np.where(where - left <= bounds[:-1, None], np.inf, left)
    right = np.where(where + right >= bounds[1:, None], np.inf, right)
    return Slots(point, where, left, right, bounds)


def _pads(ordered: Floats, size: int) -> tuple[float, float]:
    """How far the line goes on beyond the first and last points: about as far as points lie apart there."""
    last = len(ordered) - 1
    if last == 0:
        return 1.0, 1.0
    k = min(size, last)
    return float(ordered[k] - ordered[0]) / k, float(ordered[last] - ordered[last - k]) / k


def _evening(gaps: Floats, mine: Flags) -> Integers:
    """Slots without a point, one in the widest gap of each run of an odd number of fitted points."""
    run = np.concatenate([[0], np.cumsum(~mine)])  # of each gap: how many points not fitted lie before it
    odd = np.bincount(run[:-1][mine], minlength=run[-1] + 1) % 2 == 1
    widest = np.lexsort((gaps, run))[np.searchsorted(run, np.arange(run[-1] + 1), side="right") - 1]
    empty = np.zeros(len(gaps), dtype=np.int64)
    empty[widest[odd]] = 1
    return empty


def _spread(gaps: Floats, empty: Integers, spare: int) -> Integers:
    """The spare slots one by one in the widest gaps."""
    empty = empty.copy()
    while spare > 0:
        chosen = np.argsort(-gaps / (empty + 1))[: max(1, spare // 3)]
        empty[chosen] += 1
        spare -= len(chosen)
    return empty


def _cuts(gaps: Floats, mine: Flags, empty: Integers, *, groups: int, size: int) -> Integers:
    """The gaps in which groups end: an even number of slots before each, at most ``size`` between two."""
    count = np.concatenate([[0], np.cumsum(mine)]) + np.cumsum(empty)  # slots up to the end of each gap
    spare = int(groups * size - count[-1])
    level = count + np.cumsum(_by_length(gaps, min(LENGTH * spare, spare - ROOM * groups)))
    mean = level[-1] / groups
    window = min(0.5 * (size - mean) - 1.0, 0.45 * mean)  # a place raises the level by 3 at most: there always is one
    cuts, allowed = [], np.flatnonzero(count % 2 == 0)
    at = level[allowed]
    for aim in np.arange(1, groups) * mean:
        low, high = np.searchsorted(at, [aim - window, aim + window])
        some = allowed[low:high]
        cuts.append(some[np.argmax(gaps[some])])
    return np.array(cuts, dtype=np.int64)


def _by_length(gaps: Floats, total: float) -> Floats:
    """Shares of the gaps in the total that go with their lengths, none above 1."""
    if total >= len(gaps):
        return np.ones(len(gaps))
    low, high = 0.0, float(gaps.max()) * len(gaps) / max(total, 1e-9)
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.minimum(gaps / middle, 1.0).sum() > total else (low, middle)
    return np.minimum(gaps / high, 1.0)


def _filled(edges: Floats, mine: Flags, empty: Integers, cuts: Integers, size: int) -> Integers:
    """With every group filled up to ``size`` by pairs of slots, placed so that together its slots leave |P| as it is.

    A slot at a in [-1, 1] multiplies |P| by (1-a)/(1+a). The logarithms of evenly spread slots are logistic; those of the
    added ones are that, shifted to make the sum over the group zero. Each goes to the widest gap about its place.
    """
    empty, gaps = empty.copy(), np.diff(edges)
    count = np.concatenate([[0], np.cumsum(mine)]) + np.cumsum(empty)
    start, before, low, drift = 0, 0, edges[0], 0.0
    for number, stop in enumerate([*cuts, len(gaps) - 1]):
        pairs = (size - int(count[stop] - before)) // 2
        inner = number < len(cuts)
        high = edges[stop] + (empty[stop] + 1) / (empty[stop] + 2) * gaps[stop] if inner else edges[-1]
        first = max(start, 1)  # the group's points are those at edges[first], ..., edges[stop]
        points = edges[first : stop + 1][mine[first - 1 : stop]]
        free = slice(start, max(start + 1, stop))  # the boundary's own gap is left alone
        aims = _aims(np.concatenate([points, _between(edges, empty, slice(start, stop + 1))]), low, high, pairs, drift)
        _put(empty[free], gaps[free], edges[free], aims)
        places = np.concatenate([points, _between(edges, empty, slice(start, stop + 1), ends=int(inner))])
        drift += _logits(places, low, high).sum()
        start, before, low = stop + 1, int(count[stop]), high
    return empty


def _logits(z: Floats, low: float, high: float) -> Floats:
    return np.asarray(np.log(np.maximum(high - z, 1e-300) / np.maximum(z - low, 1e-300)))


def _aims(z: Floats, low: float, high: float, pairs: int, drift: float) -> Floats:
    """Where pairs of slots would even out the slots at z, and the drift of the groups before."""
    if pairs == 0:
        return np.zeros(0)
    shift = np.clip(-(drift + _logits(z, low, high).sum()) / (2 * pairs), -4.0, 4.0)
    order = (np.arange(pairs) + 0.5) / pairs
    return np.asarray(low + (high - low) / (1 + np.exp(shift + np.log(order / (1 - order)))))


def _put(empty: Integers, gaps: Floats, left: Floats, aims: Floats) -> None:
    """A pair of slots in the widest gap about each aim."""
    reach = max(1, len(gaps) // max(2 * len(aims), 1))
    for place in np.searchsorted(left, aims) - 1:
        some = slice(max(0, place - reach), max(0, place) + reach + 1)
        empty[some.start + int(np.argmax(gaps[some] / (empty[some] + 2)))] += 2


def _between(edges: Floats, empty: Integers, some: slice, ends: int = 0) -> Floats:
    """Where the slots without a point stand; ``ends`` if the last of these gaps also holds a boundary."""
    many = empty[some]
    share = many + 1
    share[-1] += ends
    gap = np.repeat(np.arange(len(many)), many)
    within = np.arange(len(gap)) - np.repeat(np.cumsum(many) - many, many) + 1
    return np.asarray(edges[some][gap] + within / share[gap] * np.diff(edges)[some][gap])


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
