"""Kernels of convolutional networks of infinitely many channels, with and without average pooling."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from theodolite.core.checks import InputError, one_of
from theodolite.theory.kernels._image_signals import PixelKernels, Sides, Step, StepParts
from theodolite.theory.kernels._map_sequences import Nonlinear
from theodolite.theory.kernels._memory_blocks import Scratch
from theodolite.theory.kernels._pixel_maps import AlikeError, asks, mixes, through
from theodolite.theory.kernels._thread_sharing import in_order, one_core
from theodolite.theory.kernels._tiled_pairs import Kernels
from theodolite.theory.kernels.image_layers import ImageProgram

PAIRS_AT_ONCE = {"cpu": 1 << 17, "cuda": 1 << 25}
"""Pairs of pixels that are worked on at a time: a few such blocks fit a core's cache, or fill a device."""


@dataclass(frozen=True)
class ImageKernel:
    r"""The NTK or NNGP kernel of a convolutional network, as a function of images (n, channels, height, width) or (n, c, length).

    A network that flattens its image needs the covariances of each pixel with the same pixel of the other image; one that
    averages or attends needs those of all pairs of pixels, up to where it last does. ``channels_last`` takes images as
    (n, height, width, channels) and sequences as (n, length, channels). Work is counted in pairs of pixels; a block of them
    is held at a time, and on a CPU as many blocks as torch has threads. Computed in float64; where nothing is averaged and
    patches are nearly alike, from their distance, so that no digits are lost. Source: novak2019, section 3.1; arora2019,
    section 4; hron2020, sections 3 and 4.

    >>> from theodolite.theory.kernels.image_layers import Average, Convolution
    >>> from theodolite.theory.kernels._map_sequences import Dense
    >>> layers = (Convolution(Dense(2.0), (1, 1), (1, 1), (0, 0), (1, 1)), Average(), Dense(1.0))
    >>> ImageKernel(layers, kind="nngp")(torch.ones(1, 3, 2, 2)).item()
    2.0
    """

    program: ImageProgram
    kind: Literal["ntk", "nngp"] = "ntk"
    channels_last: bool = False

    def __post_init__(self) -> None:
        one_of(("ntk", "nngp"), kind=self.kind)

    def __call__(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        """The kernel of all pairs of images, as a matrix."""
        found = self._matrices(x, other, tangent=self.kind == "ntk")
        return found.ntk if self.kind == "ntk" else found.nngp

    def both(self, x: Tensor, other: Tensor | None = None) -> Kernels:
        """Both kernels at the price of the NTK."""
        return self._matrices(x, other, tangent=True)

    def diagonal(self, x: Tensor) -> Tensor:
        """The kernel of each image with itself."""
        images, tangent = self._images(x), self.kind == "ntk"
        step = _at_once(images, self.program)
        parts = [x.new_empty(0, dtype=_kind(x))]
        with one_core():
            for i in range(0, len(images), step):
                found = _read_out(self._with_itself(images[i : i + step], self.program, Sides(), tangent=tangent))
                parts.append((found.ntk if tangent else found.nngp)[:, 0].to(_kind(x)))
        return torch.cat(parts)

    def product(self, x: Tensor, vectors: Tensor) -> Tensor:
        """The kernel matrix of the images times vectors (n,) or (n, c); the matrix is never held."""
        v = vectors.to(torch.float64).reshape(len(x), -1)
        found = torch.zeros_like(v)
        for rows, columns, kernels in self._blocks(x, None, tangent=self.kind == "ntk"):
            block = kernels.ntk if self.kind == "ntk" else kernels.nngp
            found[rows] += block @ v[columns]
            if rows != columns:
                found[columns] += block.T @ v[rows]
        return found.reshape(vectors.shape).to(vectors)

    def _matrices(self, x: Tensor, other: Tensor | None, *, tangent: bool) -> Kernels:
        shape = len(x), len(x if other is None else other)
        found = Kernels(*(x.new_empty(size, dtype=_kind(x)) for size in (shape, shape if tangent else (0, 0))))
        for rows, columns, block in self._blocks(x, other, tangent=tangent):
            for target, source in ((found.nngp, block.nngp), (found.ntk, block.ntk))[: 1 + tangent]:
                target[rows, columns] = source.to(target)
                if other is None and rows != columns:
                    target[columns, rows] = source.T.to(target)
        return found

    def _blocks(self, x: Tensor, other: Tensor | None, *, tangent: bool) -> Iterator[tuple[slice, slice, Kernels]]:
        """Rows, columns and their block of the matrix; of one set of images those on and above the diagonal."""
        first = self._images(x)
        second = first if other is None else self._images(other)
        if second.shape[1:] != first.shape[1:]:
            shapes = [tuple(images.shape[1:]) for images in (first, second)]
            raise InputError(f"expected images of one shape, got {shapes[0]} and {shapes[1]}")
        if not len(first) or not len(second):
            return
        step = min(max(1, round(_at_once(first, self.program) ** 0.5)), -(-len(first) // 3))  # enough for several cores
        step = -(-len(first) // -(-len(first) // step))  # tiles of one size
        tiles = [
            (slice(i, min(i + step, len(first))), slice(j, min(j + step, len(second))))
            for i in range(0, len(first), step)
            for j in range(i if other is None else 0, len(second), step)
        ]
        with one_core() as cores:  # many small steps
            run = _Tiles(self.program, first, second, StepParts(self._steps(first, second), step), tangent)
            threads = 1 if first.is_cuda else min(cores, len(tiles))
            for (rows, columns), kernels in zip(tiles, in_order(run.kernels, tiles, threads), strict=True):
                yield rows, columns, kernels

    def _images(self, x: Tensor) -> Tensor:
        x = x.movedim(-1, 1) if self.channels_last and x.ndim in (3, 4) else x
        if x.ndim not in (3, 4):
            raise InputError(
                f"expected images (n, channels, height, width) or (n, channels, length), got shape {tuple(x.shape)}"
            )
        images = x.detach().to(torch.float64)
        if not bool(torch.isfinite(images).all()):
            raise InputError("expected finite images, got inf or nan among them; remove those")
        return images

    def _steps(self, first: Tensor, second: Tensor) -> tuple[Step, ...]:
        """What the images of both sides are with themselves before each step that asks."""
        rows = self._own(first)
        columns = rows if second is first else self._own(second)
        return tuple(
            Step(own, other) if layer is None else Step.of(layer, own, other)
            for (layer, own), (_, other) in zip(rows, columns, strict=True)
        )

    def _own(self, images: Tensor) -> list[tuple[Nonlinear | None, Tensor]]:
        """Every image with itself, as far as something asks: layers that do, and the variances of pixels before them."""
        program = self.program[: 1 + max((i for i, layer in enumerate(self.program) if asks((layer,))), default=-1)]
        step = _at_once(images, program)
        found: list[list[tuple[Nonlinear | None, Tensor]]] = []
        for i in range(0, len(images), step):
            sides = Sides()
            self._with_itself(images[i : i + step], program, sides, tangent=False)
            found.append(sides.own)
        return [(parts[0][0], torch.cat([own for _, own in parts], dim=-1)) for parts in zip(*found, strict=True)]

    def _with_itself(self, images: Tensor, program: ImageProgram, sides: Sides, *, tangent: bool) -> PixelKernels:
        """Every image with itself through a program, (*space, n, 1) or (*space, n, *space, 1)."""
        space, full = images.ndim - 2, mixes(program)
        x = images.movedim(0, -1)  # (c, *space, n)
        if full:
            other = images.movedim(0, 1)  # (c, n, *space)
            ones = (1,) * space
            k = (x.reshape(*x.shape, *ones) * other.reshape(len(x), *ones, *other.shape[1:])).mean(0)[..., None]
        else:
            k = x.square().mean(0)[..., None]
        return through(program, PixelKernels(k, None, None, space, full), sides, tangent)


@dataclass
class _Tiles:
    """The kernels of tiles of images (n, channels, *space), and what both sides are with themselves."""

    program: ImageProgram
    first: Tensor
    second: Tensor
    steps: StepParts
    tangent: bool
    tried: int = 0
    failed: int = 0
    local: threading.local = field(default_factory=threading.local)  # a thread's own blocks of memory

    def kernels(self, tile: tuple[slice, slice]) -> Kernels:
        """The kernels of one tile; by distances of patches too where some of them are nearly alike.

        Where no two patches are, both ways give the same numbers: which is tried first is only a matter of time.
        """
        if 2 * self.failed <= self.tried:
            self.tried += 1
            try:
                return self._run(tile, distances=False)
            except AlikeError:
                self.failed += 1
        return self._run(tile, distances=True)

    def _run(self, tile: tuple[slice, slice], *, distances: bool) -> Kernels:
        rows, columns = tile
        itself = self.second is self.first and rows == columns
        full, steps = mixes(self.program), self.steps.at(rows.start, columns.start)
        scratch = self._scratch()
        sides = Sides(steps, given=True, itself=itself, hasty=not (distances or full), scratch=scratch)
        x, y = (images.movedim(0, -1) for images in (self.first[rows], self.second[columns]))  # (c, *space, n)
        space, channels = x.ndim - 2, len(x)
        distance = None
        if full:
            k = scratch.like(x, torch.Size((*x.shape[1:], *y.shape[1:])))
            product = k.view(x[0].numel(), -1)
            torch.addmm(product, x.flatten(1).T, y.flatten(1), beta=0, alpha=1 / channels, out=product)
        else:
            k = scratch.like(x, torch.Size((*x.shape[1:], y.shape[-1])))
            product = k.view(-1, *k.shape[-2:])
            left, right = x.flatten(1, -2).permute(1, 2, 0).contiguous(), y.flatten(1, -2).movedim(0, 1).contiguous()
            torch.baddbmm(product, left, right, beta=0, alpha=1 / channels, out=product)
            if distances:
                distance = torch.zeros_like(k)
                for own, other in zip(x, y, strict=True):
                    gap = own[..., None] - other[..., None, :]
                    distance.addcmul_(gap, gap, value=1 / channels)
        signal = PixelKernels(k, None, distance, space, full)
        found = through(self.program, signal, sides, self.tangent)
        sides.drop(signal, found)
        if sides.alike and bool(torch.cat(sides.alike).any()):
            raise AlikeError
        return _read_out(found)

    def _scratch(self) -> Scratch:
        if not hasattr(self.local, "scratch"):
            self.local.scratch = Scratch()
        return self.local.scratch


def _read_out(signal: PixelKernels) -> Kernels:
    if signal.space:
        raise InputError("expected a network that ends in a Linear layer, got one whose output is an image")
    return Kernels(signal.k, torch.zeros_like(signal.k) if signal.t is None else signal.t)


def _at_once(images: Tensor, program: ImageProgram) -> int:
    """How many pairs of images are worked on at a time."""
    pixels = images.shape[2:].numel() ** (2 if mixes(program) else 1)
    return max(1, PAIRS_AT_ONCE["cuda" if images.is_cuda else "cpu"] // max(1, pixels))


def _kind(x: Tensor) -> torch.dtype:
    return x.dtype if x.dtype in (torch.float32, torch.float64) else torch.float32
