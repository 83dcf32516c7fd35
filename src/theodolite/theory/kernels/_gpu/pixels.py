"""The maps of rectifiers and of convolutions on kernels of pairs of pixels, each in one pass over the memory.

A block is (pixels p, images n, pixels q, images m), without q where only equal pixels are kept. A program has one p, one n
and a part of (q, m), so that all it has to know of a row are scalars; programs of one image n run beside each other, and the
windows that they share stay in the cache.
"""

from __future__ import annotations

import functools
import math

import torch
import triton  # type: ignore[import-not-found,import-untyped,unused-ignore]
import triton.language as tl  # type: ignore[import-not-found,import-untyped,unused-ignore]
from torch import Tensor
from triton.language.extra import libdevice  # type: ignore[import-not-found,import-untyped,unused-ignore]

from theodolite.theory.kernels._image_signals import Gauges, PixelKernels, Sides
from theodolite.theory.kernels.image_layers import Convolution

BLOCK = 512
"""Pairs that a program works on at most."""


@triton.jit  # type: ignore[misc,untyped-decorator,unused-ignore]
def _rectify(  # type: ignore[no-untyped-def]  # Triton takes an annotation for a value that the program uses
    k,
    t,
    new_k,
    new_t,
    beyond,
    row_inverse,
    row_gain,
    column_inverse,
    column_gain,
    pixels,
    n,
    m,
    width,
    numbers,
    FULL: tl.constexpr,
    ITSELF: tl.constexpr,
    TANGENT: tl.constexpr,
    BLOCK: tl.constexpr,
):
    p, image = tl.program_id(0) % pixels, tl.program_id(0) // pixels
    row = p * n + image
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < width
    gauge = column if FULL else p * m + column
    inverse = tl.load(row_inverse + row) * tl.load(column_inverse + gauge, mask=inside, other=0.0)
    gain = tl.load(row_gain + row) * tl.load(column_gain + gauge, mask=inside, other=0.0)
    place = row.to(tl.int64) * width + column
    r = tl.load(k + place, mask=inside, other=0.0) * inverse
    same = column != column
    if ITSELF:  # a pixel with itself: its correlation is 1, whatever rounding made of it, or 0 if it is dark
        same = column == (p * m + image if FULL else image)
        r = tl.where(same, tl.where(inverse > 0.0, 1.0, 0.0), r)
    product, gap, limit = tl.load(numbers), tl.load(numbers + 1), tl.load(numbers + 2)
    lost = tl.where(same | (tl.abs(r) <= limit), 0, 1)
    worst = tl.max(lost, axis=0)
    if worst > 0:
        tl.atomic_max(beyond, worst)
    r = tl.minimum(tl.maximum(r, -1.0), 1.0)
    slope = product + gap * (0.5 - libdevice.acos(r) * 0.15915494309189535)
    e = (r * slope + gap * 0.15915494309189535 * tl.sqrt((1.0 - r) * (1.0 + r))) * gain
    tl.store(new_k + place, e, mask=inside)
    if TANGENT:
        tl.store(new_t + place, slope * tl.load(t + place, mask=inside, other=0.0), mask=inside)


def rectified(
    signal: PixelKernels, rows: Gauges, columns: Gauges, slopes: tuple[float, float], sides: Sides, *, limit: float
) -> tuple[Tensor, Tensor | None, Tensor]:
    """Both kernels behind a rectifier of these slopes, and 1 where some pair, no pixel with itself, is beyond the limit."""
    right, left = slopes
    k, t, p = signal.k, signal.t, signal.pixels
    n, m = k.shape[signal.space], k.shape[-1]
    width = m * (p if signal.full else 1)
    new_k = sides.scratch.like(k)
    new_t = None if t is None else sides.scratch.like(t)
    beyond = torch.zeros(1, dtype=torch.int32, device=k.device)
    block = min(BLOCK, triton.next_power_of_2(width))
    _rectify[(p * n, triton.cdiv(width, block))](
        k,
        k if t is None else t,
        new_k,
        new_k if new_t is None else new_t,
        beyond,
        *(v.contiguous() for v in (rows.inverse, _gain(rows), columns.inverse, _gain(columns))),
        p,
        n,
        m,
        width,
        _on(k.device, torch.float64, right * left, (right - left) ** 2, limit),
        FULL=signal.full,
        ITSELF=sides.itself,
        TANGENT=t is not None,
        BLOCK=block,
        num_warps=4,
    )
    return new_k, new_t, beyond


@functools.lru_cache(maxsize=256)
def _on(device: torch.device, kind: torch.dtype, *values: float) -> Tensor:
    """Numbers of a layer on the device: sent once, for sending waits for all that is under way."""
    return torch.tensor(values, dtype=kind, device=device)


