"""Cells carried through a network: each affine map is applied to all of them at once, each bend cuts them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, Self

import torch
from torch import Tensor

from theodolite.core.checks import InputError
from theodolite.measure.regions._bends import Bend, Maximum
from theodolite.measure.regions._piecewise import PiecewiseProgram
from theodolite.measure.regions._shared_products import Crossing, Fork, forked_layer

NUMBERS = 3_000_000  # of float64 in one signal at a time: 24 MB; what is done with it takes less at once
CHECKED = 16
RELATIVE, ROUNDING = 1e-9, 1e-13  # a zero nearer than this to an edge lies on it: of the cell, of the terms summed


class Cells(Protocol):
    """Convex cells of a slice, all disjoint, in an order that cutting keeps."""

    def __len__(self) -> int: ...

    def take(self, places: Any) -> Self:
        """The cells at these places."""

    def roots(self) -> Tensor:
        """Which of the slices given each cell belongs to, (C,)."""

    def at_center(self, signal: Tensor) -> Tensor:
        """The values (C, ...) of affine maps (C, rows, ...) at a point inside each cell."""

    def at_center_of(self, places: Tensor, signal: Tensor) -> Tensor:
        """The values (P,) of one affine map each, (P, rows), at points inside the cells at these places."""

    def cut_by_knots(self, bend: Bend, signal: Tensor) -> tuple[Iterator[tuple[Self, Tensor]], Crossing | None]:
        """The cells cut where a signal crosses a knot, some at a time, each with the cell it comes from; and crossings."""

    def cut_by_windows(self, candidates: Tensor) -> Iterator[tuple[Self, Tensor]]:
        """The cells cut where the largest member of a window (C, rows, n, m) changes, some at a time."""


def swept(program: PiecewiseProgram, signal: Tensor, cells: Cells) -> Iterator[tuple[Any, Tensor]]:
    """Cells on which the network is affine, part by part, each with its maps (C, rows, outputs).

    One part is carried to the end before the next is begun: what is held is a part in front of every bend, however many
    cells there are.
    """
    last = program.last_use()
    bends = [place for place, step in enumerate(program.steps) if isinstance(step.does, Bend | Maximum)]
    most = max(1, NUMBERS // (program.widest * signal.shape[1]))
    everything = torch.arange(len(cells), device=signal.device)
    waiting: list[Iterator[_Part]] = [iter([_Part(0, {0: signal}, cells, everything)])]
    while waiting:
        part = next(waiting[-1], None)
        if part is None:
            waiting.pop()
            continue
        place, cells, live = part.place, part.cells, _behind(program, part)
        while place < len(program.steps):
            step = program.steps[place]
            if isinstance(step.does, Bend | Maximum):
                break
            live[place + 1] = step.does.applied([live[source] for source in step.sources], cells.roots())
            live = {slot: held for slot, held in live.items() if last[slot] > place}
            place += 1
        if place == len(program.steps):
            yield cells, live[place].flatten(2)
            continue
        step, fork = program.steps[place], None
        before = live[step.sources[0]]
        if isinstance(step.does, Bend):
            chunks, crossing = cells.cut_by_knots(step.does, before)
            layer = forked_layer(program, place, before)
            if layer is not None and crossing is not None:
                fork = Fork.of(step.does, layer, before, crossing)
        elif isinstance(step.does, Maximum):
            chunks = cells.cut_by_windows(step.does.candidates(before))
        near = max(min(64, most), most // 8)  # what is not cut again: in a nearer cache
        size = most if place < bends[-1] or fork else near
        waiting.append(_parts(place + 1 + bool(fork), live, chunks, fork=fork, size=size))


@dataclass(frozen=True)
class _Part:
    """Cells in front of a step, the signals of the cells they come from, and which of them; behind a fork, that fork."""

    place: int
    live: dict[int, Tensor]
    cells: Any
    parent: Tensor
    fork: Fork | None = None


def _parts(
    place: int, live: dict[int, Tensor], chunks: Iterator[tuple[Any, Tensor]], *, fork: Fork | None, size: int
) -> Iterator[_Part]:
    """Cells that were cut, so many at a time."""
    for cells, parent in chunks:
        for start in range(0, len(cells), size):
            some = slice(start, start + size)
            yield _Part(place, live, cells.take(some), parent[some], fork)


def _behind(program: PiecewiseProgram, part: _Part) -> dict[int, Tensor]:
    """The signals of cells that come from others, behind the bend in front of this place; those still needed."""
    place, live, cells, parent = part.place, part.live, part.cells, part.parent
    step, last = program.steps[place - 1] if place else None, program.last_use()
    if part.fork is not None:
        kept = {slot: held.index_select(0, parent) for slot, held in live.items() if last[slot] >= place}
        return {**kept, place: part.fork.maps(cells, parent)}
    if step is None or not isinstance(step.does, Bend | Maximum):
        return {slot: held.index_select(0, parent) for slot, held in live.items()}
    source, does = step.sources[0], step.does
    kept = {slot: held.index_select(0, parent) for slot, held in live.items() if last[slot] >= place or slot == source}
    signal = kept[source]
    if isinstance(does, Bend):
        kept[place] = does.applied(signal, does.piece(cells.at_center(signal)), spent=last[source] < place)
    else:
        kept[place] = does.applied(signal, cells.at_center(signal))
    return {slot: held for slot, held in kept.items() if last[slot] >= place}


def check_maps(program: PiecewiseProgram, points: Tensor, values: Tensor) -> None:
    """Refuse a network whose own output at some points is not what its affine maps say: it was misread."""
    if program.model is None:
        return
    with torch.no_grad():
        own = program.model(points[:CHECKED]).flatten(1)
    apart = (own - values[:CHECKED]).abs().max()
    if not bool(apart <= 1e-6 * (1 + own.abs().max())):
        raise InputError(f"expected a piecewise linear network, got one off its affine pieces by {float(apart):.2g}")


def activation_patterns(program: PiecewiseProgram, points: Tensor) -> Tensor:
    """The number of the piece of every bend, and of the largest of every window, at points (P, ...): (P, units)."""
    live, found = {0: points.to(program.like).unsqueeze(1)}, []
    roots = torch.zeros(len(points), dtype=torch.long, device=program.like.device)
    for place, step in enumerate(program.steps):
        signal = live[step.sources[0]]
        if isinstance(step.does, Bend):
            piece = step.does.piece(signal[:, 0])
            found.append(piece.flatten(1).to(torch.uint8))
            live[place + 1] = step.does.applied(signal, piece)
        elif isinstance(step.does, Maximum):
            value, best = step.does.candidates(signal)[:, 0].max(-1)
            found.append(best.to(torch.uint8))
            live[place + 1] = value.reshape(len(value), 1, *step.does.shape)
        else:
            live[place + 1] = step.does.applied([live[source] for source in step.sources], roots)
    return torch.cat(found, 1) if found else points.new_zeros((len(points), 0), dtype=torch.uint8)
