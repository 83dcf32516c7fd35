"""Linear regions along segments and lines: every breakpoint, exactly."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.checks import InputError, as_tensor, finite_values, real_values
from theodolite.measure.regions._bends import Bend
from theodolite.measure.regions._cell_propagation import RELATIVE, ROUNDING, check_maps, swept
from theodolite.measure.regions._piecewise import PiecewiseProgram, dense_program, piecewise_program


@dataclass(frozen=True)
class LineRegions:
    """A network along x(t) = start + t (end - start): cell k lies between breakpoints k - 1 and k.

    On cell k the output is ``constants[k] + t slopes[k]``. ``regions`` counts cells of constant activation pattern;
    ``pieces`` those of the function, which are fewer where a unit switches and no output feels it.
    """

    low: float
    high: float
    breakpoints: Tensor
    constants: Tensor
    slopes: Tensor

    @property
    def regions(self) -> int:
        """The number of activation regions."""
        return len(self.slopes)

    @property
    def kinks(self) -> Tensor:
        """The breakpoints at which the output's slope changes."""
        jump = (self.slopes[1:] - self.slopes[:-1]).abs()
        size = torch.maximum(self.slopes[1:].abs(), self.slopes[:-1].abs())
        return self.breakpoints[(jump > RELATIVE * size).any(-1)]

    @property
    def pieces(self) -> int:
        """The number of linear pieces of the output."""
        return 1 + len(self.kinks)

    def __call__(self, t: Any) -> Tensor:
        """The network's output at places t."""
        places = torch.as_tensor(t, dtype=torch.float64).to(self.slopes.device)
        cell = torch.searchsorted(self.breakpoints, places)
        return self.constants[cell] + places.unsqueeze(-1) * self.slopes[cell]


@dataclass(frozen=True)
class Intervals:
    """Cells of lines: ends, and the line each lies on."""

    low: Tensor
    high: Tensor
    root: Tensor

    def __len__(self) -> int:
        return len(self.low)

    def take(self, places: Any) -> Intervals:
        """The cells at these places."""
        return Intervals(self.low[places], self.high[places], self.root[places])

    def roots(self) -> Tensor:
        """The line of each cell."""
        return self.root

    def center(self) -> Tensor:
        """A place inside each cell."""
        low_end, high_end = self.low.isinf(), self.high.isinf()
        middle = 0.5 * (self.low + self.high)
        middle = torch.where(low_end & ~high_end, self.high - self.high.abs().clamp(min=1), middle)
        middle = torch.where(high_end & ~low_end, self.low + self.low.abs().clamp(min=1), middle)
        return torch.where(low_end & high_end, torch.zeros_like(middle), middle)

    def at_center(self, signal: Tensor) -> Tensor:
        """The values of affine maps (C, 2, ...) at the centers."""
        t = self.center().reshape(-1, *(1,) * (signal.ndim - 2))
        return signal[:, 0] + t * signal[:, 1]

    def at_center_of(self, places: Tensor, signal: Tensor) -> Tensor:
        """The values of one affine map each, (P, 2), at the centers of the cells at these places."""
        return signal[:, 0] + self.center()[places] * signal[:, 1]

    def cut_by_knots(self, bend: Bend, signal: Tensor) -> tuple[Iterator[tuple[Intervals, Tensor]], None]:
        """Cut where a unit crosses a knot."""
        flat = signal.flatten(2)
        cells, places = [], []
        for knot in bend.knots:
            cell, where, _ = self._inside(flat[:, 0] - knot, flat[:, 1])
            cells.append(cell)
            places.append(where)
        return iter([self._split(torch.cat(cells), torch.cat(places))]), None

    def cut_by_windows(self, candidates: Tensor) -> Iterator[tuple[Intervals, Tensor]]:
        """Cut where the largest of a window changes: crossings of two members that no third exceeds."""
        first, second = torch.triu_indices(candidates.shape[-1], candidates.shape[-1], 1, device=candidates.device)
        difference = candidates[..., first] - candidates[..., second]
        cell, where, (window, pair) = self._inside(difference[:, 0], difference[:, 1])
        members = candidates[cell, :, window]  # (P, 2, m)
        values = members[:, 0] + where.unsqueeze(1) * members[:, 1]
        top = values.gather(1, first[pair].unsqueeze(1)).squeeze(1)
        room = RELATIVE * (members[:, 1].abs().amax(1) * self._length(cell, where))
        highest = top >= values.amax(1) - room
        return iter([self._split(cell[highest], where[highest])])

    def _length(self, cell: Tensor, where: Tensor) -> Tensor:
        length = self.high[cell] - self.low[cell]
        return torch.where(length.isinf(), where.abs(), length)

    def _inside(self, constant: Tensor, slope: Tensor) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        """Zeros (cell, place, unit...) of affine maps (C, ...) strictly inside their cells.

        A zero nearer to an end than 1e-9 of the cell, or than rounding can tell, lies on that end: with zero biases the
        zeros of later layers often fall upon breakpoints of earlier ones.
        """
        zero = -constant / slope  # not finite where the map is constant, which no comparison below lets pass
        trailing = (1,) * (zero.ndim - 1)
        low, high = self.low.reshape(-1, *trailing), self.high.reshape(-1, *trailing)
        found = ((zero > low) & (zero < high)).nonzero(as_tuple=True)
        cell, where = found[0], zero[found]
        room = RELATIVE * self._length(cell, where)
        room = torch.maximum(room, 10 * ROUNDING * where.abs())
        keep = (where - self.low[cell] > room) & (self.high[cell] - where > room) & where.isfinite()
        return cell[keep], where[keep], tuple(part[keep] for part in found[1:])

    def _split(self, cell: Tensor, where: Tensor) -> tuple[Intervals, Tensor]:
        order = where.argsort()
        order = order[cell[order].argsort(stable=True)]
        cell, where = cell[order], where[order]
        if len(cell) > 1:  # zeros of several units in one place
            gap = where[1:] - where[:-1] > RELATIVE * self._length(cell[1:], where[1:])
            keep = torch.cat([gap.new_ones(1), gap | (cell[1:] != cell[:-1])])
            cell, where = cell[keep], where[keep]
        count = torch.bincount(cell, minlength=len(self))
        parent = torch.repeat_interleave(torch.arange(len(self), device=cell.device), count + 1)
        low, high = self.low[parent].clone(), self.high[parent].clone()
        place = torch.arange(len(cell), device=cell.device) + cell  # a cell's r-th zero ends its r-th part
        high[place], low[place + 1] = where, where
        return Intervals(low, high, self.root[parent]), parent


