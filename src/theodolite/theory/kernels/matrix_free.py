"""Kernels as objects: functions of two sets of points, and matrices that are multiplied without being stored."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from theodolite.core.checks import InputError, one_of
from theodolite.core.free_memory import free_bytes
from theodolite.core.state import exact_products
from theodolite.theory import Mlp
from theodolite.theory.kernels._map_sequences import Layers, Program, diagonal_of, program_of
from theodolite.theory.kernels._thread_sharing import one_core, run_in_threads
from theodolite.theory.kernels._tiled_pairs import TilePlan, mean_squares, plan_of, points_of
from theodolite.theory.kernels._whole_kernels import whole_kernels

KernelKind = Literal["ntk", "nngp"]
Tile = tuple[slice, slice, Tensor]


@dataclass(frozen=True)
class Kernel:
    """The NTK or the NNGP kernel of an infinitely wide network, as a function of points.

    >>> import torch
    >>> kernel = Kernel(Mlp(1, "relu", 2.0), kind="nngp")
    >>> kernel(torch.tensor([[1.0, 0.0]])).item()
    1.0
    """

    spec: Mlp | Layers
    kind: KernelKind = "ntk"
    weight_rate: float | None = None
    bias_rate: float | None = None

    def __post_init__(self) -> None:
        one_of(("ntk", "nngp"), kind=self.kind)

    @cached_property
    def program(self) -> Program:
        """The maps of the network."""
        return program_of(self.spec, weight_rate=self.weight_rate, bias_rate=self.bias_rate)

    def __call__(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        """The kernel of all pairs of rows, as a matrix."""
        return self.matrix(x, other).dense()

    def diagonal(self, x: Tensor) -> Tensor:
        """The kernel of each point with itself."""
        inputs = points_of(x)
        found = diagonal_of(self.program, mean_squares(inputs))
        return (found.ntk if self.kind == "ntk" else found.nngp).to(inputs)

    def matrix(self, x: Tensor, other: Tensor | None = None, *, memory: int | None = None) -> KernelMatrix:
        """The matrix of all pairs, not computed until it is asked for; ``memory`` bytes of tiles are kept by a product.

        None keeps tiles in a quarter of the memory that is free where the points are paired with themselves, since solvers
        multiply such a matrix many times; one of new points is multiplied once, and nothing of it is kept.
        """
        x = points_of(x)
        if memory is None:
            memory = free_bytes(x.device) // 4 if other is None else 0
        return KernelMatrix(self, x, None if other is None else points_of(other), memory)


@dataclass(frozen=True, eq=False)
class KernelMatrix:
    """A kernel matrix that is not stored: products, diagonal and blocks are computed tile by tile when asked for.

    The first product keeps as many tiles as ``memory`` bytes hold, and those after it compute only the others.
    """

    kernel: Kernel
    x: Tensor
    other: Tensor | None = None
    memory: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _kept: list[Tile] = field(default_factory=list, repr=False)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        return len(self.x), len(self.x if self.other is None else self.other)

    @cached_property
    def plan(self) -> TilePlan:
        """What the tiles need to know of the points."""
        return plan_of(self.kernel.program, self.x, self.other)

    def dense(self) -> Tensor:
        """The whole matrix."""
        if self.kernel.kind == "nngp":
            return self.plan.kernels(tangent=False).nngp
        return whole_kernels(self.kernel.program, self.x, self.other).ntk

    def diagonal(self) -> Tensor:
        """The diagonal of a symmetric matrix, in time proportional to its length."""
        if self.other is not None:
            raise InputError(
                "expected one set of points, got two; the diagonal is that of a kernel of points with themselves"
            )
        return self.kernel.diagonal(self.x)

    def block(self, rows: slice | Tensor, columns: slice | Tensor) -> Tensor:
        """Some rows of some columns, as slices or positions."""
        found = self.plan.part(rows, columns).kernels(tangent=self.kernel.kind == "ntk")
        return found.ntk if self.kernel.kind == "ntk" else found.nngp

    def __matmul__(self, vectors: Tensor) -> Tensor:
        """The product with a vector (m,) or several (m, c): memory for them, a few tiles, and those that are kept."""
        n, m = self.shape
        if vectors.ndim not in (1, 2) or len(vectors) != m:
            raise InputError(
                f"expected a vector of {m} numbers, or several as columns, got shape {tuple(vectors.shape)}"
            )
        if self.kernel.kind == "ntk" and self.plan.jumps:
            raise InputError("expected an activation without jumps, got one that jumps: its tangent kernel is infinite")
        v = vectors.reshape(m, -1).to(self.x)
        found = v.new_zeros(n, v.shape[1])
        with self._lock:
            kept = list(self._kept)
        first, rest = self._strips
        wanted = set() if kept else {(rows.start, start) for rows, part in first for start in self._starts(part)}
        new: list[Tile] = []

        def add(rows: slice, columns: slice, block: Tensor) -> None:
            straight = block @ v[columns]
            mirrored = block.T @ v[rows] if self.other is None and rows != columns else None
            with self._lock:
                found[rows] += straight
                if mirrored is not None:
                    found[columns] += mirrored

        def use(rows: slice, columns: slice, k: Tensor, t: Tensor | None) -> None:
            block = k if t is None else t
            add(rows, columns, block)
            if (rows.start, columns.start) in wanted:
                new.append((rows, columns, block.clone()))

        self.plan.for_each_tile(use, tangent=self.kernel.kind == "ntk", strips=rest if kept else [*first, *rest])
        if kept:
            threads = 1 if self.x.is_cuda else torch.get_num_threads()
            shares = [kept[k::threads] for k in range(threads)]

            def multiply() -> None:
                for tile in shares.pop():
                    add(*tile)

            with exact_products(), one_core():
                run_in_threads(multiply, threads)
        elif new:
            with self._lock:
                self._kept[:] = new
        return found.reshape(n, *vectors.shape[1:]).to(vectors)

    def _starts(self, columns: slice) -> range:
        """Where the tiles of a strip begin."""
        return range(columns.start, columns.stop, self.plan.tile)

    @cached_property
    def _strips(self) -> tuple[list[tuple[slice, slice]], list[tuple[slice, slice]]]:
        """Those whose tiles fit into ``memory``, and the others."""
        room, strips = self.memory, self.plan.strips()
        for count, (rows, columns) in enumerate(strips):
            room -= (rows.stop - rows.start) * (columns.stop - columns.start) * self.x.element_size()
            if room < 0:
                return strips[:count], strips[count:]
        return strips, []
