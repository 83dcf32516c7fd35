"""Many convex polygons cut by many straight lines at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from theodolite.measure.regions._cell_propagation import RELATIVE, ROUNDING

Array = NDArray[Any]
BLOCK = 12  # lines with which a polygon is cut before its parts choose anew among the rest
LINES = 20_000  # through some polygons at a time: a dozen cuts make dozens of parts, each with those left of its own
MOST = 50_000  # parts that are finished before they are told


@dataclass(frozen=True)
class Polygons:
    """Convex polygons: corners in order, (C, K, 2), of which the first ``count`` are in use; the rest repeat the first."""

    corners: Array
    count: Array

    def __len__(self) -> int:
        return len(self.count)

    def take(self, places: Any) -> Polygons:
        """Some of them."""
        return Polygons(self.corners[places], self.count[places])

    def centers(self) -> Array:
        """The mean of each one's corners, (C, 2)."""
        weight = np.arange(self.corners.shape[1]) < self.count[:, None]
        return np.einsum("ckx,ck->cx", self.corners, weight / self.count[:, None])

    def radii(self, centers: Array) -> Array:
        """The distance from the center to the farthest corner."""
        offset = self.corners - centers[:, None]
        return np.sqrt(np.einsum("ckx,ckx->ck", offset, offset).max(1))

    def areas(self) -> Array:
        """The area of each; the corners that repeat the first add nothing."""
        x, y = self.corners[..., 0], self.corners[..., 1]
        return 0.5 * np.abs((x * np.roll(y, -1, 1) - y * np.roll(x, -1, 1)).sum(1))


def joined(parts: list[Polygons]) -> Polygons:
    """All polygons of several parts."""
    widest = max((part.corners.shape[1] for part in parts), default=3)
    return Polygons(
        np.concatenate([_padded(p.corners, widest) for p in parts]), np.concatenate([p.count for p in parts])
    )


def _padded(corners: Array, width: int) -> Array:
    missing = width - corners.shape[1]
    return corners if missing <= 0 else np.concatenate([corners, np.repeat(corners[:, :1], missing, 1)], 1)


def signed_values(polygons: Polygons, lines: Array) -> tuple[Array, Array]:
    """The values of c0 + c1 x + c2 y at the corners, and their signs: 0 where a corner lies on the line.

    On the line means: nearer to zero than 1e-9 of the largest value at a corner of this polygon, or than rounding of the
    three terms can tell. So a line through a corner or along an edge cuts nothing off.
    """
    x, y = polygons.corners[..., 0], polygons.corners[..., 1]
    values = lines[:, :1] + lines[:, 1:2] * x + lines[:, 2:] * y
    terms = np.abs(lines[:, 0]) + np.abs(lines[:, 1]) * np.abs(x).max(1) + np.abs(lines[:, 2]) * np.abs(y).max(1)
    room = np.maximum(RELATIVE * np.abs(values).max(1), ROUNDING * terms)[:, None]
    return values, (values > room).astype(np.int8) - (values < -room)


def halves(polygons: Polygons, values: Array, signs: Array) -> tuple[Polygons, Polygons]:
    """The parts of polygons on the positive and on the negative side of a line that crosses each of them."""
    corners, count = polygons.corners, polygons.count
    wide = corners.shape[1]
    place = np.arange(wide)
    used = place < count[:, None]
    following = np.where(place + 1 < count[:, None], place + 1, 0)
    next_values = np.take_along_axis(values, following, 1)
    crossed = used & (signs * np.take_along_axis(signs, following, 1) < 0)
    gap = np.where(crossed, values - next_values, 1.0)
    share = np.where(crossed, values / gap, 0.0)[..., None]
    ends = np.take_along_axis(corners, following[..., None], 1)
    points: Array = np.empty((len(count), wide, 2, 2))
    points[:, :, 0], points[:, :, 1] = corners, corners + share * (ends - corners)
    points = points.reshape(len(count), 2 * wide, 2)
    mask = np.empty((len(count), wide, 2), dtype=bool)
    mask[:, :, 1] = crossed
    found = []
    for side in (signs >= 0, signs <= 0):
        mask[:, :, 0] = side & used
        found.append(_compacted(points, mask.reshape(len(count), 2 * wide)))
    return found[0], found[1]


def _compacted(points: Array, mask: Array) -> Polygons:
    rank = mask.cumsum(1)
    count = rank[:, -1]
    cell, place = np.nonzero(mask)
    first = points[np.arange(len(points)), mask.argmax(1)]
    corners = np.repeat(first[:, None], max(int(count.max(initial=3)), 3), 1)
    corners[cell, rank[cell, place] - 1] = points[cell, place]
    return Polygons(corners, count)


