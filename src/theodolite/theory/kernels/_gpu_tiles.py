"""Both kernels of a homogeneous network in one GPU program: a tile of the Gram matrix and the recursion in registers.

Points are of length 1, so that half precision holds them: eleven bits, and eleven more in what it leaves. Three products
(high x high, high x low, low x high) with sums in float32 are as good as float32; one alone is right to three digits. Tiles
on and above the diagonal are computed and written twice; they are small, since the recursion keeps five numbers a pair in
registers, and several of them on one processor hide each other's writing.
Imported only where Triton is installed.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch
import triton  # type: ignore[import-not-found,import-untyped,unused-ignore]
import triton.language as tl  # type: ignore[import-not-found,import-untyped,unused-ignore]
from torch import Tensor

from theodolite.theory.kernels._programs import Dense, Nonlinear, Program
from theodolite.theory.kernels._tiles import NEAR, TileStep

TILE = 64
DEPTH = 64  # columns of the inputs in one product
GROUP = 16  # rows of tiles that are computed together, so that inputs stay in the cache
_Layer = tuple[float, float, float, float, float]
"""Product and squared gap of the two slopes, 1 / mean square, and the factors of E σσ and of Θ E σ'σ'."""


def fused_layers(program: Program, steps: Sequence[TileStep]) -> tuple[list[_Layer], float, float] | None:
    """The numbers of each layer for points of mean square 1, with the factors of the first kernels; None if not covered."""
    if not program or not isinstance(program[0], Dense) or len(program) != 2 * len(steps) + 1:
        return None
    if program[0].bias_variance or program[0].rates[1]:
        return None
    q = program[0].weight_variance
    first = q, program[0].rates[0]
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
    return found, *first


@triton.jit  # type: ignore[misc,untyped-decorator,unused-ignore]
def _tiles(  # type: ignore[no-untyped-def]  # Triton takes an annotation for a value that the program uses
    high,
    low,
    scale,
    order,
    layers,
    nngp,
    ntk,
    flags,
    n,
    d,
    first_k,
    first_t,
    COUNT: tl.constexpr,
    TILE: tl.constexpr,
    DEPTH: tl.constexpr,
    PRODUCTS: tl.constexpr,
):
    place = tl.program_id(0)
    i, j = tl.load(order + 2 * place), tl.load(order + 2 * place + 1)
    rows, columns = i * TILE + tl.arange(0, TILE), j * TILE + tl.arange(0, TILE)
    inner = tl.arange(0, DEPTH)
    left = (rows % n).to(tl.int64)[:, None] * d + inner[None, :]
    right = (columns % n).to(tl.int64)[None, :] * d + inner[:, None]
    c = tl.zeros((TILE, TILE), dtype=tl.float32)
    for _ in range(0, d, DEPTH):
        a, b = tl.load(high + left), tl.load(high + right)
        c = tl.dot(a, b, c)
        if PRODUCTS == 3:
            a_low, b_low = tl.load(low + left), tl.load(low + right)
            c = tl.dot(a, b_low, c)
            c = tl.dot(a_low, b, c)
        left += DEPTH
        right += DEPTH
    if i == j:
        c = tl.where(rows[:, None] <= columns[None, :], c, tl.trans(c))
    inside = (rows < n)[:, None] & (columns < n)[None, :]
    apart = inside & (rows[:, None] != columns[None, :])
    tl.store(flags + place, tl.max(tl.max(tl.where(apart, tl.abs(c), 0.0), axis=1), axis=0))
    t = first_t * c
    k = first_k * c
    for layer in tl.static_range(COUNT):
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
        k = first_k * weight * e
        t = rate * e + weight * slope * t
        first_k = first_k * weight / inverse
        c = e * inverse
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


def homogeneous_kernels(
    x: Tensor, scale: Tensor, layers: tuple[list[_Layer], float, float], *, products: int = 3
) -> tuple[Tensor, Tensor, list[tuple[slice, slice]]]:
    """NNGP, NTK, and the tiles that hold near-parallel points, for points ``x`` of mean square 1 times ``scale``.

    With one product a pair the tiles are not looked for.
    """
    n, d = x.shape
    padded = -(-d // DEPTH) * DEPTH
    unit = torch.zeros(n, padded, device=x.device)
    unit[:, :d] = x / d**0.5
    high = unit.half()
    low = (unit - high.float()).half() if products == 3 else high
    count = -(-n // TILE)
    order = _order(count, x.device)
    numbers = torch.tensor(layers[0], dtype=torch.float32, device=x.device).reshape(-1)
    nngp, ntk = torch.empty(n, n, device=x.device), torch.empty(n, n, device=x.device)
    flags = torch.empty(len(order), device=x.device)
    _tiles[(len(order),)](
        high,
        low,
        scale,
        order,
        numbers,
        nngp,
        ntk,
        flags,
        n,
        padded,
        layers[1],
        layers[2],
        COUNT=len(layers[0]),
        TILE=TILE,
        DEPTH=DEPTH,
        PRODUCTS=products,
        num_warps=4,
        num_stages=3,
    )
    if products == 1:
        return nngp, ntk, []
    near = order[(flags > 1 - NEAR[torch.float32]).nonzero()[:, 0]].tolist()
    return nngp, ntk, [(_part(i, n), _part(j, n)) for i, j in near]


def _part(tile: int, n: int) -> slice:
    return slice(tile * TILE, min((tile + 1) * TILE, n))


@functools.lru_cache(maxsize=4)
def _order(count: int, device: torch.device) -> Tensor:
    """Tiles (i, j) with j at least i, as int32, group by group of rows."""
    i, j = torch.triu_indices(count, count)
    key = (i // GROUP * count + j) * GROUP + i % GROUP
    return torch.stack([i, j], dim=1)[key.argsort()].to(device, torch.int32).contiguous()
