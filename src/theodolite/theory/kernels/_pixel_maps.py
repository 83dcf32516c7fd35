"""The maps of convolutions, nonlinearities and averages on the kernels of pairs of images."""

import math
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from theodolite.core.checks import InputError
from theodolite.theory.kernels._duals.maps import Dual, Pairs
from theodolite.theory.kernels._gpu import attempt
from theodolite.theory.kernels._image_signals import Gauges, PixelKernels, Sides
from theodolite.theory.kernels._map_sequences import Dense, Nonlinear, Normalized, Sum, behind, dual_of, has_closed_form
from theodolite.theory.kernels._memory_blocks import Scratch
from theodolite.theory.kernels._token_maps import attended, normalized, weighted
from theodolite.theory.kernels.image_layers import Attention, Average, Convolution, Flatten, ImageProgram

NEAR = 1e-6
"""1 - |c| below which a pair is computed from its distance; just above, an angle has lost three digits."""


class AlikeError(Exception):
    """Patches of different images are nearly alike: their kernels lose digits unless distances are carried too."""


def through(
    program: ImageProgram, signal: PixelKernels, sides: Sides, tangent: bool, averaged_later: bool = False
) -> PixelKernels:
    """Send the kernels of pairs of images through the layers; the signal that is given stays as it is."""
    given = signal
    for position, layer in enumerate(program):
        before = signal
        if signal.full and not averaged_later and not mixes(program[position:]):
            signal = signal.of_equal_pixels()
        if isinstance(layer, Sum):
            later = averaged_later or mixes(program[position + 1 :])
            parts = [through(p, signal, sides, tangent, later) for p in (layer.branch, layer.skip)]
            signal = _added(parts[0], parts[1])
            for part in parts:
                sides.drop(part, signal, before)
        else:
            signal = _behind(layer, signal, sides, tangent)
        if before is not given:
            sides.drop(before, signal, given)
    return signal


def _behind(
    layer: Convolution | Average | Attention | Flatten | Dense | Nonlinear | Normalized,
    signal: PixelKernels,
    sides: Sides,
    tangent: bool,
) -> PixelKernels:
    if isinstance(layer, Average):
        return _averaged(layer, signal)
    if isinstance(layer, Nonlinear):
        return _nonlinear(layer, signal, sides)
    if isinstance(layer, Flatten):
        return replace(signal, flat=True)
    if isinstance(layer, Normalized):
        return normalized(layer, signal, sides)
    if isinstance(layer, Attention):
        return attended(layer, signal, sides, tangent)
    if isinstance(layer, Convolution) and (found := _convolved_on_gpu(layer, signal, sides, tangent)) is not None:
        return found
    if isinstance(layer, Convolution):
        dense, terms = layer.dense, math.prod(layer.window)
        sums = signal.mapped(partial(_window_sums, layer=layer, signal=signal, scratch=sides.scratch))
    else:
        dense, terms, axes = layer, signal.pixels, tuple(range(signal.space))
        if axes and not signal.flat:
            raise InputError("expected images to be flattened or averaged before a Linear layer, got none of both")
        sums = replace(signal.mapped(partial(torch.sum, dim=axes)), space=0) if axes else signal
    new = weighted(dense, sums, sides, tangent, terms=terms)
    sides.drop(sums, signal, new)
    return new


def mixes(program: ImageProgram) -> bool:
    """Whether pixels are averaged or attend to each other: then all pairs of them are needed up to there."""
    return any(
        isinstance(p, Average | Attention) or (isinstance(p, Sum) and (mixes(p.branch) or mixes(p.skip)))
        for p in program
    )


def asks(program: ImageProgram) -> bool:
    """Whether some layer has to know what images are with themselves."""
    return any(
        isinstance(p, Nonlinear | Normalized)
        or (isinstance(p, Attention) and p.key is None)
        or (isinstance(p, Sum) and (asks(p.branch) or asks(p.skip)))
        for p in program
    )


