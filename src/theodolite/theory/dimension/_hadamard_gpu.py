"""The Hadamard transform on a GPU: a contiguous pass of up to 12 levels, then strided passes of up to 7 levels each.

A tile of a few thousand numbers is one or two products with a small matrix of ±1, which bfloat16 holds exactly; the
numbers are split into three bfloat16 parts (8 bits each, 24 together), so that nothing of float32 is lost. Each pass
reads and writes every number once. Imported only where Triton is installed.
"""

from __future__ import annotations

import functools

import torch
import triton  # type: ignore[import-not-found,import-untyped,unused-ignore]
import triton.language as tl  # type: ignore[import-not-found,import-untyped,unused-ignore]
from torch import Tensor

from theodolite.theory.dimension.hadamard import hadamard_matrix

NEAR = 12  # levels of the contiguous pass: a tile of 64 x 64
FAR = 7  # levels of a strided pass: 128 rows
LEAST = 4  # a tensor-core product takes at least 16 rows
TILE = 1 << NEAR
TILES = 8  # tiles that one program transforms one after the other, with the matrices loaded once
WARPS = 4


def transform_(x: Tensor, scale: float) -> None:
    """Each row of a contiguous float32 matrix (rows, 2^levels), in place."""
    levels = x.shape[1].bit_length() - 1
    with torch.cuda.device(x.device):
        if levels < 2 * LEAST:  # one product; in float64, which no setting rounds
            x.copy_((x.double() @ hadamard_matrix(x.shape[1], device=x.device)) * scale)
            return
        near, far = passes(levels)
        for part in (near, *far):  # compiled before anything is overwritten
            _ready(part, part == near, x.device)
        _near_pass(x, near, scale)
        inner = 1 << near
        for part in far:
            _far_pass(x, part, inner)
            inner <<= part


def passes(levels: int) -> tuple[int, list[int]]:
    """How the levels are shared: the contiguous pass, then the strided ones, each of 4 to 7."""
    if levels <= NEAR:
        return levels, []
    rest = max(levels - NEAR, LEAST)
    count = -(-rest // FAR)
    return levels - rest, [rest // count + (place < rest % count) for place in range(count)]


@triton.jit  # type: ignore[misc,untyped-decorator,unused-ignore]
def _right(v, h):  # type: ignore[no-untyped-def]
    """The product v h, h of ±1 in bfloat16, the smallest parts of v first."""
    top = v.to(tl.bfloat16)
    rest = v - top.to(tl.float32)
    middle = rest.to(tl.bfloat16)
    low = (rest - middle.to(tl.float32)).to(tl.bfloat16)
    y = tl.dot(low, h)
    y = tl.dot(middle, h, y)
    return tl.dot(top, h, y)


@triton.jit  # type: ignore[misc,untyped-decorator,unused-ignore]
def _left(h, v):  # type: ignore[no-untyped-def]
    """The product h v."""
    top = v.to(tl.bfloat16)
    rest = v - top.to(tl.float32)
    middle = rest.to(tl.bfloat16)
    low = (rest - middle.to(tl.float32)).to(tl.bfloat16)
    y = tl.dot(h, low)
    y = tl.dot(h, middle, y)
    return tl.dot(h, top, y)


@triton.jit  # type: ignore[misc,untyped-decorator,unused-ignore]
def _near(x, left, right, scale, A: tl.constexpr, B: tl.constexpr, TILES: tl.constexpr):  # type: ignore[no-untyped-def]
    """Contiguous tiles of A x B numbers: H_A X H_B."""
    rows, columns = tl.arange(0, A), tl.arange(0, B)
    h_left = tl.load(left + rows[:, None] * A + rows[None, :])
    h_right = tl.load(right + columns[:, None] * B + columns[None, :])
    at = x + tl.program_id(0).to(tl.int64) * (TILES * A * B) + rows[:, None] * B + columns[None, :]
    for _ in range(TILES):
        v = _left(h_left, _right(tl.load(at), h_right))
        tl.store(at, v * scale)
        at += A * B


@triton.jit  # type: ignore[misc,untyped-decorator,unused-ignore]
def _far(x, matrix, inner, ROWS: tl.constexpr, WIDTH: tl.constexpr, TILES: tl.constexpr):  # type: ignore[no-untyped-def]
    """Axis 1 of (outer, ROWS, inner): strips of WIDTH columns, H X."""
    rows, columns = tl.arange(0, ROWS), tl.arange(0, WIDTH)
    h = tl.load(matrix + rows[:, None] * ROWS + rows[None, :])
    strips = inner // (WIDTH * TILES)  # programs for one group of rows
    place = tl.program_id(0)
    group, strip = (place // strips).to(tl.int64), place % strips
    at = x + group * ROWS * inner + rows.to(tl.int64)[:, None] * inner + strip * (WIDTH * TILES) + columns[None, :]
    for _ in range(TILES):
        tl.store(at, _left(h, tl.load(at)))
        at += WIDTH


def _near_pass(x: Tensor, levels: int, scale: float) -> None:
    a, b = 1 << (levels + 1) // 2, 1 << levels // 2
    count = x.numel() // (a * b)
    tiles = _dividing(count)
    matrices = _matrix(a, x.device), _matrix(b, x.device)
    _near[(count // tiles,)](x, *matrices, scale, A=a, B=b, TILES=tiles, num_warps=_warps(a * b))


def _far_pass(x: Tensor, levels: int, inner: int) -> None:
    rows = 1 << levels
    width = min(TILE // rows, inner, 256)
    tiles = _dividing(inner // width)
    programs = x.numel() // (rows * width * tiles)
    _far[(programs,)](
        x, _matrix(rows, x.device), inner, ROWS=rows, WIDTH=width, TILES=tiles, num_warps=_warps(rows * width)
    )


def _warps(numbers: int) -> int:
    """At least 512 numbers for each."""
    return max(1, min(WARPS, numbers // 512))


def _dividing(count: int) -> int:
    """The largest power of two up to TILES that divides a count."""
    return min(TILES, count & -count)


@functools.lru_cache(maxsize=64)
def _ready(levels: int, near: bool, device: torch.device) -> None:
    """Compile by a run on zeros: a failure must come before the caller's numbers are half transformed."""
    if near:
        _near_pass(torch.zeros(TILES << levels, device=device), levels, 1.0)
    else:
        inner = 256 * TILES
        _far_pass(torch.zeros(inner << levels, device=device), levels, inner)


@functools.lru_cache(maxsize=32)
def _matrix(size: int, device: torch.device) -> Tensor:
    return hadamard_matrix(size, dtype=torch.bfloat16, device=device)
