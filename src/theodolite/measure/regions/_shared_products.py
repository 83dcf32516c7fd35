"""A linear layer behind a bend, for cells that were cut from fewer cells: applied to those, and mended for each part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from theodolite.measure.regions._bends import Bend
from theodolite.measure.regions._piecewise import DenseMap, PiecewiseProgram

NUMBERS = 100_000  # of float64 at a time: 0.8 MB, which stays in a near cache
MOST = 4  # parts of a cell that more than one unit in so many may cross are computed anew


@dataclass(frozen=True)
class Crossing:
    """The units that may switch inside cells, each pair once and in order of cells; and all units' pieces at the middle."""

    cell: Tensor  # (Q,)
    unit: Tensor  # (Q,)
    pieces: Tensor  # (P, n)


@dataclass(frozen=True)
class Fork:
    r"""The parts of a cell differ from it only in the units whose zero lines cross it.

    With $S$ the maps in front of the bend and $\phi_c$ its pieces at the middle of part $c$ of cell $p$,
    $W\phi_c(S)=W\phi_p(S)+\sum_u(\phi_c-\phi_p)(S_u)W_u$, where the sum has a few terms instead of all units. Whole
    products are made once for each cell and not for each of its parts.
    """

    bend: Bend
    dense: DenseMap
    signal: Tensor  # (P, rows, n) in front of the bend
    image: Tensor  # (P, rows, out) behind the layer
    unit: Tensor  # (Q,) that may switch inside a cell, cell by cell
    lines: Tensor  # (Q, rows)
    piece: Tensor  # (Q,) at the cell's own middle
    count: Tensor  # (P,) of them
    start: Tensor  # (P,)

    @classmethod
    def of(cls, bend: Bend, dense: DenseMap, signal: Tensor, crossing: Crossing) -> Fork:
        """The fork of cells whose crossings are known."""
        cell, unit = crossing.cell, crossing.unit
        count = torch.bincount(cell, minlength=len(signal))
        lines, piece = signal[cell, :, unit], crossing.pieces[cell, unit]
        image = _behind_layer(bend, dense, signal, crossing.pieces)
        return cls(bend, dense, signal, image, unit, lines, piece, count, count.cumsum(0) - count)

    def maps(self, cells: Any, parent: Tensor) -> Tensor:
        """The affine maps of parts behind the layer, (C, rows, out)."""
        anew = self.count[parent] * MOST > self.signal.shape[2]
        out = self.image.new_empty(len(parent), *self.image.shape[1:])
        if bool(anew.any()):
            places = anew.nonzero().flatten()
            signal, some = self.signal.index_select(0, parent[places]), cells.take(places.cpu().numpy())
            out.index_copy_(
                0, places, _behind_layer(self.bend, self.dense, signal, self.bend.piece(some.at_center(signal)))
            )
        count = torch.where(anew, 0, self.count[parent])
        child = torch.repeat_interleave(count)
        at = torch.arange(len(child), device=child.device) + (self.start[parent] - count.cumsum(0) + count)[child]
        lines, before = self.lines[at], self.piece[at]
        now = self.bend.piece(cells.at_center_of(child, lines))
        moved = (now != before).nonzero().flatten()
        child, unit, lines = child[moved], self.unit[at[moved]], lines[moved].unsqueeze(2)
        change = self.bend.applied(lines, now[moved].unsqueeze(1)) - self.bend.applied(
            lines, before[moved].unsqueeze(1)
        )
        count = torch.bincount(child, minlength=len(out))
        first, columns = count.cumsum(0) - count, self.dense.weight.mT.contiguous()
        for many in torch.unique(count).tolist():  # parts in which as many units have moved go together
            places = ((count == many) & ~anew).nonzero().flatten()
            for some in torch.split(places, max(16, NUMBERS // (max(many, 1) * out.shape[2]))):
                whole = self.image.index_select(0, parent[some])
                if many:
                    which = first[some, None] + torch.arange(many, device=out.device)
                    weights = columns.index_select(0, unit[which].flatten()).view(len(some), many, -1)
                    whole = torch.baddbmm(whole, change[which, :, 0].mT, weights)
                out.index_copy_(0, some, whole)
        return out


def _behind_layer(bend: Bend, dense: DenseMap, signal: Tensor, pieces: Tensor) -> Tensor:
    """The affine maps behind bend and layer, some cells at a time so that what lies between stays in the cache."""
    roots = torch.zeros(len(signal), dtype=torch.long, device=signal.device)
    out = signal.new_empty(*signal.shape[:2], dense.weight.shape[0])
    size = max(16, NUMBERS // (signal.shape[1] * signal.shape[2]))
    for start in range(0, len(signal), size):
        some = slice(start, start + size)
        out[some] = dense.applied([bend.applied(signal[some], pieces[some])], roots[some])
    return out


def forked_layer(program: PiecewiseProgram, place: int, signal: Tensor) -> DenseMap | None:
    """The layer that alone reads the bend at a place, where a fork of both can be made."""
    if place + 1 == len(program.steps) or signal.ndim != 3:
        return None
    bend, layer, last = program.steps[place].does, program.steps[place + 1].does, program.last_use()
    if not (isinstance(bend, Bend) and bend.slopes.ndim == 1 and isinstance(layer, DenseMap)):
        return None
    alone = program.steps[place + 1].sources == (place + 1,) and last[place + 1] == place + 1
    return layer if alone and layer.weight.ndim == 2 else None
