"""The layers that memorize: blocks of slots put together into two hidden layers whose weights a theorem writes down.

A block fits some of the points along one projection and says nothing at the others. One block is enough; where the widths
leave room, points that lie too near to others along the first projection go to a second block with a projection of its own,
along which they are apart. That lowers the weights, and with them rounding, by orders of magnitude.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from theodolite.construct.capacity._memorize_chain import Assignment, assignment, hardtanh_weights, places, relu_weights
from theodolite.construct.capacity._memorize_slots import (
    ROOM,
    Direction,
    Flags,
    Floats,
    Integers,
    Slots,
    direction,
    nearest,
    slots,
    slots_needed,
)
from theodolite.core.checks import InputError
from theodolite.theory.capacity.memory_bounds import MemorizingActivation

MOST_APART = (0.05, 0.02, 0.01, 0.005, 0.002)
FULL = 0.9  # how full blocks may be
"""Shares of the points that may go to the second block, the largest that fits is taken."""


@dataclass(frozen=True)
class Block:
    """A projection, its slots and who takes them."""

    vector: Floats
    slots: Slots
    assigned: Assignment
    rows: slice  # its units of the first layer
    units: slice  # its steps of the second, of each output


def arrangement(x: Floats, *, groups: int, size: int, tries: int, generator: np.random.Generator) -> tuple[Block, ...]:
    """One block or two for these points, of ``groups`` first-layer units and ``size`` second-layer steps together."""
    everything = np.ones(len(x), dtype=bool)
    first = direction(x, everything, tries=tries, generator=generator)
    if first.gap == 0:
        raise InputError(
            "expected points that differ by more than rounding along some projection, got some that do not; "
            "merge or remove rows that are nearly equal"
        )
    divided = _division(first.z, groups, size) if x.shape[1] > 1 else None
    if divided is not None:
        apart, rows, units = divided
        second = direction(x, apart, tries=tries, generator=generator)
        there = (groups - rows) * (size - units - ROOM)
        if second.gap > first.gap and slots_needed(second.z, apart) <= there:
            return (
                _block(first, ~apart, slice(0, rows), slice(0, units)),
                _block(second, apart, slice(rows, groups), slice(units, size)),
            )
    found = [first]
    # where it matters and is quickly done, by what the weights would be
    if x.shape[1] > 1 and 2_000 < len(x) <= 20_000:
        found += [direction(x, everything, tries=1, generator=generator) for _ in range(3)]
    whole = (slice(0, groups), slice(0, size))
    tried = (
        [_block(each, everything, *whole, passes=6).assigned.log_largest for each in found] if len(found) > 1 else [0.0]
    )
    return (_block(found[int(np.argmin(tried))], everything, *whole),)


def _block(along: Direction, fitted: Flags, rows: slice, units: slice, passes: int = 40) -> Block:
    made = slots(along.z, fitted, groups=rows.stop - rows.start, size=units.stop - units.start)
    return Block(
        along.vector, made, assignment(made, passes=passes), slice(rows.start, rows.start + len(made.width)), units
    )


def _division(z: Floats, groups: int, size: int) -> tuple[Flags, int, int] | None:
    """Which points go to a second block, and how many units and steps the first keeps; None where there is no room."""
    near = nearest(z)
    n = len(z)
    for share in MOST_APART:
        if share * n < 16:
            continue
        apart = near <= np.partition(near, int(share * n))[int(share * n)]
        here, there = slots_needed(z, ~apart), 2 * int(apart.sum()) + 2
        if here == 0:
            continue
        units, rows = np.meshgrid(np.arange(2, size - 1, 2), np.arange(1, groups))  # of the second block
        room_here, room_there = (groups - rows) * (size - units - ROOM), rows * (units - ROOM)
        use = np.maximum(here / np.maximum(room_here, 1), there / np.maximum(room_there, 1))
        best = np.unravel_index(int(np.argmin(use)), use.shape)
        if use[best] <= FULL:
            return apart, groups - int(rows[best]), size - int(units[best])
    return None


@dataclass(frozen=True)
class Hidden:
    """Two hidden layers and what is read off them: an nn.Linear each, of float64."""

    layers: tuple[nn.Linear, nn.Linear, nn.Linear]
    blocks: tuple[Block, ...]


def linear(weight: Floats | Tensor, bias: Floats | Tensor | None) -> nn.Linear:
    """An nn.Linear of float64 with these numbers."""
    rows, columns = weight.shape
    # drawn from nothing: random state is as before
    made = nn.Linear(columns, rows, bias=bias is not None, device="meta")
    made.weight = nn.Parameter(torch.as_tensor(weight, dtype=torch.float64).clone())
    if bias is not None:
        made.bias = nn.Parameter(torch.as_tensor(bias, dtype=torch.float64).clone())
    return made


def first_layer(blocks: tuple[Block, ...], kind: MemorizingActivation, *, width: int, inputs: int) -> nn.Linear:
    """Ramps along the projections: one a group for hard-tanh; for ReLU from the middle boundary to both sides."""
    weight, bias = np.zeros((width, inputs)), np.zeros(width)
    for block in blocks:
        low, high = block.slots.bounds[:-1], block.slots.bounds[1:]
        if kind == "hardtanh":
            slope = 2.0 / (high - low)
            weight[block.rows] = slope[:, None] * block.vector
            bias[block.rows] = -(low + high) / (high - low)
        else:
            right = np.arange(len(low)) >= len(low) // 2
            weight[block.rows] = np.where(right, 1.0, -1.0)[:, None] * block.vector
            bias[block.rows] = np.where(right, -low, high)
    return linear(weight, bias)


def hidden_layers(
    blocks: tuple[Block, ...], x: Tensor, y: Floats, kind: MemorizingActivation, widths: tuple[int, ...]
) -> Hidden:
    """The layers for targets ``y`` (n, outputs) within [-1, 1]; units whose slope is too small are given a larger one."""
    outputs, size = y.shape[1], blocks[-1].units.stop
    first = first_layer(blocks, kind, width=widths[0], inputs=x.shape[1])
    copies = 1 if kind == "hardtanh" else 2
    weight, bias = np.zeros((outputs, size, widths[0])), np.zeros((outputs, size))
    done = []
    for block in blocks:
        targets = np.where(block.slots.point >= 0, y.T[:, block.slots.point], 0.0)
        solve = _solver(block, first, x, targets, kind)
        for _ in range(60):
            w, b, bad = solve(block.assigned)
            if not bad.any():
                break
            block = Block(block.vector, block.slots, block.assigned.raised(bad), block.rows, block.units)
        weight[:, block.units, block.rows], bias[:, block.units] = w, b
        done.append(block)
    second_weight = np.zeros((widths[1], widths[0]))
    second_bias, last = np.zeros(widths[1]), np.zeros((outputs, widths[1]))
    used = outputs * size * copies
    second_weight[:used] = np.repeat(weight.reshape(outputs * size, -1), copies, axis=0)
    shift = np.array([0.0]) if copies == 1 else np.array([1.0, -1.0])
    second_bias[:used] = (bias.reshape(-1, 1) + shift).reshape(-1)
    signs = np.array([1.0]) if copies == 1 else np.array([1.0, -1.0])
    for output in range(outputs):
        last[output, output * size * copies : (output + 1) * size * copies] = np.tile(signs, size)
    constant = -1.0 if copies == 1 else -1.0 - size
    return Hidden((first, linear(second_weight, second_bias), linear(last, np.full(outputs, constant))), tuple(done))


def _solver(
    block: Block, first: nn.Linear, x: Tensor, targets: Floats, kind: MemorizingActivation
) -> Callable[[Assignment], tuple[Floats, Floats, Floats]]:
    layout = block.slots
    if kind == "hardtanh":
        a = _real_places(block, first, x)
        return lambda assigned: hardtanh_weights(layout, assigned, targets, a)

    right = np.arange(len(layout.width)) >= len(layout.width) // 2
    signs, edges = np.where(right, 1.0, -1.0), np.where(right, layout.bounds[:-1], layout.bounds[1:])

    def values(points: Integers, z: Floats) -> Floats:
        ideal = np.maximum(signs * (z[:, None] - edges), 0.0)
        real = points >= 0
        with torch.no_grad():
            ideal[real] = torch.relu(first(x[points[real]])).numpy()[:, block.rows]
        return ideal

    return lambda assigned: relu_weights(layout, assigned, targets, values)


def _real_places(block: Block, first: nn.Linear, x: Tensor, rows: int = 8192) -> Floats:
    """The first layer's answers at the points, in the floating point of the layer itself."""
    a = places(block.slots)
    flat, points = a.reshape(-1), block.slots.point.reshape(-1)
    unit = np.repeat(np.arange(block.rows.start, block.rows.stop), a.shape[1])
    where = np.flatnonzero(points >= 0)
    with torch.no_grad():
        for start in range(0, len(where), rows):
            some = where[start : start + rows]
            answers = first(x[points[some]])
            flat[some] = answers[torch.arange(len(some)), unit[some]].numpy()
    return flat.reshape(a.shape)