def _nonlinear(layer: Nonlinear, signal: PixelKernels, sides: Sides) -> PixelKernels:
    """Pairs that are far from parallel all at once; the others, where that loses digits, from their distance."""
    if not (sides.given or signal.full):
        return _of_variances(layer, signal, sides)
    dual, rows, columns = sides.gauged(layer, signal)
    if dual.sharp and dual.slopes is not None and sides.given and fits(signal):
        found = _rectified_on_gpu(dual.slopes, signal, rows, columns, sides)
        if found is not None:
            return found
    r = torch.mul(signal.k, rows.inverse, out=sides.scratch.like(signal.k)).mul_(columns.inverse)
    near = _near(r, dual, rows, columns, signal, sides)
    is_matrix = sides.given and (signal.full or not signal.space)
    closed = has_closed_form(layer.activation)
    if closed or is_matrix:
        e, d = _block(dual, r, rows, columns, sides, flat=not closed)
    else:
        e, d = (part.reshape(r.shape) for part in dual.pairs(_pairs(signal, rows, columns, None)))
    distance = None if signal.distance is None else (rows.moment + columns.moment).sub_(e, alpha=2)
    if near is not None:
        at = _pairs(signal, rows, columns, near)
        d = torch.as_tensor(d, dtype=e.dtype, device=e.device).expand(e.shape).contiguous()
        e[near], d[near] = dual.pairs(at)
        if distance is not None:
            new = behind(dual, at, e[near])
            distance[near] = (new.a.sqrt() - new.b.sqrt()) ** 2 + 2 * new.size * new.less
    return replace(signal, k=e, t=_times(d, signal.t, dual, sides.scratch), distance=distance)


def _rectified_on_gpu(
    slopes: tuple[float, float], signal: PixelKernels, rows: Gauges, columns: Gauges, sides: Sides
) -> PixelKernels | None:
    """Both kernels behind a rectifier by one program; None where there is none, or pairs are to be told apart by distances."""

    def work() -> tuple[Tensor, Tensor | None, Tensor]:
        from theodolite.theory.kernels._gpu.pixels import rectified

        return rectified(signal, rows, columns, slopes, sides, limit=1 - NEAR)

    found = attempt(work, signal.k)
    if found is None:
        return None
    if sides.hasty:
        sides.alike.append(found[2])
    elif not signal.full and bool(found[2]):
        return None
    return replace(signal, k=found[0], t=found[1])


def _convolved_on_gpu(layer: Convolution, signal: PixelKernels, sides: Sides, tangent: bool) -> PixelKernels | None:
    """Both kernels behind a convolution by one program; None where there is none."""

    def work() -> tuple[Tensor, Tensor | None] | None:
        from theodolite.theory.kernels._gpu.pixels import convolved

        return convolved(layer, signal, sides, tangent=tangent)

    if layer.circular or signal.space > 2 or not sides.given or not fits(signal):
        return None
    found = attempt(work, signal.k)
    return None if found is None else replace(signal, k=found[0], t=found[1])


def fits(signal: PixelKernels) -> bool:
    """Whether programs of a GPU know such a signal: no distances, every block in one piece."""
    return signal.distance is None and all(block.is_contiguous() for block in signal.blocks)


def _of_variances(layer: Nonlinear, signal: PixelKernels, sides: Sides) -> PixelKernels:
    """Of images with themselves, equal pixels: nothing but moments."""
    q = sides.variances(layer, signal)
    dual = dual_of(layer.activation, float(q.min()), float(q.max()))
    return replace(signal, k=dual.moment(q), t=_times(dual.slope_moment(q), signal.t, dual, sides.scratch))


def _times(d: Tensor | float, t: Tensor | None, dual: Dual, scratch: Scratch) -> Tensor | None:
    """Their product, which overwrites d; without slopes of a tangent kernel that is 0, be they infinite."""
    if t is None:
        scratch.release(d)
        return None
    if dual.jumps or not isinstance(d, Tensor):
        return torch.where(t == 0, 0.0, d * t)
    return d.mul_(t)


