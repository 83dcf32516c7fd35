"""The weights of a block: which unit takes which slot of each group, at which scale, and what its weights are then.

A unit's preactivation runs in straight lines from boundary to boundary, +P, -P, +P, ... and passes through the wanted value
at its slot; |P| after a group is |P| before it times (1-a)/(1+a), a in [-1, 1] being the slot's place in the group. Between
its slot and the next points it must get from -1 to 1, so |P| has to be large where points are near to each other. Units are
matched to slots by that need, so that |P| neither dies out nor grows: rounding costs about |P| times 1e-16.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from theodolite.construct.capacity._memorize_slots import Floats, Integers, Slots

MARGIN = 0.05  # of log |P|, for what the targets (at most 1 in size) change in it
STEP = 0.3  # by which log |P| of a unit that fell short rises from pass to pass
LEAST = 4.0  # |P| is never below: the preactivation then leaves [-1, 1] well before a boundary


@dataclass(frozen=True)
class Assignment:
    """The slot of each unit in each group, the |P| it starts with in the middle, and log max |P| over everything."""

    slot: Integers  # (groups, size)
    scale: Floats  # (size,)
    log_largest: float

    def raised(self, units: Floats, by: float = 0.2) -> Assignment:
        """The same with a larger scale for these units."""
        return Assignment(self.slot, np.where(units, self.scale * np.exp(by), self.scale), self.log_largest + by)


def _steps(groups: int) -> Iterator[tuple[int, bool]]:
    """Groups from the middle outwards, to the right and then to the left: (group, to the right)."""
    yield from ((g, True) for g in range(groups // 2, groups))
    yield from ((g, False) for g in range(groups // 2 - 1, -1, -1))


def places(slots: Slots) -> Floats:
    """Where in [-1, 1] each slot lies within its group."""
    return 2.0 * (slots.z - slots.bounds[:-1, None]) / slots.width[:, None] - 1.0


def assignment(slots: Slots, *, passes: int = 40) -> Assignment:
    """The best of some passes; units that fell short in one start higher in the next."""
    start = np.full(slots.z.shape[1], np.log(slots.z.shape[1] + LEAST))
    best: Assignment | None = None
    for _ in range(passes):
        found = _one_pass(slots, start)
        if best is None or found.log_largest < best.log_largest:
            best = found
        lacking = np.log(found.scale) - MARGIN - start
        if (lacking <= 0).all():
            break
        start = start + np.clip(lacking, 0.0, STEP)
    assert best is not None
    return best


def _one_pass(slots: Slots, start: Floats) -> Assignment:
    groups, size = slots.z.shape
    a = places(slots)
    room = np.minimum(slots.left, slots.right) * 2.0 / slots.width[:, None]
    taken = np.empty((groups, size), dtype=np.int64)
    required = np.full(size, -np.inf)  # what has to be added to log |P|
    highest = start.copy()
    log_p = start.copy()
    halves = (np.arange(size // 2), np.arange(size // 2, size))
    for g, right in _steps(groups):
        if not right and g == groups // 2 - 1:
            log_p = start.copy()
        near, far = (1 + a[g], 1 - a[g]) if right else (1 - a[g], 1 + a[g])
        need = np.log(np.maximum(2.0 * near / room[g], LEAST))
        growth = np.log(far / near)
        key = need - 0.5 * growth
        for parity in (0, 1):
            units = halves[(parity + g) % 2]  # the first half goes up, at even slots, in even groups
            units = units[np.argsort(log_p[units], kind="stable")]
            mine = np.arange(parity, size, 2)
            mine = mine[np.argsort(key[mine], kind="stable")]
            taken[g, units] = mine
            required[units] = np.maximum(required[units], need[mine] - log_p[units])
            log_p[units] += growth[mine]
            required[units] = np.maximum(required[units], np.log(LEAST) - log_p[units])
        highest = np.maximum(highest, log_p)
    return Assignment(taken, np.exp(start + required + MARGIN), float((highest + required).max() + MARGIN))


def middle_values(slots: Slots, assigned: Assignment) -> Floats:
    """The preactivations at the middle boundary: the first half of the units is below zero there if it goes up next."""
    half = slots.z.shape[1] // 2
    sign = -1.0 if (slots.z.shape[0] // 2) % 2 == 0 else 1.0
    return np.asarray(assigned.scale * np.repeat([sign, -sign], half))


def hardtanh_weights(slots: Slots, assigned: Assignment, targets: Floats, a: Floats) -> tuple[Floats, Floats, Floats]:
    """Second-layer weights (outputs, size, groups) and biases for hard-tanh steps, and which units do not saturate.

    ``targets`` (outputs, groups, size) are the values wanted in each slot, ``a`` (groups, size) the first layer's real values
    there: what the layer answers in floating point, not what it should.
    """
    groups, size = slots.z.shape
    outputs = len(targets)
    weights = np.empty((outputs, size, groups))
    middle = np.broadcast_to(middle_values(slots, assigned), (outputs, size))
    bad = np.zeros(size, dtype=bool)
    p = middle
    for g, right in _steps(groups):
        if not right and g == groups // 2 - 1:
            p = middle
        slot = assigned.slot[g]
        y, place = targets[:, g, slot], a[g, slot]
        w = (y - p) / (1 + place) if right else (p - y) / (1 - place)
        p = y + w * (1 - place) if right else y - w * (1 + place)
        weights[:, :, g] = w
        bad |= _unsaturated(slots, g, slot, w * 2.0 / slots.width[g], y)
    before = weights[:, :, : groups // 2].sum(2)
    return weights, middle - before + weights[:, :, groups // 2 :].sum(2), bad


def relu_weights(
    slots: Slots, assigned: Assignment, targets: Floats, layer: Callable[[Integers, Floats], Floats]
) -> tuple[Floats, Floats, Floats]:
    """The same for ReLUs measured from the middle boundary to both sides; a unit's slope changes at each boundary.

    ``layer(points, z)`` are the first layer's real values (slots, groups) at these points, or at ``z`` where there is none.
    """
    groups, size = slots.z.shape
    outputs = len(targets)
    weights = np.zeros((outputs, size, groups))
    middle = np.broadcast_to(middle_values(slots, assigned), (outputs, size))
    bad = np.zeros(size, dtype=bool)
    slope = np.zeros((outputs, size))
    for g, right in _steps(groups):
        if not right and g == groups // 2 - 1:
            slope = np.zeros((outputs, size))
        slot = assigned.slot[g]
        y = targets[:, g, slot]
        values = layer(slots.point[g, slot], slots.z[g, slot])  # (size, groups)
        done = np.arange(groups // 2, g) if right else np.arange(g + 1, groups // 2)
        so_far = middle + np.einsum("okj,kj->ok", weights[:, :, done], values[:, done])
        weights[:, :, g] = (y - so_far) / values[:, g]
        slope = slope + weights[:, :, g]
        bad |= _unsaturated(slots, g, slot, slope, y)
    return weights, middle, bad


def _unsaturated(slots: Slots, g: int, slot: Integers, slope: Floats, y: Floats) -> Floats:
    """Which units are not beyond 1 in size at the next points to either side of their slot."""
    upward = np.where(slot % 2 == 0, 1.0, -1.0)
    reach = np.abs(slope)
    left, right = slots.left[g, slot], slots.right[g, slot]
    short = (reach * left < (1 + upward * y)) | (reach * right < (1 - upward * y))
    return short.any(0)
