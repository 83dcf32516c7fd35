"""Both kernels of a homogeneous network on a GPU: half-precision products of unit points, then the recursion in registers.

Points are of length 1, so that half precision holds them: eleven bits, and eleven more in what it leaves. Three products
(high x high, high x low, low x high) with sums in float32 are as good as float32; one alone is right to three digits. The
library's product of the pairs on and above the diagonal goes to where the tangent kernel will stand; one program then reads
each tile once, sends it through all layers and writes both kernels twice. A program that multiplied as well would have to be
compiled for seconds and was slower: the recursion's registers leave none for large tiles.
Imported only where Triton is installed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
import triton  # type: ignore[import-not-found,import-untyped,unused-ignore]
import triton.language as tl  # type: ignore[import-not-found,import-untyped,unused-ignore]
from torch import Tensor

from theodolite.core.state import exact_products
from theodolite.theory.kernels._gpu import attempt
from theodolite.theory.kernels._map_sequences import Dense, DualStep, Nonlinear, Program
from theodolite.theory.kernels._tile_recursion import NEAR
from theodolite.theory.kernels._tiled_pairs import (
    Kernels,
    Precision,
    is_homogeneous,
    plan_of,
    refuse_infinite,
    unit_diagonal,
)

TILE, WARPS = 32, 4
BLOCK = 1024  # columns of a point that are read at once
ALIGNED = 8  # columns in half precision that are as long as what the library's product reads at once
PANEL, PANELS = 1024, 16
"""Rows of a product at least, and how many products at most: pairs below the diagonal are left out."""
_Layer = tuple[float, float, float, float, float]
"""Product and squared gap of the two slopes, 1 / mean square, and the factors of E σσ and of Θ E σ'σ'."""


class FusedLayers(NamedTuple):
    """The numbers of each layer for points of mean square 1, the last layer's variance, and the first tangent kernel's factor."""

    numbers: tuple[_Layer, ...]
    last_k: float
    first_t: float


def fused_layers(program: Program, steps: Sequence[DualStep]) -> FusedLayers | None:
    """What a network of rectifiers without biases is to the programs; None for others."""
    if not program or not isinstance(program[0], Dense) or len(program) != 2 * len(steps) + 1:
        return None
    if program[0].bias_variance or program[0].rates[1]:
        return None
    q = program[0].weight_variance
    first_t = program[0].rates[0]
    found: list[_Layer] = []
    for step, activation, dense in zip(steps, program[1::2], program[2::2], strict=True):
        dual = step.dual
        if isinstance(dense, Dense) and (dense.bias_variance or dense.rates[1]):
            return None
        if not isinstance(activation, Nonlinear) or not isinstance(dense, Dense) or dual is None or dual.slopes is None:
            return None
        right, left = dual.slopes
        square = 0.5 * (right**2 + left**2)
        if square == 0.0 or q == 0.0:
            return None
        found.append((right * left, (right - left) ** 2, 1 / square, dense.rates[0] * q, dense.weight_variance))
        q *= square * dense.weight_variance
    return FusedLayers(tuple(found), q, first_t)


@triton.jit  # type: ignore[misc,untyped-decorator,unused-ignore]
def _units(x, units, roots, d, width, stride, BLOCK: tl.constexpr, PRODUCTS: tl.constexpr):  # type: ignore[no-untyped-def]
    row = tl.program_id(0).to(tl.int64)
    inner = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float64)
    for start in range(0, d, BLOCK):
        value = tl.load(x + row * d + start + inner, mask=start + inner < d, other=0.0).to(tl.float64)
        total += value * value
    square = tl.sum(total, axis=0)
    tl.store(roots + row, tl.sqrt(square / d))
    length = tl.where(square > 0.0, tl.sqrt(square), 1.0)
    for start in range(0, width, BLOCK):
        column = start + inner
        value = tl.load(x + row * d + column, mask=column < d, other=0.0).to(tl.float64) / length
        value = value.to(tl.float32)
        high = value.to(tl.float16)
        place = units + row * stride + column
        tl.store(place, high, mask=column < width)
        if PRODUCTS == 3:  # high, high, low, high: the first three times the last three are the three products
            low = (value - high.to(tl.float32)).to(tl.float16)
            tl.store(place + width, high, mask=column < width)
            tl.store(place + 2 * width, low, mask=column < width)
            tl.store(place + 3 * width, high, mask=column < width)


@triton.jit  # type: ignore[misc,untyped-decorator,unused-ignore]
def _tiles(  # type: ignore[no-untyped-def]  # Triton takes an annotation for a value that the program uses
    scale, layers, nngp, ntk, flags, n, tiles, depth, last_k, first_t, TILE: tl.constexpr
):
    place = tl.program_id(0)
    i, j = place // (tiles + 1), place % (tiles + 1)
    # a row's tiles above the diagonal, and behind them those of the row that is as far from the end
    behind = j >= tiles - i
    if behind & (2 * i + 1 == tiles):  # the middle row has no other one
        return
    j = tl.where(behind, j - (tiles - i), j)
    i = tl.where(behind, tiles - 1 - i, i)
    j += i
    rows, columns = i * TILE + tl.arange(0, TILE), j * TILE + tl.arange(0, TILE)
    inside = (rows < n)[:, None] & (columns < n)[None, :]
    where = rows.to(tl.int64)[:, None] * n + columns[None, :]
    c = tl.load(ntk + where, mask=inside, other=0.0)
    if i == j:
        c = tl.where(rows[:, None] <= columns[None, :], c, tl.trans(c))
    apart = inside & (rows[:, None] != columns[None, :])
    tl.store(flags + place, tl.max(tl.max(tl.where(apart, tl.abs(c), 0.0), axis=1), axis=0))
    t = first_t * c
    for layer in range(depth):
        product, gap = tl.load(layers + 5 * layer), tl.load(layers + 5 * layer + 1)
        inverse, rate, weight = (
            tl.load(layers + 5 * layer + 2),
            tl.load(layers + 5 * layer + 3),
            tl.load(layers + 5 * layer + 4),
        )
        c = tl.minimum(tl.maximum(c, -1.0), 1.0)
        size = tl.abs(c)
        root = tl.sqrt(1.0 - size)
        # acos(x) / sqrt(1 - x) on [0, 1], a minimax polynomial: what it leaves out of acos is below 2e-9
        p = 0.0008116940821 * size - 0.004457013853
        p = p * size + 0.01176966726
        p = p * size - 0.02131877034
        p = p * size + 0.03283132119
        p = p * size - 0.05065549685
        p = p * size + 0.08903734358
        p = p * size - 0.2146014788
        p = (p * size + 1.570796325) * root
        angle = tl.where(c < 0.0, 3.141592653589793 - p, p)
        slope = product + gap * (0.5 - angle * 0.15915494309189535)
        e = slope * c + gap * 0.15915494309189535 * root * tl.sqrt(1.0 + size)
        t = rate * e + weight * slope * t
        c = e * inverse
    k = last_k * c
    both = tl.load(scale + rows, mask=rows < n)[:, None] * tl.load(scale + columns, mask=columns < n)[None, :]
    k, t = k * both, t * both
    where = rows.to(tl.int64)[:, None] * n + columns[None, :]
    tl.store(nngp + where, k, mask=inside)
    tl.store(ntk + where, t, mask=inside)
    if i != j:
        mirrored = columns.to(tl.int64)[:, None] * n + rows[None, :]
        turned = (columns < n)[:, None] & (rows < n)[None, :]
        tl.store(nngp + mirrored, tl.trans(k), mask=turned)
        tl.store(ntk + mirrored, tl.trans(t), mask=turned)


def fused_kernels(program: Program, x: Tensor, precision: Precision) -> Kernels | None:
    """Both kernels of all pairs of float32 points on a GPU, where the network is covered and a program can be built."""
    layers = fused_layers(program, unit_diagonal(program).steps) if len(x) and is_homogeneous(program) else None
    if layers is None:
        return None
    products = 1 if precision == "fast" else 3
    found = attempt(lambda: homogeneous_kernels(x, layers, products=products), x)
    if found is None:
        return None
    nngp, ntk, squares, near = found
    if near:
        plan = plan_of(program, x)
        for i, j in near:
            plan.mend_tile(i, j, nngp, ntk)
    unit = unit_diagonal(program)
    nngp.diagonal().copy_(squares * float(unit.nngp))
    ntk.diagonal().copy_(squares * float(unit.ntk))
    refuse_infinite(squares)
    return Kernels(nngp, ntk)


def homogeneous_kernels(
    x: Tensor, layers: FusedLayers, *, products: int = 3
) -> tuple[Tensor, Tensor, Tensor, list[tuple[slice, slice]]]:
    """NNGP, NTK, the points' mean squares (float64), and the tiles that hold near-parallel points.

    With one product a pair the tiles are not looked for. Diagonals are left to the caller, who knows them exactly.
    """
    n, d = x.shape
    width = -(-d // ALIGNED) * ALIGNED
    units = torch.empty(n, width * (1 if products == 1 else 4), dtype=torch.float16, device=x.device)
    roots = torch.empty(n, dtype=torch.float64, device=x.device)
    _units[(n,)](x.contiguous(), units, roots, d, width, units.shape[1], BLOCK=BLOCK, PRODUCTS=products, num_warps=4)
    nngp, ntk = torch.empty(n, n, device=x.device), torch.empty(n, n, device=x.device)
    _products(units[:, : products * width], units[:, -products * width :], ntk)
    numbers = torch.tensor(layers.numbers, dtype=torch.float32, device=x.device).reshape(-1)
    tiles = -(-n // TILE)
    flags = torch.zeros((tiles + 1) // 2, tiles + 1, device=x.device)
    _tiles[(flags.numel(),)](
        roots.float(),
        numbers,
        nngp,
        ntk,
        flags,
        n,
        tiles,
        len(layers.numbers),
        layers.last_k,
        layers.first_t,
        TILE=TILE,
        num_warps=WARPS,
    )
    near = (flags > 1 - NEAR[torch.float32]).nonzero().tolist() if products == 3 else []
    return nngp, ntk, roots.square(), [_parts(i, j, tiles, n) for i, j in near]


def _parts(i: int, j: int, tiles: int, n: int) -> tuple[slice, slice]:
    """Rows and columns of the tile at a place of the programs' order."""
    if j >= tiles - i:
        i, j = tiles - 1 - i, j - (tiles - i)
    rows, columns = (slice(place * TILE, min((place + 1) * TILE, n)) for place in (i, i + j))
    return rows, columns


def _products(left: Tensor, right: Tensor, out: Tensor) -> None:
    """Products of all pairs of rows on and above the diagonal, in panels of rows; what lies below it is not all written."""
    n = len(out)
    panels = max(1, min(PANELS, n // PANEL))
    edges = [n * p // panels // TILE * TILE for p in range(panels)] + [n]
    mixed = hasattr(torch.ops.aten.mm, "dtype_out")
    if not mixed:  # an old torch, whose products are as precise as their factors
        left, right = left.float(), right.float()
    with exact_products():
        for start, stop in pairwise(edges):
            target = out[start:stop, start:]
            if mixed:
                torch.mm(left[start:stop], right[start:].T, out_dtype=torch.float32, out=target)
            else:
                torch.mm(left[start:stop], right[start:].T, out=target)
