"""What is carried through a network of images: kernels of pairs of pixels, and what images are with themselves.

Axes are in the order (*space, n, m) for equal pixels and (*space, n, *space, m) for all pairs: images come last, so that
shifted sums run over long rows of memory, and a block of all pairs is a matrix, (pixels n, pixels m).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from theodolite.theory.kernels._duals.maps import Dual
from theodolite.theory.kernels._map_sequences import Nonlinear, dual_of
from theodolite.theory.kernels._memory_blocks import Scratch


@dataclass
class PixelKernels:
    """Both kernels of pairs of images, of equal pixels (*space, n, m) or of all pairs of pixels (*space, n, *space, m)."""

    k: Tensor
    t: Tensor | None
    distance: Tensor | None  # a + b - 2k of equal pixels, where asked for: keeps the digits that k loses in like images
    space: int  # how many axes an image has; 0 once it has been read out
    full: bool  # whether all pairs of pixels are kept
    flat: bool = False

    @property
    def pixels(self) -> int:
        """How many pixels an image has here."""
        return math.prod(self.k.shape[: self.space])

    def mapped(self, change: Callable[[Tensor], Tensor]) -> PixelKernels:
        """Every block sent through the same linear map."""
        k = change(self.k)
        t = k if self.t is self.k else None if self.t is None else change(self.t)
        return replace(self, k=k, t=t, distance=None if self.distance is None else change(self.distance))

    @property
    def blocks(self) -> list[Tensor]:
        """Those that there are, each once."""
        found = [b for b in (self.k, self.t, self.distance) if b is not None]
        return list({b.data_ptr(): b for b in found}.values())

    def of_equal_pixels(self) -> PixelKernels:
        """Only the covariances of each pixel with the same pixel of the other image."""
        return replace(self.mapped(self._equal), full=False) if self.full else self

    def _equal(self, block: Tensor) -> Tensor:
        n, m = block.shape[self.space], block.shape[-1]
        pairs = block.reshape(self.pixels, n, self.pixels, m).diagonal(dim1=0, dim2=2)  # (n, m, pixels)
        return pairs.permute(2, 0, 1).reshape(*block.shape[: self.space], n, m)


@dataclass(frozen=True)
class Gauges:
    """For every pixel of the images of one side, before a nonlinearity, (*space, n): its variance and what follows from it."""

    variance: Tensor
    inverse: Tensor  # 1 / A, 0 where A is
    gain: Tensor | None  # B and D, None where all are 1
    slope_gain: Tensor | None
    moment: Tensor

    @classmethod
    def of(cls, dual: Dual, variance: Tensor) -> Gauges:
        """The gauges of a dual."""
        scale = dual.scale(variance)
        gains = [g if bool((g != 1).any()) else None for g in (dual.gain(variance), dual.slope_gain(variance))]
        return cls(variance, torch.where(scale > 0, 1 / scale, 0.0), gains[0], gains[1], dual.moment(variance))

    def mapped(self, change: Callable[[Tensor], Tensor]) -> Gauges:
        """All of them sliced or given other axes."""
        gains = [None if g is None else change(g) for g in (self.gain, self.slope_gain)]
        return Gauges(change(self.variance), change(self.inverse), gains[0], gains[1], change(self.moment))


@dataclass(frozen=True)
class Step:
    """What images of both sides are with themselves before one step that asks, and the dual of a nonlinearity."""

    rows: Tensor | Gauges
    columns: Tensor | Gauges
    dual: Dual | None = None

    @classmethod
    def of(cls, layer: Nonlinear, rows: Tensor, columns: Tensor) -> Step:
        """The step of a nonlinearity, from the variances of pixels of both sides."""
        low = min(float(rows.min()), float(columns.min()))
        dual = dual_of(layer.activation, low, max(float(rows.max()), float(columns.max())))
        first = Gauges.of(dual, rows)
        return cls(first, first if columns is rows else Gauges.of(dual, columns), dual)


class StepParts:
    """Steps cut into parts of so many images once, for all tiles that have them; each part in one piece of memory."""

    def __init__(self, steps: Sequence[Step], size: int) -> None:
        self._size = size
        self._duals = [step.dual for step in steps]
        self._rows = [_parts(step.rows, size) for step in steps]
        self._columns = [
            rows if step.columns is step.rows else _parts(step.columns, size)
            for rows, step in zip(self._rows, steps, strict=True)
        ]

    def at(self, row: int, column: int) -> list[Step]:
        """The steps of the tile that begins at these images."""
        i, j = row // self._size, column // self._size
        return [
            Step(rows[i], columns[j], dual)
            for rows, columns, dual in zip(self._rows, self._columns, self._duals, strict=True)
        ]


def _parts(side: Tensor | Gauges, size: int) -> list[Tensor | Gauges]:
    length = (side.variance if isinstance(side, Gauges) else side).shape[-1]
    return [_some(side, slice(start, start + size)) for start in range(0, length, size)]


def _some(side: Tensor | Gauges, images: slice) -> Tensor | Gauges:
    if isinstance(side, Gauges):
        return side.mapped(lambda v: v[..., images].contiguous())
    return side[..., images].contiguous()  # in one piece: blocks are multiplied along long rows


@dataclass
class Sides:
    """What images are with themselves before each step: given for both sides, or read off the signal as it is met."""

    steps: Sequence[Step] = ()
    given: bool = False
    itself: bool = False  # whether rows and columns are the same images
    hasty: bool = False  # whether to give up where distances, not carried now, would be needed
    own: list[tuple[Nonlinear | None, Tensor]] = field(default_factory=list)
    alike: list[Tensor] = field(default_factory=list)  # not 0 where a GPU met such pairs: asked for once, as it waits
    scratch: Scratch = field(default_factory=Scratch)
    position: int = 0

    def at(self, signal: PixelKernels, change: Callable[[Tensor], Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """The variances of pixels before the next step, changed or not, ready to be multiplied with blocks."""
        if self.given:
            step = self._next()
            rows, columns = step.rows, step.columns
            assert isinstance(rows, Tensor) and isinstance(columns, Tensor)
        else:
            rows = columns = self._read(None, signal.of_equal_pixels().k[..., 0])
        if change is not None:
            rows, columns = change(rows), change(columns)
        return self.row(rows, signal), self.column(columns, signal)

    def gauged(self, layer: Nonlinear, signal: PixelKernels) -> tuple[Dual, Gauges, Gauges]:
        """The dual of a nonlinearity and the gauges of both sides, ready to be multiplied with blocks."""
        if self.given:
            step = self._next()
        else:
            variances = self._read(layer, signal.of_equal_pixels().k[..., 0])
            step = Step.of(layer, variances, variances)
        assert step.dual is not None and isinstance(step.rows, Gauges) and isinstance(step.columns, Gauges)
        rows = step.rows.mapped(lambda v: self.row(v, signal))
        return step.dual, rows, step.columns.mapped(lambda v: self.column(v, signal))

    def variances(self, layer: Nonlinear, signal: PixelKernels) -> Tensor:
        """Those of equal pixels of images with themselves, which is all that such a signal is."""
        self._read(layer, signal.k[..., 0])
        return signal.k

    def whole(self, signal: PixelKernels) -> tuple[Tensor, Tensor]:
        """The covariances of all pairs of pixels, (n, 1, p, p) and (1, m, p, p)."""
        p = signal.pixels
        if self.given:
            step = self._next()
            rows, columns = step.rows, step.columns
            assert isinstance(rows, Tensor) and isinstance(columns, Tensor)
        else:
            rows = columns = self._read(None, signal.k.reshape(p, -1, p).transpose(1, 2))
        rows, columns = rows.movedim(-1, 0), columns.movedim(-1, 0)
        return rows[:, None], columns[None] if self.given else columns[:, None]

    def row(self, v: Tensor, signal: PixelKernels) -> Tensor:
        """Numbers (*space, n) with the axes of a block."""
        return v.reshape(*v.shape, *(1,) * (signal.space + 1)) if signal.full else v[..., None]

    def column(self, v: Tensor, signal: PixelKernels) -> Tensor:
        """Numbers (*space, m) with the axes of a block; of images with themselves each stands by its own row."""
        if not signal.full:
            return v[..., None, :] if self.given else v[..., None]
        return v if self.given else v.movedim(-1, 0)[..., None]

    def drop(self, old: PixelKernels, *kept: PixelKernels) -> None:
        """Give back the memory of a signal that is not needed any more, but for what is in those that are kept."""
        held = {b.untyped_storage().data_ptr() for signal in kept for b in signal.blocks}
        self.scratch.release(
            *(b for b in old.blocks if b.is_contiguous() and b.untyped_storage().data_ptr() not in held)
        )

    def _next(self) -> Step:
        self.position += 1
        return self.steps[self.position - 1]

    def _read(self, layer: Nonlinear | None, own: Tensor) -> Tensor:
        own = own.clone()  # the block that it is read off is used again
        self.own.append((layer, own))
        return own
