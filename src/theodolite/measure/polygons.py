"""Many convex polygons cut by many straight lines at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from theodolite.measure.sweep import RELATIVE, ROUNDING

Array = NDArray[Any]
BLOCK = 12  # lines with which a polygon is cut before its parts choose anew among the rest


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

    def centres(self) -> Array:
        """The mean of each one's corners, (C, 2)."""
        weight = np.arange(self.corners.shape[1]) < self.count[:, None]
        centres: Array = np.einsum("ckx,ck->cx", self.corners, weight / self.count[:, None])
        return centres

    def radii(self, centres: Array) -> Array:
        """The distance from the centre to the farthest corner."""
        offset = self.corners - centres[:, None]
        radii: Array = np.sqrt(np.einsum("ckx,ckx->ck", offset, offset).max(1))
        return radii

    def areas(self) -> Array:
        """The area of each; the corners that repeat the first add nothing."""
        x, y = self.corners[..., 0], self.corners[..., 1]
        areas: Array = 0.5 * np.abs((x * np.roll(y, -1, 1) - y * np.roll(x, -1, 1)).sum(1))
        return areas


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


def cut(polygons: Polygons, cell: Array, lines: Array) -> tuple[Polygons, Array]:
    """Polygons cut by lines (P, 3), line k through polygon ``cell[k]`` (in order); and where each part comes from.

    After a dozen lines every part keeps only those that may still cross it, so that the work grows with the number of
    parts and not with parts times lines.
    """
    origin = np.arange(len(polygons))
    finished: list[tuple[Polygons, Array]] = []
    while len(cell):
        length = np.bincount(cell, minlength=len(polygons))
        idle = length == 0
        finished.append((polygons.take(idle), origin[idle]))
        renumbered = np.cumsum(~idle) - 1
        polygons, origin, length, cell = polygons.take(~idle), origin[~idle], length[~idle], renumbered[cell]
        start = np.cumsum(length) - length
        parts, parent = _rounds(polygons, start, length, lines)
        cell, chosen = _left_over(parts, parent, start, length, lines)
        polygons, origin, lines = parts, origin[parent], lines[chosen]
    finished.append((polygons, origin))
    whole, origin = joined([part for part, _ in finished]), np.concatenate([places for _, places in finished])
    order = np.argsort(origin, kind="stable")
    return whole.take(order), origin[order]


def _rounds(polygons: Polygons, start: Array, length: Array, lines: Array) -> tuple[Polygons, Array]:
    """Every polygon cut by the first dozen of its lines."""
    parts, parent = polygons, np.arange(len(polygons))
    for turn in range(min(BLOCK, int(length.max()))):
        active = np.nonzero(length[parent] > turn)[0]
        own = parts.take(active)
        values, signs = signed_values(own, lines[start[parent[active]] + turn])
        crossing = (signs.max(1) > 0) & (signs.min(1) < 0)
        if not crossing.any():
            continue
        above, below = halves(own.take(crossing), values[crossing], signs[crossing])
        active = active[crossing]
        rest = np.ones(len(parts), dtype=bool)
        rest[active] = False
        parts = joined([parts.take(rest), above, below])
        parent = np.concatenate([parent[rest], parent[active], parent[active]])
    return parts, parent


def _left_over(parts: Polygons, parent: Array, start: Array, length: Array, lines: Array) -> tuple[Array, Array]:
    """For each part those of its parent's further lines that may cross it: (part, line) in order."""
    count = np.maximum(length[parent] - BLOCK, 0)
    cell = np.repeat(np.arange(len(parts)), count)
    within = np.arange(len(cell)) - np.repeat(np.cumsum(count) - count, count)
    chosen = start[parent[cell]] + BLOCK + within
    centre = parts.centres()
    radius = parts.radii(centre)
    near = may_cross(lines[chosen].T, centre[cell].T, radius[cell])
    return cell[near], chosen[near]


def may_cross(line: Any, centre: Any, radius: Any) -> Any:
    """Whether a line comes as near to a centre as the radius: of numpy arrays or of tensors."""
    constant, a, b = line
    value = constant + a * centre[0] + b * centre[1]
    steep = a * a + b * b
    return (value * value <= steep * (radius * radius * (1 + 1e-6))) & (steep > 0)


def clipped(polygons: Polygons, lines: Array) -> tuple[Polygons, Array]:
    """The parts on the positive side of a line for each polygon, and which polygons have one."""
    values, signs = signed_values(polygons, lines)
    some, crossing = signs.max(1) > 0, (signs.max(1) > 0) & (signs.min(1) < 0)
    above, _ = (
        halves(polygons.take(crossing), values[crossing], signs[crossing]) if crossing.any() else (polygons, polygons)
    )
    whole = some & ~crossing
    if not crossing.any():
        return polygons.take(whole), np.nonzero(whole)[0]
    kept = np.concatenate([np.nonzero(whole)[0], np.nonzero(crossing)[0]])
    return joined([polygons.take(whole), above]), kept