def _block(
    dual: Dual, r: Tensor, rows: Gauges, columns: Gauges, sides: Sides, *, flat: bool
) -> tuple[Tensor, Tensor | float]:
    """Both expectations of a whole block of correlations, which is overwritten; ``flat``: as a matrix, which it must be."""
    shape, a, b = r.shape, rows.variance, columns.variance
    if flat:
        r, a, b = r.reshape(a.numel(), b.numel()), a.reshape(-1, 1), b.reshape(1, -1)
    e, d = dual.block(r, a, b, sides.scratch)
    e = e.reshape(shape)
    d = d.reshape(shape) if isinstance(d, Tensor) else d
    for side in (rows, columns):
        if side.gain is not None:
            e.mul_(side.gain)
        if side.slope_gain is not None:
            d = d.mul_(side.slope_gain) if isinstance(d, Tensor) else d * side.slope_gain
    return e, d


def _near(r: Tensor, dual: Dual, rows: Gauges, columns: Gauges, signal: PixelKernels, sides: Sides) -> Tensor | None:
    """The pairs that are to be computed from their distance; correlations of a pixel with itself are put right.

    Of all pairs of pixels one may meet the image's edge where the other does not: their distances do not add up, and
    rounding beyond 1 is all that is undone.
    """
    limit = 1 - NEAR
    if signal.distance is not None:
        alike = signal.distance < NEAR * (rows.variance + columns.variance)
        return alike | ~(r.abs() <= limit) if dual.sharp else alike
    if not dual.sharp:
        return None
    correlation = dual.scale is torch.sqrt  # r is the correlation itself, else it stays below 1
    same = _same_pixels(r, signal, sides) if correlation else None
    if same is not None:
        same.zero_()
    low, high = (float(v) for v in torch.aminmax(r)) if r.numel() else (0.0, 0.0)
    beyond = not (low >= -limit and high <= limit)
    if same is not None:
        same.copy_((rows.variance > 0).reshape(same.shape))
    if not beyond:
        return None
    if sides.hasty:
        raise AlikeError
    if signal.full and correlation:
        r.clamp_(-1.0, 1.0)
        return None
    return ~(r.abs() <= limit)


def _same_pixels(r: Tensor, signal: PixelKernels, sides: Sides) -> Tensor | None:
    """The correlations of pixels with themselves, where rows and columns are the same images: a view."""
    if not (sides.itself or not sides.given):
        return None
    if not signal.full:
        return r.diagonal(dim1=-2, dim2=-1)
    n, m, p = r.shape[signal.space], r.shape[-1], signal.pixels
    equal = r.view(p, n, p, m).diagonal(dim1=0, dim2=2)  # (n, m, p)
    return equal.diagonal(dim1=0, dim2=1) if sides.given else equal[:, 0].T


def _pairs(signal: PixelKernels, rows: Gauges, columns: Gauges, which: Tensor | None) -> Pairs:
    """Some of the pairs, or all in one row."""

    def chosen(block: Tensor) -> Tensor:
        block = block.expand(signal.k.shape)
        return block.reshape(-1) if which is None else block[which]

    a, b = chosen(rows.variance), chosen(columns.variance)
    distance = a + b - 2 * chosen(signal.k) if signal.distance is None else chosen(signal.distance)
    size = a.sqrt() * b.sqrt()
    less = (distance - (a.sqrt() - b.sqrt()) ** 2) / (2 * torch.where(size > 0, size, 1.0))
    less = torch.where(size > 0, less, 1.0).clamp(0.0, 2.0)
    return Pairs(a, b, less, 2 - less)


