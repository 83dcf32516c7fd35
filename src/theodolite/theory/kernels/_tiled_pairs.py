"""All pairs of points in tiles that fit the cache: shared among threads, or one fused pass on a GPU."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import torch
from torch import Tensor

from theodolite.core.checks import InputError
from theodolite.core.state import exact_products
from theodolite.theory.kernels._duals.maps import Pairs
from theodolite.theory.kernels._map_sequences import (
    Dense,
    KernelDiagonals,
    Nonlinear,
    Normalized,
    Program,
    Sum,
    diagonal_of,
    pair_kernels,
)
from theodolite.theory.kernels._memory_blocks import Scratch
from theodolite.theory.kernels._thread_sharing import one_core, run_in_threads
from theodolite.theory.kernels._tile_recursion import NEAR, Part, TileRun, TileStep

TILE = 192  # rows and columns of a tile of float64 on the CPU: its blocks then fit a core's own cache
STRIP = 8  # tiles of one product of inputs
CUDA_TILE = 4096
FEW = 1024  # pairs
PAIRS_AT_ONCE = 1 << 20  # numbers gathered at a time for pairs that are computed one by one
GPU_AT_ONCE = 1 << 26  # the same where a launch costs more than the memory


@dataclass(frozen=True)
class Kernels:
    """Both kernels of the same points; the tangent kernel is infinite where an activation jumps."""

    nngp: Tensor
    ntk: Tensor


def points_of(x: object, *, like: Tensor | None = None) -> Tensor:
    """Points as the rows of a float32 or float64 matrix."""
    inputs = torch.as_tensor(x).detach()
    if inputs.ndim != 2 or inputs.shape[1] == 0:
        raise InputError(
            f"expected points as the rows of a matrix, (n, d), got shape {tuple(inputs.shape)}; use x.flatten(1)"
        )
    if inputs.dtype not in (torch.float32, torch.float64):
        inputs = inputs.to(torch.float32 if inputs.dtype in (torch.float16, torch.bfloat16) else torch.float64)
    if like is None:
        return inputs
    if inputs.shape[1] != like.shape[1]:
        raise InputError(f"expected points of one dimension, got {like.shape[1]} and {inputs.shape[1]}")
    return inputs.to(like)


def mean_squares(x: Tensor) -> Tensor:
    """The mean square of each row in float64, a few rows at a time."""
    rows = max(1, (GPU_AT_ONCE if x.is_cuda else PAIRS_AT_ONCE // 8) // x.shape[1])
    parts = [x[i : i + rows].to(torch.float64).square().mean(1) for i in range(0, len(x), rows)]
    found = torch.cat(parts) if parts else x.new_zeros(0, dtype=torch.float64)
    refuse_infinite(found)
    return found


def refuse_infinite(squares: Tensor) -> None:
    """Points whose mean square is not finite are not points."""
    if not bool(torch.isfinite(squares).all()):
        raise InputError("expected finite inputs, got inf or nan among them; remove those rows")


Precision = Literal["highest", "high", "fast"]


@lru_cache(maxsize=16)
def unit_diagonal(program: Program) -> KernelDiagonals:
    """The diagonals of a point of mean square 1: all that a homogeneous network's recursion has to know of the points."""
    with one_core():
        return diagonal_of(program, torch.ones(1, dtype=torch.float64))