def _gain(side: Gauges) -> Tensor:
    return torch.ones_like(side.inverse) if side.gain is None else side.gain


@triton.jit  # type: ignore[misc,untyped-decorator,unused-ignore]
def _window(  # type: ignore[no-untyped-def]
    k,
    t,
    new_k,
    new_t,
    sizes,
    numbers,
    n,
    m,
    HEIGHT: tl.constexpr,
    WIDTH: tl.constexpr,
    FULL: tl.constexpr,
    TANGENT: tl.constexpr,
    GIVEN: tl.constexpr,
    BLOCK: tl.constexpr,
):
    high, wide = tl.load(sizes), tl.load(sizes + 1)
    new_high, new_wide = tl.load(sizes + 2), tl.load(sizes + 3)
    down, along = tl.load(sizes + 4), tl.load(sizes + 5)
    above, before = tl.load(sizes + 6), tl.load(sizes + 7)
    apart_y, apart_x = tl.load(sizes + 8), tl.load(sizes + 9)
    new_pixels = new_high * new_wide
    p, image = tl.program_id(0) % new_pixels, tl.program_id(0) // new_pixels
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    width = m * high * wide if FULL else m
    new_width = m * new_pixels if FULL else m
    inside = column < new_width
    y, x = p // new_wide * down - above, p % new_wide * along - before
    q, other = column // m, column % m
    v, u = q // new_wide * down - above, q % new_wide * along - before
    sum_k = tl.zeros((BLOCK,), dtype=tl.float64)
    sum_t = tl.zeros((BLOCK,), dtype=tl.float64)
    for i in tl.static_range(HEIGHT):
        for j in tl.static_range(WIDTH):
            y_now, x_now = y + i * apart_y, x + j * apart_x
            seen = (y_now >= 0) & (y_now < high) & (x_now >= 0) & (x_now < wide)
            row = ((y_now * wide + x_now) * n + image).to(tl.int64) * width
            if FULL:
                v_now, u_now = v + i * apart_y, u + j * apart_x
                valid = inside & seen & (v_now >= 0) & (v_now < high) & (u_now >= 0) & (u_now < wide)
                place = row + (v_now * wide + u_now) * m + other
            else:
                valid = inside & seen
                place = row + column
            sum_k += tl.load(k + place, mask=valid, other=0.0)
            if GIVEN:
                sum_t += tl.load(t + place, mask=valid, other=0.0)
    target = (p * n + image).to(tl.int64) * new_width + column
    scale, bias = tl.load(numbers), tl.load(numbers + 1)
    tl.store(new_k + target, bias + scale * sum_k, mask=inside)
    if TANGENT:
        rate, bias_rate = tl.load(numbers + 2), tl.load(numbers + 3)
        tl.store(new_t + target, bias_rate + rate * sum_k + scale * sum_t, mask=inside)


def convolved(
    layer: Convolution, signal: PixelKernels, sides: Sides, *, tangent: bool
) -> tuple[Tensor, Tensor | None] | None:
    """Both kernels behind a convolution: sums over the same window of both images; None where it does not fit into them."""
    space, k, t = signal.space, signal.k, signal.t
    lead = (1,) * (2 - space)  # a sequence is an image one pixel high
    window, stride, dilation = (lead + facts for facts in (layer.window, layer.stride, layer.dilation))
    padding, size = (0,) * (2 - space) + layer.padding, lead + tuple(k.shape[:space])
    new = tuple(
        (length + 2 * around - apart * (count - 1) - 1) // step + 1
        for length, around, apart, count, step in zip(size, padding, dilation, window, stride, strict=True)
    )
    if min(new) < 1:
        return None
    n, m = k.shape[space], k.shape[-1]
    shape = (*new[2 - space :], n, *(new[2 - space :] if signal.full else ()), m)
    new_k = sides.scratch.like(k, torch.Size(shape))
    new_t = sides.scratch.like(k, torch.Size(shape)) if tangent else None
    terms, dense = math.prod(window), layer.dense
    numbers = dense.weight_variance / terms, dense.bias_variance, dense.rates[0] / terms, dense.rates[1]
    width = m * (math.prod(new) if signal.full else 1)
    block = min(BLOCK, triton.next_power_of_2(width))
    _window[(math.prod(new) * n, triton.cdiv(width, block))](
        k,
        k if t is None else t,
        new_k,
        new_k if new_t is None else new_t,
        _on(k.device, torch.int32, *size, *new, *stride, *padding, *dilation),
        _on(k.device, torch.float64, *numbers),
        n,
        m,
        HEIGHT=window[0],
        WIDTH=window[1],
        FULL=signal.full,
        TANGENT=tangent,
        GIVEN=tangent and t is not None,
        BLOCK=block,
        num_warps=4,
    )
    return new_k, new_t
