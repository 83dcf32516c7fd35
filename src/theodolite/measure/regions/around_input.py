"""The cell around one input, in any number of dimensions, by linear programming."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from theodolite.core.checks import InputError, real_values
from theodolite.measure.regions._bends import Bend, Maximum
from theodolite.measure.regions._piecewise import piecewise_program
from theodolite.measure.regions._polygons import Array

SAME = 1e-9  # normals and distances that differ by less are one hyperplane


@dataclass(frozen=True)
class Cell:
    """The inputs x with ``normals @ x <= limits`` (unit normals), on which the network is ``weight @ x + bias``."""

    point: Array
    normals: Array
    limits: Array
    weight: Array
    bias: Array

    @property
    def distance(self) -> float:
        """From the point to the nearest boundary: infinite where the network is affine everywhere."""
        return float((self.limits - self.normals @ self.point).min(initial=np.inf))

    def holds(self, x: Array) -> bool:
        """Whether an input lies in this cell."""
        return bool((self.normals @ np.asarray(x).ravel() <= self.limits).all())


def cell_at(model: nn.Module, point: Any) -> Cell:
    """The cell of a piecewise linear network in which an input lies; its constraints are not yet thinned out.

    >>> net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    >>> _ = net[0].weight.data.copy_(torch.eye(2)), net[0].bias.data.zero_()
    >>> cell_at(net, [3.0, 1.0]).distance
    1.0
    """
    real_values(point=point)
    x = torch.as_tensor(point).detach().to(torch.float64)
    x = x.reshape(x.shape or (1,))
    program = piecewise_program(model, tuple(x.shape))
    x = x.to(program.like)
    size = x.numel()
    basis = torch.eye(size, device=x.device, dtype=x.dtype).reshape(size, *x.shape)
    root = torch.zeros(1, dtype=torch.long, device=x.device)
    live: dict[int, Tensor] = {0: torch.cat([torch.zeros_like(x)[None], basis])[None]}
    last, found = program.last_use(), [torch.zeros(0, size + 1).to(x)]

    def at_point(signal: Tensor) -> Tensor:
        weights = x.reshape(1, size, *(1,) * (signal.ndim - 2))
        return signal[:, 0] + (weights * signal[:, 1:]).sum(1)

    for place, step in enumerate(program.steps):
        does, signal = step.does, live[step.sources[0]]
        if isinstance(does, Bend):
            value = at_point(signal)
            for knot in does.knots:  # rows (constant, slopes) that stay at or above zero in the cell
                side = torch.where(value > knot, 1.0, -1.0)[:, None]
                less = signal.clone()
                less[:, 0] -= knot
                found.append((less * side)[0].flatten(1).T)
            live[place + 1] = does.applied(signal, does.piece(value))
        elif isinstance(does, Maximum):
            members = does.candidates(signal)
            best = at_point(members).argmax(-1)[:, None, :, None].expand(-1, size + 1, -1, 1)
            found.append((members.gather(3, best) - members)[0].flatten(1).T)
            live[place + 1] = members.gather(3, best).reshape(1, size + 1, *does.shape)
        else:
            live[place + 1] = does.applied([live[source] for source in step.sources], root)
        live = {slot: held for slot, held in live.items() if last[slot] > place}
    maps = live[len(program.steps)][0].flatten(1).cpu().numpy()
    normals, limits = _unit(torch.cat(found).cpu().numpy())
    return Cell(x.flatten().cpu().numpy(), normals, limits, maps[1:].T, maps[0])


def _unit(rows: Array) -> tuple[Array, Array]:
    """Constraints a0 + a.x >= 0 as n.x <= c with |n| = 1, those that never bind left out."""
    size = np.linalg.norm(rows[:, 1:], axis=1)
    rows = rows[size > 1e-12 * max(float(size.max(initial=0.0)), 1e-300)]
    size = np.linalg.norm(rows[:, 1:], axis=1, keepdims=True)
    return -rows[:, 1:] / size, rows[:, 0] / size[:, 0]


def largest_ball(cell: Cell, *, reach: float = 1e6) -> tuple[Array, float]:
    """The center and radius of the largest ball in a cell (its inradius); a cell of infinite inradius ends at ``reach``."""
    from scipy.optimize import linprog

    size = len(cell.point)
    cost = np.zeros(size + 1)
    cost[-1] = -1.0
    bounds = [(p - reach, p + reach) for p in cell.point] + [(0.0, reach)]
    rows = np.column_stack([cell.normals, np.ones(len(cell.normals))])
    answer = linprog(cost, A_ub=rows if len(rows) else None, b_ub=cell.limits if len(rows) else None, bounds=bounds)
    if not answer.success:
        raise InputError(f"expected a cell with an inside, got none: {answer.message}")
    return answer.x[:-1], float(answer.x[-1])


def facets(cell: Cell) -> Array:
    """The constraints that bound the cell: the numbers of its facets, each hyperplane once.

    Each constraint is tried against the facets known so far by a small linear program; where it is not implied by them,
    a ray from inside towards the violation hits a new facet first. Source: clarkson1994.
    """
    from scipy.optimize import linprog

    inside = cell.point if cell.distance > 0 else largest_ball(cell)[0]
    room = cell.limits - cell.normals @ inside
    known: list[int] = []
    open_ = list(np.argsort(room))
    bounds = [(None, None)] * len(inside)
    while open_:
        k = int(open_[0])
        if any(_same(cell, k, other) for other in known):
            open_.pop(0)
            continue
        rows = np.vstack([cell.normals[known], cell.normals[k]])
        limits = np.append(room[known], room[k] + 1.0)  # about the inside point; beyond its own limit by at most one
        answer = linprog(-cell.normals[k], A_ub=rows, b_ub=limits, bounds=bounds)
        if not answer.success:
            raise InputError(f"expected a cell that a linear program can bound, got: {answer.message}")
        if -answer.fun <= room[k] + SAME * (1 + room[k]):
            open_.pop(0)
            continue
        along = cell.normals @ answer.x
        reach = np.where(along > 0, room / np.where(along > 0, along, 1.0), np.inf)
        hit = int(reach.argmin())
        if hit in known:  # a tie within rounding
            open_.pop(0)
            hit = k
        known.append(hit)
    return np.array(sorted(known), dtype=int)


def _same(cell: Cell, k: int, other: int) -> bool:
    near = np.abs(cell.normals[k] - cell.normals[other]).max() < SAME
    return bool(near and abs(cell.limits[k] - cell.limits[other]) < SAME * (1 + abs(cell.limits[k])))


def origin_sides(weights: Array, biases: Array) -> int:
    """The number of sides of the cell of the origin among lines w.x + b = 0 in the plane: weights (n, 2), biases (n,).

    By duality these are the corners, the origin aside, of the hull of the points w / b and the origin.
    """
    real_values(weights=weights, biases=biases)
    from scipy.spatial import ConvexHull

    points = np.vstack([np.zeros((1, 2)), weights / biases[:, None]])
    return int((ConvexHull(points).vertices != 0).sum())