@dataclass(frozen=True)
class TilePlan:
    """Everything the tiles need to know, worked out once: points, diagonals, and the maps ready for them."""

    program: Program
    x: Tensor
    y: Tensor
    row_scale: Tensor | None  # what the results are multiplied by, for a homogeneous network of normalized points
    column_scale: Tensor | None
    diagonal: KernelDiagonals  # of the rows, then (unless symmetric) of the columns
    steps: tuple[TileStep, ...]
    symmetric: bool

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        return len(self.x), len(self.y)

    @property
    def jumps(self) -> bool:
        """Whether an activation jumps, so that the tangent kernel is infinite."""
        return any(step.dual is not None and step.dual.jumps for step in self.steps)

    def kernels(self, *, tangent: bool = True) -> Kernels:
        """Both kernels of all pairs; without ``tangent`` the NTK is an empty matrix."""
        n, m = self.shape
        nngp = self.x.new_empty(n, m)
        ntk = self.x.new_empty((n, m) if tangent else (0, 0))
        infinite = tangent and self.jumps

        def keep(rows: slice, columns: slice, k: Tensor, t: Tensor | None) -> None:
            for target, block in ((nngp, k), (ntk, t)):
                if block is not None:
                    target[rows, columns] = block
                    if self.symmetric and columns.start >= rows.stop:
                        target[columns, rows] = block.T

        self.for_each_tile(keep, tangent=tangent and not infinite)
        return Kernels(nngp, ntk.fill_(torch.inf) if infinite else ntk)

    def part(self, rows: slice | Tensor, columns: slice | Tensor) -> TilePlan:
        """The plan for some rows and columns, as slices or positions."""
        steps = tuple(step.at(rows, columns) for step in self.steps)
        scales = (
            None if self.row_scale is None else self.row_scale[rows],
            None if self.column_scale is None else self.column_scale[columns],
        )
        return TilePlan(self.program, self.x[rows], self.y[columns], *scales, self.diagonal, steps, symmetric=False)

    @property
    def tile(self) -> int:
        """The side of a tile."""
        return CUDA_TILE if self.x.is_cuda else TILE if self.x.element_size() == 8 else TILE * 4 // 3

    def strips(self) -> list[tuple[slice, slice]]:
        """The rows and columns of tiles that share a product; for symmetric points from the diagonal on."""
        (n, m), tile = self.shape, self.tile
        height = tile if self.symmetric else tile * max(1, tile // max(m, 1))  # of tiles that are narrow
        return [
            (slice(i, min(i + height, n)), slice(j, min(j + STRIP * tile, m)))
            for i in range(0, n, height)
            for j in range(i if self.symmetric else 0, m, STRIP * tile)
        ]

    def for_each_tile(
        self,
        use: Callable[[slice, slice, Tensor, Tensor | None], None],
        *,
        tangent: bool = True,
        strips: list[tuple[slice, slice]] | None = None,
    ) -> None:
        """Call ``use(rows, columns, nngp, ntk)`` with every tile of some strips, or of all.

        On a CPU tiles are shared among as many threads as torch has. The blocks are overwritten afterwards.
        """
        chosen = self.strips() if strips is None else strips
        jobs, tile = iter(chosen), self.tile
        lock = threading.Lock()

        def work() -> None:
            scratch = Scratch()
            while True:
                with lock:
                    job = next(jobs, None)
                if job is None:
                    return
                for rows, columns, k, t in self._strip(*job, tile, scratch, tangent=tangent):
                    use(rows, columns, k, t)

        with exact_products(), one_core() as cores:
            run_in_threads(work, 1 if self.x.is_cuda else min(cores, len({rows.start for rows, _ in chosen}) // 2))

    def _strip(
        self, rows: slice, strip: slice, tile: int, scratch: Scratch, *, tangent: bool
    ) -> Iterator[tuple[slice, slice, Tensor, Tensor | None]]:
        product = scratch.like(_shape(self.x, rows, strip))
        torch.mm(self.x[rows], self.y[strip].T, out=product)
        for start in range(strip.start, strip.stop, tile):
            columns = slice(start, min(start + tile, strip.stop))
            part = product[:, start - strip.start : columns.stop - strip.start]
            block = torch.mul(part, 1 / self.x.shape[1], out=scratch.like(_shape(self.x, rows, columns)))
            run = TileRun(self.steps, rows, columns, scratch)
            k, t = run.through(self.program, Part(block), None, tangent=tangent)
            t = run.apart(k, t)
            blocks = k.settled(), None if t is None else t.settled()
            for settled in blocks:
                if settled is not None and self.row_scale is not None and self.column_scale is not None:
                    settled.mul_(self.row_scale[rows, None]).mul_(self.column_scale[columns])
            if run.near:
                self._mend(run, blocks[0], blocks[1])
            if self.symmetric and rows == columns:
                for settled, exact in zip(blocks, (self.diagonal.nngp, self.diagonal.ntk), strict=True):
                    if settled is not None:
                        _mirror_(settled).diagonal().copy_(exact[rows])
            yield rows, columns, blocks[0], blocks[1]
            scratch.release(*blocks)
        scratch.release(product)

    def mend_tile(self, rows: slice, columns: slice, nngp: Tensor, ntk: Tensor) -> None:
        """Compute near-parallel pairs of a tile of the whole matrices anew, and those of its mirror image."""
        run = TileRun(self.steps, rows, columns, Scratch())
        with exact_products():
            block = self.x[rows] @ self.y[columns].T / self.x.shape[1]
        run.near.append(~(block.abs() <= 1 - NEAR[block.dtype]))
        tiles = nngp[rows, columns].contiguous(), ntk[rows, columns].contiguous()
        self._mend(run, *tiles)
        for whole, tile in zip((nngp, ntk), tiles, strict=True):
            whole[rows, columns] = tile
            whole[columns, rows] = tile.T if rows != columns else _mirror_(tile)

    def _mend(self, run: TileRun, k: Tensor, t: Tensor | None) -> None:
        """Compute pairs of near-parallel points anew, from the differences of their directions."""
        near = torch.stack(run.near).any(0)
        i, j = near.nonzero(as_tuple=True)
        if self.symmetric:
            off = (i + run.rows.start) != (j + run.columns.start)
            i, j = i[off], j[off]
        at_once = max(1, PAIRS_AT_ONCE // self.x.shape[1])
        for begin in range(0, len(i), at_once):
            rows, columns = i[begin : begin + at_once], j[begin : begin + at_once]
            nngp, ntk = self._pairs(rows + run.rows.start, columns + run.columns.start)
            k[rows, columns] = nngp.to(k)
            if t is not None:
                t[rows, columns] = ntk.to(t)

    def _pairs(self, rows: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
        # hundreds of small steps: for few pairs the time is that of launching them, which a CPU need not
        device = torch.device("cpu") if len(rows) <= FEW else self.x.device
        x, y = (v.to(device, torch.float64) for v in (self.x[rows], self.y[columns]))
        a, b = x.square().mean(1), y.square().mean(1)
        x, y = (v / torch.where(q > 0, q, 1.0).sqrt()[:, None] for v, q in ((x, a), (y, b)))
        less, more = 0.5 * (x - y).square().mean(1), 0.5 * (x + y).square().mean(1)
        less, more = torch.where(less < 1, less, 2 - more), torch.where(less < 1, 2 - less, more)
        zero = (a == 0) | (b == 0)
        start = Pairs(a, b, torch.where(zero, 1.0, less), torch.where(zero, 1.0, more))
        nngp, ntk = pair_kernels(self.program, self.diagonal.steps, start)
        if self.row_scale is None or self.column_scale is None:
            return nngp, ntk
        scale = (self.row_scale[rows].to(torch.float64) * self.column_scale[columns].to(torch.float64)).to(device)
        return scale * nngp, scale * ntk


def _mirror_(block: Tensor) -> Tensor:
    """The block with its upper triangle on both sides, in place."""
    return block.copy_(torch.where(_upper(len(block), block.device), block, block.T))


@lru_cache(maxsize=16)
def _upper(n: int, device: torch.device) -> Tensor:
    return torch.ones(n, n, dtype=torch.bool, device=device).triu()


def _shape(x: Tensor, rows: slice, columns: slice) -> Tensor:
    """A tensor of the block's shape that holds no memory."""
    return x.new_empty(1).expand(rows.stop - rows.start, columns.stop - columns.start)


def plan_of(program: Program, x: Tensor, other: Tensor | None = None) -> TilePlan:
    """The plan for all pairs of rows of ``x``, or of ``x`` with ``other``."""
    with one_core():  # many small steps
        return _plan(program, points_of(x), other)


def _plan(program: Program, x: Tensor, other: Tensor | None) -> TilePlan:
    y = x if other is None else points_of(other, like=x)
    squares = mean_squares(x) if other is None else torch.cat([mean_squares(x), mean_squares(y)])
    n = len(x)
    sides = (slice(0, n), slice(0, n)) if other is None else (slice(0, n), slice(n, None))
    scales: tuple[Tensor | None, Tensor | None] = (None, None)
    if is_homogeneous(program):  # then kernels scale with both points, and points of mean square 1 tell everything
        inner = unit_diagonal(program)
        numbers = float(inner.nngp), float(inner.ntk)
        whole = KernelDiagonals(squares * numbers[0], squares * numbers[1], inner.steps)
        roots = squares.sqrt()
        safe = torch.where(roots > 0, roots, 1.0)
        x = _divided(x, safe[sides[0]])
        y = x if other is None else _divided(y, safe[sides[1]])
        scales = roots[sides[0]].to(x), roots[sides[1]].to(x)
    else:
        whole = inner = diagonal_of(program, squares)
    epsilons = [layer.epsilon if isinstance(layer, Normalized) else 0.0 for layer in _flat(program)]
    made: dict[tuple[int, float], TileStep] = {}  # by the step itself: deep networks at a fixed point repeat one
    for step, e in zip(inner.steps, epsilons, strict=True):
        if (id(step), e) not in made:
            made[id(step), e] = TileStep.of(step, e, sides, x)
    steps = tuple(made[id(step), e] for step, e in zip(inner.steps, epsilons, strict=True))
    return TilePlan(program, x, y, *scales, whole, steps, other is None)


def _divided(x: Tensor, by: Tensor) -> Tensor:
    """Rows divided in float64, in the inputs' own precision again, a few at a time."""
    found = torch.empty_like(x)
    rows = max(1, (GPU_AT_ONCE if x.is_cuda else PAIRS_AT_ONCE) // x.shape[1])
    for i in range(0, len(x), rows):
        found[i : i + rows] = x[i : i + rows].to(torch.float64) / by[i : i + rows, None]
    return found


def _flat(program: Program) -> Iterator[Nonlinear | Normalized]:
    """The layers that have a step, in the order of the steps."""
    for layer in program:
        if isinstance(layer, Sum):
            yield from _flat(layer.branch)
            yield from _flat(layer.skip)
        elif not isinstance(layer, Dense):
            yield layer


def is_homogeneous(program: Program) -> bool:
    """Whether the kernels scale with both points: no biases, and every activation scales."""

    def plain(layers: Program) -> bool:
        return all(
            plain(layer.branch) and plain(layer.skip)
            if isinstance(layer, Sum)
            else layer.bias_variance == layer.rates[1] == 0.0
            if isinstance(layer, Dense)
            else isinstance(layer, Nonlinear)
            for layer in layers
        )

    return plain(program) and all(
        isinstance(layer, Nonlinear) and layer.activation.is_homogeneous for layer in _flat(program)
    )
