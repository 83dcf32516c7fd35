"""Kernels of convolutional networks of infinitely many channels, with and without average pooling."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import pad

from theodolite.theory.kernels._blocks import Scratch
from theodolite.theory.kernels._cores import one_core
from theodolite.theory.kernels._duals.maps import Pairs
from theodolite.theory.kernels._programs import Dense, Nonlinear, Normalised, Sum, behind, dual_of, has_closed_form
from theodolite.theory.kernels._signals import PixelKernels, Sides
from theodolite.theory.kernels._tiles import NEAR
from theodolite.theory.kernels._tiling import Kernels
from theodolite.theory.kernels._token_maps import attended, normalised, weighted
from theodolite.theory.kernels.image_layers import Attention, Average, Convolution, Flatten, ImageProgram

PAIRS_AT_ONCE = 1 << 17
"""Pairs of pixels that are worked on at a time: a few such blocks fit a core's cache."""


@dataclass(frozen=True)
class ImageKernel:
    r"""The NTK or NNGP kernel of a convolutional network, as a function of images (n, channels, height, width) or (n, c, length).

    A network that flattens its image needs the covariances of each pixel with the same pixel of the other image; one that
    averages or attends needs those of all pairs of pixels, up to where it last does. ``channels_last`` takes images as
    (n, height, width, channels) and sequences as (n, length, channels). Work is counted in pairs of pixels, and a block of
    them is held at a time. Computed in float64; where nothing is averaged, from the distance of patches, so that images
    which are nearly alike lose no digits. Source: novak2019, section 3.1; arora2019,
    section 4; hron2020, sections 3 and 4.

    >>> layers = (Convolution(Dense(2.0), (1, 1), (1, 1), (0, 0), (1, 1)), Average(), Dense(1.0))
    >>> ImageKernel(layers, kind="nngp")(torch.ones(1, 3, 2, 2)).item()
    2.0
    """

    program: ImageProgram
    kind: Literal["ntk", "nngp"] = "ntk"
    channels_last: bool = False

    def __post_init__(self) -> None:
        if self.kind not in ("ntk", "nngp"):
            raise ValueError(f"expected kind 'ntk' or 'nngp', got {self.kind!r}")

    def __call__(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        """The kernel of all pairs of images, as a matrix."""
        found = self._matrices(x, other, tangent=self.kind == "ntk")
        return found.ntk if self.kind == "ntk" else found.nngp

    def both(self, x: Tensor, other: Tensor | None = None) -> Kernels:
        """Both kernels at the price of the NTK."""
        return self._matrices(x, other, tangent=True)

    def diagonal(self, x: Tensor) -> Tensor:
        """The kernel of each image with itself."""
        found = self._with_itself(self._images(x), tangent=self.kind == "ntk")[1]
        return (found.ntk if self.kind == "ntk" else found.nngp).to(_kind(x))

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
            raise ValueError(f"expected images of one shape, got {shapes[0]} and {shapes[1]}")
        rows_all = self._with_itself(first, tangent=False)[0]
        columns_all = rows_all if other is None else self._with_itself(second, tangent=False)[0]
        step = max(1, int((PAIRS_AT_ONCE / self._pixels(first)) ** 0.5))
        for i in range(0, len(first), step):
            for j in range(i if other is None else 0, len(second), step):
                rows, columns = slice(i, min(i + step, len(first))), slice(j, min(j + step, len(second)))
                sides = Sides([v[rows] for v in rows_all], [v[columns] for v in columns_all], given=True)
                yield rows, columns, self._run(first[rows, None], second[None, columns], sides, tangent=tangent)

    def _images(self, x: Tensor) -> Tensor:
        x = x.movedim(-1, 1) if self.channels_last and x.ndim in (3, 4) else x
        if x.ndim not in (3, 4):
            raise ValueError(
                f"expected images (n, channels, height, width) or (n, channels, length), got shape {tuple(x.shape)}"
            )
        images = x.detach().to(torch.float64)
        if not bool(torch.isfinite(images).all()):
            raise ValueError("expected finite images, got inf or nan among them; remove those")
        return images

    def _pixels(self, images: Tensor) -> int:
        return int(images[0, 0].numel() ** (2 if _mixes(self.program) else 1)) if len(images) else 1

    def _with_itself(self, images: Tensor, *, tangent: bool) -> tuple[list[Tensor], Kernels]:
        """Every image with itself: the variances of pixels before each nonlinearity, and the kernels."""
        step = max(1, PAIRS_AT_ONCE // self._pixels(images))
        variances: list[list[Tensor]] = []
        found: list[Kernels] = []
        for i in range(0, max(len(images), 1), step):
            block, sides = images[i : i + step, None], Sides()
            found.append(self._run(block, block, sides, tangent=tangent))
            variances.append(sides.rows)
        kernels = Kernels(*(torch.cat([getattr(f, kind)[:, 0] for f in found]) for kind in ("nngp", "ntk")))
        return [torch.cat(parts) for parts in zip(*variances, strict=True)], kernels

    def _run(self, x: Tensor, y: Tensor, sides: Sides, *, tangent: bool) -> Kernels:
        """The kernels of images x (n, 1, c, ...) with y (1, m, c, ...) or with themselves."""
        space, full = x.ndim - 3, _mixes(self.program)
        if full:
            ones = (1,) * space
            x, y = x.reshape(*x.shape, *ones), y.reshape(*y.shape[:3], *ones, *y.shape[3:])
        k, distance = (x * y).mean(2), None if full else (x - y).square().mean(2)
        with one_core():  # many small steps
            signal = _through(self.program, PixelKernels(k, None, distance, space, full), sides, tangent, False)
        if signal.space:
            raise ValueError("expected a network that ends in a Linear layer, got one whose output is an image")
        return Kernels(signal.k, torch.zeros_like(signal.k) if signal.t is None else signal.t)


def _through(
    program: ImageProgram, signal: PixelKernels, sides: Sides, tangent: bool, averaged_later: bool
) -> PixelKernels:
    for position, layer in enumerate(program):
        if signal.full and not averaged_later and not _mixes(program[position:]):
            signal = signal.of_equal_pixels()
        if isinstance(layer, Sum):
            later = averaged_later or _mixes(program[position + 1 :])
            signal = _added(*(_through(p, signal, sides, tangent, later) for p in (layer.branch, layer.skip)))
        elif isinstance(layer, Average):
            signal = _averaged(layer, signal)
        elif isinstance(layer, Nonlinear):
            signal = _nonlinear(layer, signal, sides)
        elif isinstance(layer, Convolution):
            signal = weighted(layer.dense, signal.mapped(partial(_convolved, layer=layer, signal=signal)), tangent)
        elif isinstance(layer, Flatten):
            signal = replace(signal, flat=True)
        elif isinstance(layer, Normalised):
            signal = normalised(layer, signal, sides)
        elif isinstance(layer, Attention):
            signal = attended(layer, signal, sides, tangent)
        else:
            axes = tuple(range(2, 2 + signal.space))
            if axes and not signal.flat:
                raise ValueError("expected images to be flattened or averaged before a Linear layer, got none of both")
            flat = replace(signal.mapped(partial(torch.mean, dim=axes)), space=0) if axes else signal
            signal = weighted(layer, flat, tangent)
    return signal


def _nonlinear(layer: Nonlinear, signal: PixelKernels, sides: Sides) -> PixelKernels:
    """Pairs that are far from parallel all at once; the others, where that loses digits, from their distance."""
    k, (a, b) = signal.k, sides.at(signal)
    low, high = float(min(a.min(), b.min())), float(max(a.max(), b.max()))
    dual = dual_of(layer.activation, low, high)
    new_a, new_b = dual.moment(a), dual.moment(b)
    inverse = [torch.where(q > 0, 1 / dual.scale(q), 0.0) for q in (a, b)]
    r = k * inverse[0] * inverse[1]
    if has_closed_form(layer.activation):
        near = ~(r.abs() <= 1 - NEAR[torch.float64]) if dual.sharp else torch.zeros_like(r, dtype=torch.bool)
        scratch = Scratch()
        e, d = dual.block(r, a, b, scratch)
        e = e * dual.gain(a) * dual.gain(b)
        d = d * dual.slope_gain(a) * dual.slope_gain(b)
        d = d.expand(k.shape).contiguous() if bool(near.any()) else d
    else:
        near, e, d = torch.ones_like(k, dtype=torch.bool), torch.empty_like(k), torch.empty_like(k)
    distance = new_a + new_b - 2 * e
    if bool(near.any()):
        at = _pairs(signal, a.expand(k.shape)[near], b.expand(k.shape)[near], near)
        e[near], d[near] = dual.pairs(at)
        new = behind(dual, at, e[near])
        distance[near] = (new.a.sqrt() - new.b.sqrt()) ** 2 + 2 * new.size * new.less
    t = None if signal.t is None else torch.where(signal.t == 0, 0.0, d * signal.t)
    # of other pairs one pixel may meet the image's edge where the other does not, and distances do not add up
    return replace(signal, k=e, t=t, distance=None if signal.full else distance)


def _pairs(signal: PixelKernels, a: Tensor, b: Tensor, which: Tensor) -> Pairs:
    distance = a + b - 2 * signal.k[which] if signal.distance is None else signal.distance[which]
    size = a.sqrt() * b.sqrt()
    less = (distance - (a.sqrt() - b.sqrt()) ** 2) / (2 * torch.where(size > 0, size, 1.0))
    less = torch.where(size > 0, less, 1.0).clamp(0.0, 2.0)
    return Pairs(a, b, less, 2 - less)


def _convolved(block: Tensor, layer: Convolution, signal: PixelKernels) -> Tensor:
    """The mean over the window, the same shift in both images; axis by axis, for the window is a product."""
    padding = layer.padding * (2 if signal.full else 1)
    around = [p for size in reversed(padding) for p in (size, size)]
    padded = _wrapped(block, padding) if layer.circular else pad(block, around)
    for axis, (window, step, dilation) in enumerate(zip(layer.window, layer.stride, layer.dilation, strict=True)):
        count = (padded.shape[2 + axis] - dilation * (window - 1) - 1) // step + 1
        if count < 1:
            size = tuple(block.shape[2 : 2 + signal.space])
            raise ValueError(f"expected images of at least the window {layer.window}, got {size}")
        total: Tensor | None = None
        for start in range(0, window * dilation, dilation):
            at = [slice(None)] * padded.ndim
            for own in (2 + axis, 2 + axis + signal.space) if signal.full else (2 + axis,):
                at[own] = slice(start, start + step * (count - 1) + 1, step)
            total = padded[tuple(at)].clone() if total is None else total.add_(padded[tuple(at)])
        assert total is not None
        padded = total
    return padded.div_(math.prod(layer.window))


def _wrapped(block: Tensor, padding: tuple[int, ...]) -> Tensor:
    """Images that go on at their other side, so far on each of their axes."""
    for axis, size in enumerate(padding, start=2):
        length = block.shape[axis]
        if size > length:
            raise ValueError(f"expected circular padding of at most the image's {length} pixels, got {size}; pad less")
        block = block.index_select(axis, torch.arange(-size, length + size, device=block.device) % length)
    return block


def _averaged(layer: Average, signal: PixelKernels) -> PixelKernels:
    """Both images averaged, each by its own shifts."""
    if not signal.space:
        raise ValueError("expected an average over an image, got one behind a Linear layer; average before it")
    if not layer.window:
        axes = tuple(range(2, 2 + 2 * signal.space))
        return replace(signal.mapped(lambda b: b.mean(axes)), space=0, full=False)
    plain = Convolution(Dense(1.0), layer.window, layer.stride, layer.padding, (1,) * signal.space)
    shape = signal.k.shape

    def change(block: Tensor) -> Tensor:
        # one image after the other: the axes of the one that rests are counted as pairs of images
        inner = block.reshape(-1, 1, *shape[2 + signal.space :])
        inner = _convolved(inner, plain, replace(signal, full=False))
        small = inner.shape[2:]
        turned = inner.reshape(*shape[: 2 + signal.space], -1).movedim(-1, 2)
        outer = _convolved(turned.reshape(-1, 1, *shape[2 : 2 + signal.space]), plain, replace(signal, full=False))
        outer = outer.reshape(*shape[:2], math.prod(small), *small).movedim(2, -1)
        return outer.reshape(*shape[:2], *small, *small)

    return signal.mapped(change)


def _added(first: PixelKernels, second: PixelKernels) -> PixelKernels:
    if first.full != second.full:  # one branch still holds all pairs of pixels, which nobody will ask for
        first, second = first.of_equal_pixels(), second.of_equal_pixels()
    if first.k.shape != second.k.shape:
        raise ValueError(
            f"expected branches of one size, got images of {tuple(first.k.shape[2:])} and {tuple(second.k.shape[2:])}"
        )
    t = second.t if first.t is None else first.t if second.t is None else first.t + second.t
    both = None if first.distance is None or second.distance is None else first.distance + second.distance
    return replace(first, k=first.k + second.k, t=t, distance=both)


def _mixes(program: ImageProgram) -> bool:
    """Whether pixels are averaged or attend to each other: then all pairs of them are needed up to there."""
    return any(
        isinstance(p, Average | Attention) or (isinstance(p, Sum) and (_mixes(p.branch) or _mixes(p.skip)))
        for p in program
    )


def _kind(x: Tensor) -> torch.dtype:
    return x.dtype if x.dtype in (torch.float32, torch.float64) else torch.float32