def regions_on_line(model: nn.Module, start: Any, end: Any, *, whole: bool = False) -> LineRegions:
    """Every breakpoint of a piecewise linear network between two inputs; with ``whole`` on the whole line through them.

    Any module of affine layers (Linear, convolutions, BatchNorm in eval mode, average and max-pooling, residual sums) and
    piecewise linear activations. ``start`` and ``end`` are single inputs, without a batch axis. Breakpoints are values of
    t, 0 at the start and 1 at the end.

    >>> net = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 1))
    >>> _ = net[0].weight.data.fill_(1), net[0].bias.data.copy_(torch.tensor([0.0, -0.5]))
    >>> found = regions_on_line(net, [-1.0], [1.0])
    >>> found.breakpoints.tolist(), found.regions
    ([0.5, 0.75], 3)
    """
    real_values(start=start, end=end)
    first, last = (torch.as_tensor(x).detach().to(torch.float64) for x in (start, end))
    (found,) = regions_on_lines(
        model, first.reshape(1, *(first.shape or (1,))), last.reshape(1, *(last.shape or (1,))), whole=whole
    )
    return found


def regions_on_lines(model: nn.Module, starts: Tensor, ends: Tensor, *, whole: bool = False) -> tuple[LineRegions, ...]:
    """`regions_on_line` for many pairs of inputs at once, (N, ...) each."""
    starts, ends = as_tensor(starts), as_tensor(ends)
    real_values(starts=starts, ends=ends)
    _check_ends(starts, ends)
    program = piecewise_program(model, tuple(starts.shape[1:]))
    starts, ends = starts.detach().to(program.like), ends.detach().to(program.like)
    cells, maps = _swept(program, starts, ends - starts, whole)
    with torch.no_grad():
        some = torch.linspace(0, len(cells) - 1, 16).long().to(cells.root.device)
        part = cells.take(some)
        t = part.center().reshape(-1, *(1,) * (starts.ndim - 1))
        check_maps(program, starts[part.root] + t * (ends - starts)[part.root], part.at_center(maps[some]))
    counts = torch.bincount(cells.root, minlength=len(starts)).tolist()
    found = []
    for low, high, own in zip(*(torch.split(part, counts) for part in (cells.low, cells.high, maps)), strict=True):
        found.append(LineRegions(float(low[0]), float(high[-1]), low[1:], own[:, 0], own[:, 1]))
    return tuple(found)


def network_line_counts(
    weights: list[Tensor], biases: list[Tensor | None], *, start: Tensor, end: Tensor, whole: bool = False
) -> tuple[Tensor, Tensor]:
    """The activation regions and the linear pieces of N ReLU networks along one line, (N,) each.

    ``weights`` (N, out, in) and ``biases`` (N, out) of each layer: the networks are swept together.
    """
    finite_values(start=start, end=end)
    program = dense_program(weights, biases)
    nets = len(weights[0])
    starts, steps = (x.to(program.like).expand(nets, -1) for x in (start, end - start))
    cells, maps = _swept(program, starts, steps, whole)
    regions = torch.bincount(cells.root, minlength=nets)
    jump = (maps[1:, 1] - maps[:-1, 1]).abs() > RELATIVE * torch.maximum(maps[1:, 1].abs(), maps[:-1, 1].abs())
    kink = jump.any(-1) & (cells.root[1:] == cells.root[:-1])
    return regions, 1 + torch.bincount(cells.root[1:][kink], minlength=nets)


def _swept(program: PiecewiseProgram, starts: Tensor, steps: Tensor, whole: bool) -> tuple[Intervals, Tensor]:
    count, like = len(starts), program.like
    ends = (-math.inf, math.inf) if whole else (0.0, 1.0)
    low, high = (torch.full((count,), end, dtype=like.dtype, device=like.device) for end in ends)
    cells = Intervals(low, high, torch.arange(count, device=like.device))
    with torch.no_grad():
        parts = list(swept(program, torch.stack([starts, steps], 1), cells))
    joined = (torch.cat([getattr(part, name) for part, _ in parts]) for name in ("low", "high", "root"))
    return Intervals(*joined), torch.cat([maps for _, maps in parts])


def _check_ends(starts: Tensor, ends: Tensor) -> None:
    if starts.shape != ends.shape:
        raise InputError(f"expected two inputs of one shape, got {tuple(starts.shape[1:])} and {tuple(ends.shape[1:])}")
    if not bool(torch.isfinite(starts).all() and torch.isfinite(ends).all()):
        raise InputError("expected finite inputs, got NaN or infinity; for the whole line pass whole=True")
    if bool((starts == ends).flatten(1).all(1).any()):
        raise InputError("expected two different inputs, got equal ones; a line needs two points")