def _window_sums(block: Tensor, layer: Convolution, signal: PixelKernels, scratch: Scratch) -> Tensor:
    """The sum over the window, the same shift in both images; axis by axis, for the window is a product."""
    groups = [(i, i + signal.space + 1) if signal.full else (i,) for i in range(signal.space)]
    if layer.circular:
        for axes, around in zip(groups, layer.padding, strict=True):
            for axis in axes:
                block = _wrapped(block, axis, around)
    padding = (0,) * signal.space if layer.circular else layer.padding
    start = block
    for axes, *facts in zip(groups, layer.window, layer.stride, padding, layer.dilation, strict=True):
        if (found := _shifted_sums(block, axes, *facts, scratch=scratch)) is None:
            size = tuple(signal.k.shape[: signal.space])
            raise InputError(f"expected images of at least the window {layer.window}, got {size}")
        if found is not block is not start:
            scratch.release(block)
        block = found
    return block


def _shifted_sums(
    block: Tensor, axes: tuple[int, ...], window: int, stride: int, padding: int, dilation: int, *, scratch: Scratch
) -> Tensor | None:
    """Sums over shifts of all these axes together, zeros beyond the edge; None where the window does not fit."""
    length = block.shape[axes[0]]
    count = (length + 2 * padding - dilation * (window - 1) - 1) // stride + 1
    if count < 1:
        return None
    if window == stride == 1 and not padding:
        return block
    parts = []
    for shift in range(-padding, window * dilation - padding, dilation):
        first, last = max(0, -(shift // stride)), min(count - 1, (length - 1 - shift) // stride)
        if first <= last:
            start = first * stride + shift
            parts.append(((first, last), slice(start, last * stride + shift + 1, stride)))
    parts.sort(key=lambda part: part[0][0] - part[0][1])  # the one that covers most first
    total = scratch.like(block, torch.Size(count if i in axes else size for i, size in enumerate(block.shape)))
    (first, last), source = parts[0]
    if last - first + 1 == count:
        total.copy_(_cut(block, axes, source))
        del parts[0]
    else:
        total.zero_()
    for (first, last), source in parts:
        _cut(total, axes, slice(first, last + 1)).add_(_cut(block, axes, source))
    return total


def _cut(block: Tensor, axes: tuple[int, ...], part: slice) -> Tensor:
    return block[tuple(part if i in axes else slice(None) for i in range(max(axes) + 1))]


def _wrapped(block: Tensor, axis: int, size: int) -> Tensor:
    """An axis that goes on at its other side, so far."""
    length = block.shape[axis]
    if size > length:
        raise InputError(f"expected circular padding of at most the image's {length} pixels, got {size}; pad less")
    return block.index_select(axis, torch.arange(-size, length + size, device=block.device) % length)


def _averaged(layer: Average, signal: PixelKernels) -> PixelKernels:
    """Both images averaged, each by its own shifts."""
    if not signal.space:
        raise InputError("expected an average over an image, got one behind a Linear layer; average before it")
    others = range(signal.space + 1, 2 * signal.space + 1)
    if not layer.window:
        mean = partial(torch.mean, dim=(*range(signal.space), *others))
        return replace(signal.mapped(mean), space=0, full=False)

    def change(block: Tensor) -> Tensor:
        for start in (0, signal.space + 1):
            for i, facts in enumerate(zip(layer.window, layer.stride, layer.padding, strict=True), start=start):
                if (found := _shifted_sums(block, (i,), *facts, 1, scratch=Scratch())) is None:
                    size = tuple(signal.k.shape[: signal.space])
                    raise InputError(f"expected images of at least the window {layer.window}, got {size}")
                block = found
        return block / math.prod(layer.window) ** 2

    return signal.mapped(change)


def _added(first: PixelKernels, second: PixelKernels) -> PixelKernels:
    if first.full != second.full:  # one branch still holds all pairs of pixels, which nobody will ask for
        first, second = first.of_equal_pixels(), second.of_equal_pixels()
    if first.k.shape != second.k.shape:
        sizes = [tuple(part.k.shape[: part.space]) for part in (first, second)]
        raise InputError(f"expected branches of one size, got images of {sizes[0]} and {sizes[1]}")
    t = second.t if first.t is None else first.t if second.t is None else first.t + second.t
    both = None if first.distance is None or second.distance is None else first.distance + second.distance
    return replace(first, k=first.k + second.k, t=t, distance=both)
