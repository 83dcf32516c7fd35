"""Linear regions in a polygon of a two-dimensional slice: every cell, exactly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from theodolite.core.checks import InputError, real_values
from theodolite.measure.regions._bends import Bend
from theodolite.measure.regions._cell_propagation import activation_patterns, check_maps, swept
from theodolite.measure.regions._piecewise import PiecewiseProgram, piecewise_program
from theodolite.measure.regions._polygons import Array, Polygons, cut, joined, may_cross
from theodolite.measure.regions._shared_products import NUMBERS, Crossing


@dataclass(frozen=True)
class Slice:
    """The plane origin + u first + v second in the space of inputs."""

    origin: Tensor
    first: Tensor
    second: Tensor

    def points(self, coordinates: Any) -> Tensor:
        """The inputs at coordinates (u, v), (P, 2)."""
        uv = torch.as_tensor(np.asarray(coordinates, dtype=np.float64)).to(self.origin.device)
        u, v = (uv[:, k].reshape(-1, *(1,) * self.origin.ndim) for k in (0, 1))
        return self.origin + u * self.first + v * self.second


@dataclass(frozen=True)
class PlaneRegions:
    """The cells of a polygon: on cell k the output at (u, v) is ``maps[k] @ (1, u, v)``, maps (C, outputs, 3)."""

    cells: Polygons
    maps: Tensor
    plane: Slice
    program: PiecewiseProgram

    @property
    def regions(self) -> int:
        """The number of activation regions."""
        return len(self.cells)

    @property
    def areas(self) -> Array:
        """The area of every cell in units of u and v."""
        return self.cells.areas()

    def polygon(self, index: int) -> Array:
        """The corners of cell k in order, (corners, 2)."""
        return self.cells.corners[index, : self.cells.count[index]]

    def patterns(self) -> Tensor:
        """The activation pattern of every cell: which piece of each bend its center lies on, (C, units)."""
        with torch.no_grad():
            centers = self.plane.points(self.cells.centers())
            return torch.cat([activation_patterns(self.program, part) for part in torch.split(centers, 4096)])


@dataclass(frozen=True)
class PlaneCells:
    """Polygons of a slice with their centers and radii, as `swept` asks for them."""

    polygons: Polygons
    center: Tensor
    radius: Tensor

    @classmethod
    def around(cls, polygons: Polygons, device: torch.device) -> PlaneCells:
        """The cells of these polygons."""
        center = polygons.centers()
        return cls(polygons, torch.from_numpy(center).to(device), torch.from_numpy(polygons.radii(center)).to(device))

    def __len__(self) -> int:
        return len(self.polygons)

    def take(self, places: Any) -> PlaneCells:
        """The cells at these places."""
        return PlaneCells(self.polygons.take(places), self.center[places], self.radius[places])

    def roots(self) -> Tensor:
        """All lie in one slice."""
        return torch.zeros(len(self), dtype=torch.long, device=self.center.device)

    def at_center(self, signal: Tensor) -> Tensor:
        """The values of affine maps (C, 3, ...) at the centers."""
        return _at(self.center, signal)

    def at_center_of(self, places: Tensor, signal: Tensor) -> Tensor:
        """The values of one affine map each, (P, 3), at the centers of the cells at these places."""
        return _at(self.center[places], signal)

    def cut_by_knots(self, bend: Bend, signal: Tensor) -> tuple[Iterator[tuple[PlaneCells, Tensor]], Crossing]:
        """Cut by the zero lines of every unit less each of its knots."""
        flat, size = signal.flatten(2), max(16, NUMBERS // signal[0, 0].numel())
        pairs, pieces = [], []
        for start in range(0, len(self), size):  # some cells at a time: what is compared stays in the cache
            some = slice(start, start + size)
            own = flat[some]
            steep = own[:, 1].square().addcmul_(own[:, 2], own[:, 2])
            reach = steep.mul_((self.radius[some].square() * (1 + 1e-6)).unsqueeze(1))
            middle = _at(self.center[some], own)
            pieces.append(bend.piece(middle))
            for place, knot in enumerate(bend.knots):
                near = ((middle - knot).square_() < reach).nonzero()  # never where a unit is constant
                pairs.append(nn.functional.pad(near, (0, 1), value=place) + near.new_tensor([start, 0, 0]))
        cell, unit, place = torch.cat(pairs).T
        if len(bend.knots) > 1:
            order = cell.argsort(stable=True)
            cell, unit, place = cell[order], unit[order], place[order]
        lines = flat[cell, :, unit]
        lines[:, 0] -= bend.knots[place]
        parts = self._replaced(cut(self.polygons, cell.cpu().numpy(), lines.cpu().numpy()))
        if len(bend.knots) > 1:  # a unit may cross several of its knots
            both = torch.unique(cell * flat.shape[2] + unit)
            cell, unit = both // flat.shape[2], both % flat.shape[2]
        return parts, Crossing(cell, unit, torch.cat(pieces))

    def cut_by_windows(self, candidates: Tensor) -> Iterator[tuple[PlaneCells, Tensor]]:
        """Cut where the largest member of a window changes."""
        best = self.at_center(candidates).argmax(-1)[:, None, :, None].expand(-1, 3, -1, 1)
        less = candidates.gather(3, best) - candidates
        center = (self.center[:, 0, None, None], self.center[:, 1, None, None])
        contested = may_cross((less[:, 0], less[:, 1], less[:, 2]), center, self.radius[:, None, None]).any(-1)
        cell, window = contested.nonzero(as_tuple=True)
        members = candidates[cell, :, window].cpu().numpy()  # (P, 3, m)
        return self._replaced(cut(self.polygons, cell.cpu().numpy(), members))

    def _replaced(self, chunks: Iterator[tuple[Polygons, Array]]) -> Iterator[tuple[PlaneCells, Tensor]]:
        device = self.center.device
        for polygons, parent in chunks:
            yield PlaneCells.around(polygons, device), torch.from_numpy(parent).to(device)


def _at(points: Tensor, maps: Tensor) -> Tensor:
    """The values of affine maps (C, 3, ...) at points (C, 2)."""
    u, v = (points[:, k].reshape(-1, *(1,) * (maps.ndim - 2)) for k in (0, 1))
    return torch.addcmul(torch.addcmul(maps[:, 0], u, maps[:, 1]), v, maps[:, 2])


def slice_through(first: Tensor, second: Tensor, third: Tensor) -> tuple[Slice, Array]:
    """The plane through three inputs, with orthonormal directions, and their coordinates in it, (3, 2).

    >>> plane, corners = slice_through(torch.zeros(3), torch.tensor([2.0, 0, 0]), torch.tensor([1.0, 1, 0]))
    >>> corners.tolist()
    [[0.0, 0.0], [2.0, 0.0], [1.0, 1.0]]
    """
    real_values(first=first, second=second, third=third)
    a, b, c = (x.detach().to(torch.float64) for x in (first, second, third))
    along = (b - a) / (b - a).norm()
    rest = (c - a) - ((c - a) * along).sum() * along
    if not float(rest.norm()) > 1e-9 * float((c - a).norm()) or not bool(torch.isfinite(along).all()):
        raise InputError("expected three inputs that span a plane, got some on one line; choose others")
    corners = [[0.0, 0.0], [float((b - a).norm()), 0.0], [float(((c - a) * along).sum()), float(rest.norm())]]
    return Slice(a, along, rest / rest.norm()), np.asarray(corners)


def regions_in_polygon(model: nn.Module, corners: Any, *, plane: Slice | None = None) -> PlaneRegions:
    """All cells on which a piecewise linear network is affine, inside a convex polygon of a slice of its inputs.

    ``corners`` (V, 2) go around the polygon in coordinates of ``plane`` (see `slice_through`), which may be left out for
    a network of two inputs. Reads the same modules as `regions_on_line`. Cells are found layer by layer: in each the
    network is affine so far, and is cut by the zero lines of the next layer's units. All are held, some 200 bytes a cell and
    24 for each output; where that is too much, see `region_parts_in_polygon`.

    >>> net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
    >>> _ = net[0].weight.data.copy_(torch.eye(2)), net[0].bias.data.zero_()
    >>> regions_in_polygon(net, [(-1, -1), (1, -1), (1, 1), (-1, 1)]).regions
    4
    """
    real_values(corners=corners)
    parts = list(region_parts_in_polygon(model, corners, plane=plane))
    cells = joined([part.cells for part in parts])
    return PlaneRegions(cells, torch.cat([part.maps for part in parts]), parts[0].plane, parts[0].program)


def region_parts_in_polygon(model: nn.Module, corners: Any, *, plane: Slice | None = None) -> Iterator[PlaneRegions]:
    """The cells of `regions_in_polygon`, part by part: memory does not grow with how many there are.

    One part is carried through all layers before the next is begun. What is held at a time is bounded by width and depth:
    for each layer some tens of megabytes of maps, or those of one cell where they are more.

    >>> net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
    >>> _ = net[0].weight.data.copy_(torch.eye(2)), net[0].bias.data.zero_()
    >>> sum(part.regions for part in region_parts_in_polygon(net, [(-1, -1), (1, -1), (1, 1), (-1, 1)]))
    4
    """
    polygon = _checked_polygon(corners)
    if plane is None:
        plane = Slice(torch.zeros(2, dtype=torch.float64), *torch.eye(2, dtype=torch.float64))
    program = piecewise_program(model, tuple(plane.origin.shape))
    plane = Slice(*(x.detach().to(program.like) for x in (plane.origin, plane.first, plane.second)))
    rows = torch.stack([plane.origin, plane.first, plane.second])
    if not bool(torch.isfinite(rows).all()) or int(torch.linalg.matrix_rank(rows[1:].flatten(1))) < 2:
        raise InputError("expected a slice of two independent finite directions, got a degenerate one; choose others")
    whole = PlaneCells.around(Polygons(polygon[None], np.array([len(polygon)])), rows.device)
    return _told_parts(program, plane, swept(program, rows[None], whole))


def _told_parts(
    program: PiecewiseProgram, plane: Slice, parts: Iterator[tuple[PlaneCells, Tensor]]
) -> Iterator[PlaneRegions]:
    """Parts as they come; the network itself is asked at some points of the first."""
    for number in count():
        with torch.no_grad():  # not around a yield: the caller's own setting is its own
            found = next(parts, None)
        if found is None:
            return
        cells, maps = found[0].polygons, found[1].mT.contiguous()  # (C, outputs, 3)
        if number == 0:
            some = np.linspace(0, len(cells) - 1, 16).astype(int)
            center = cells.take(some).centers()
            ones = torch.from_numpy(np.column_stack([np.ones(len(some)), center])).to(maps.device)
            check_maps(program, plane.points(center), torch.einsum("cok,ck->co", maps[torch.from_numpy(some)], ones))
        yield PlaneRegions(cells, maps, plane, program)


def _checked_polygon(corners: Any) -> Array:
    points = np.asarray(corners, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 2 or len(points) < 3 or not np.isfinite(points).all():
        raise InputError(f"expected at least three finite corners (u, v), got an array of shape {points.shape}")
    edges = np.roll(points, -1, 0) - points
    turns = edges[:, 0] * np.roll(edges[:, 1], -1) - edges[:, 1] * np.roll(edges[:, 0], -1)
    area = 0.5 * abs((points[:, 0] * np.roll(points[:, 1], -1) - points[:, 1] * np.roll(points[:, 0], -1)).sum())
    small = 1e-12 * (edges**2).sum()
    if not area > small or (turns.min() < -small and turns.max() > small):
        raise InputError("expected the corners of a convex polygon in order, got others; cut it into convex parts")
    return points