def cut(polygons: Polygons, cell: Array, forms: Array) -> Iterator[tuple[Polygons, Array]]:
    """Polygons cut by lines (P, 3) or windows (P, 3, m), number k through polygon ``cell[k]`` (in order); some at a time.

    A window cuts into the parts on which one of its members is the largest. Told is also where each part comes from.
    After a dozen cuts every part keeps only those that may still cross it, so that the work grows with the number of
    parts and not with parts times lines. Where lines are many, some polygons are cut to the end before the next.
    """
    finished: list[tuple[Polygons, Array]] = []
    waiting, told = [(polygons, np.arange(len(polygons)), cell, forms)], False
    while waiting:
        polygons, origin, cell, forms = waiting.pop()
        length = np.bincount(cell, minlength=len(polygons))
        idle = length == 0
        finished.append((polygons.take(idle), origin[idle]))
        if sum(len(places) for _, places in finished) >= MOST:
            yield _gathered(finished)
            finished, told = [], True
        if not len(cell):
            continue
        renumbered = np.cumsum(~idle) - 1
        polygons, origin, length, cell = polygons.take(~idle), origin[~idle], length[~idle], renumbered[cell]
        start = np.cumsum(length) - length
        if len(cell) > LINES and len(polygons) > 1:
            half = int(np.clip(np.searchsorted(start, len(cell) // 2), 1, len(polygons) - 1))
            k = int(start[half])
            waiting.append((polygons.take(slice(half, None)), origin[half:], cell[k:] - half, forms[k:]))
            waiting.append((polygons.take(slice(half)), origin[:half], cell[:k], forms[:k]))
            continue
        parts, parent = _rounds(polygons, start, length, forms)
        cell, chosen = _left_over(parts, parent, start, length, forms)
        waiting.append((parts, origin[parent], cell, forms[chosen]))
    if not told or any(len(places) for _, places in finished):
        yield _gathered(finished)


def _gathered(finished: list[tuple[Polygons, Array]]) -> tuple[Polygons, Array]:
    """All that is finished, in order of where it comes from."""
    whole, origin = joined([part for part, _ in finished]), np.concatenate([places for _, places in finished])
    order = np.argsort(origin, kind="stable")
    return whole.take(order), origin[order]


def _rounds(polygons: Polygons, start: Array, length: Array, forms: Array) -> tuple[Polygons, Array]:
    """Every polygon cut by the first dozen of its lines or windows."""
    parts, parent = polygons, np.arange(len(polygons))
    for turn in range(min(BLOCK, int(length.max()))):
        active = np.nonzero(length[parent] > turn)[0]
        own, by = parts.take(active), forms[start[parent[active]] + turn]
        new, places = (_split_by_lines if by.ndim == 2 else _split_by_windows)(own, by)
        if not len(new):
            continue
        rest = np.ones(len(parts), dtype=bool)
        rest[active[places]] = False
        parts, parent = joined([parts.take(rest), new]), np.concatenate([parent[rest], parent[active[places]]])
    return parts, parent


def _split_by_lines(polygons: Polygons, lines: Array) -> tuple[Polygons, Array]:
    """Both halves of those polygons that a line crosses, and which polygons these are."""
    values, signs = signed_values(polygons, lines)
    crossing = np.nonzero((signs.max(1) > 0) & (signs.min(1) < 0))[0]
    if not len(crossing):
        return polygons.take(crossing), crossing
    above, below = halves(polygons.take(crossing), values[crossing], signs[crossing])
    return joined([above, below]), np.concatenate([crossing, crossing])


def _split_by_windows(polygons: Polygons, members: Array) -> tuple[Polygons, Array]:
    """The parts on which one of the members is the largest, of those polygons on which not one is so throughout."""
    center = polygons.centers()
    value = members[:, 0] + members[:, 1] * center[:, :1] + members[:, 2] * center[:, 1:]
    top = np.take_along_axis(members, value.argmax(1)[:, None, None], 2)
    contested = np.zeros(len(polygons), dtype=bool)
    for k in range(members.shape[2]):
        contested |= (signed_values(polygons, top[:, :, 0] - members[:, :, k])[1] < 0).any(1)
    chosen = np.nonzero(contested)[0]
    if not len(chosen):
        return polygons.take(chosen), chosen
    own, lines = polygons.take(chosen), members[chosen]
    found = [_largest(own, lines, k) for k in range(lines.shape[2])]
    return joined([part for part, _ in found]), np.concatenate([chosen[places] for _, places in found])


def _largest(polygons: Polygons, members: Array, k: int) -> tuple[Polygons, Array]:
    """Where member k is the largest; of equal members the first counts."""
    piece, places = polygons, np.arange(len(polygons))
    for other in range(members.shape[2]):
        if other == k or not len(piece):
            continue
        values, signs = signed_values(piece, members[places, :, k] - members[places, :, other])
        high, low = signs.max(1), signs.min(1)
        whole = np.nonzero((low >= 0) & ((high > 0) | (k < other)))[0]
        crossing = np.nonzero((high > 0) & (low < 0))[0]
        parts, kept = piece.take(whole), whole
        if len(crossing):
            above, _ = halves(piece.take(crossing), values[crossing], signs[crossing])
            parts, kept = joined([parts, above]), np.concatenate([whole, crossing])
        piece, places = parts, places[kept]
    return piece, places


def _left_over(parts: Polygons, parent: Array, start: Array, length: Array, forms: Array) -> tuple[Array, Array]:
    """For each part those of its parent's further lines or windows that may cross it: (part, form) in order."""
    count = np.maximum(length[parent] - BLOCK, 0)
    cell = np.repeat(np.arange(len(parts)), count)
    within = np.arange(len(cell)) - np.repeat(np.cumsum(count) - count, count)
    chosen = start[parent[cell]] + BLOCK + within
    center = parts.centers()
    radius, middle, own = parts.radii(center)[cell], center[cell], forms[chosen]
    if own.ndim == 2:
        near = may_cross(own.T, middle.T, radius)
    else:
        value = own[:, 0] + own[:, 1] * middle[:, :1] + own[:, 2] * middle[:, 1:]
        less = np.take_along_axis(own, value.argmax(1)[:, None, None], 2) - own
        near = may_cross(less.swapaxes(0, 1), (middle[:, :1], middle[:, 1:]), radius[:, None]).any(1)
    return cell[near], chosen[near]


def may_cross(line: Any, center: Any, radius: Any) -> Any:
    """Whether a line comes nearer to a center than the radius, never so where it is none: of numpy arrays or of tensors."""
    constant, a, b = line
    value = constant + a * center[0] + b * center[1]
    return value * value < (a * a + b * b) * (radius * radius * (1 + 1e-6))
