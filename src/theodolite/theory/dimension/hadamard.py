"""The fast Walsh-Hadamard transform: a multiplication by ±1 that costs L log L and stores nothing."""

import functools
import importlib.util
import warnings
from typing import Any

import torch
from torch import Tensor

from theodolite.core.checks import InputError, InputTypeError, at_least

BLOCK = 1 << 16  # numbers transformed together: with a scratch copy they stay in the cache of one core
DIGIT = 16  # sixteen rows of the matrix at once: the largest product that is still as fast as moving the numbers


def hadamard_transform(x: Tensor, *, scale: float = 1.0) -> Tensor:
    r"""$scale\cdot Hx$ along the last axis, $H$ the Sylvester-Hadamard matrix of $\pm1$: $H_{ij}=(-1)^{|i\,\&\,j|}$.

    The last axis has a power of two entries, any axes may come before it, on any device. ``scale=L**-0.5`` makes it
    orthogonal and its own inverse. Half precision is summed in float32. It can be differentiated, vectorized (vmap) and
    pushed forward (jvp); it is its own transpose.

    Source: fino1976. Differs from the source: digits of base 16 instead of butterflies, block by block, as products.

    >>> hadamard_transform(torch.tensor([1.0, 0.0, 2.0, 0.0])).tolist()
    [3.0, 3.0, -1.0, -1.0]
    """
    _check(x)
    return _Transform.apply(x, scale)  # type: ignore[no-untyped-call]


def hadamard_transform_(x: Tensor, *, scale: float = 1.0) -> Tensor:
    """The same in place, outside of automatic differentiation; ``x`` must be contiguous. Returns ``x``."""
    _check(x)
    if not x.is_contiguous():
        raise InputError("expected a contiguous tensor to transform in place, got a strided one; call .contiguous()")
    if x.requires_grad and torch.is_grad_enabled():
        raise InputError("expected a tensor without gradient to transform in place; use hadamard_transform")
    with torch.no_grad():
        if x.dtype in (torch.float16, torch.bfloat16):
            wide = x.float()
            return x.copy_(_transformed(wide, wide, scale))
        return _transformed(x, x, scale)


def hadamard_matrix(side: int, *, dtype: torch.dtype = torch.float64, device: Any = None) -> Tensor:
    """The matrix itself, by Sylvester's doubling; for tests and small digits.

    >>> hadamard_matrix(2).tolist()
    [[1.0, 1.0], [1.0, -1.0]]
    """
    if side < 1 or side & (side - 1):
        raise InputError(f"expected a power of two, got {side}; pad to {next_power_of_two(max(side, 1))}")
    h = torch.ones(1, 1, dtype=dtype, device=device)
    while len(h) < side:
        h = torch.cat([torch.cat([h, h], 1), torch.cat([h, -h], 1)])
    return h


def next_power_of_two(number: int) -> int:
    """The smallest power of two that is at least ``number``.

    >>> next_power_of_two(199_210)
    262144
    """
    at_least(0, number=number)
    return 1 << max(int(number) - 1, 0).bit_length()


class _Transform(torch.autograd.Function):
    """Its own transpose: the backward pass is the forward pass."""

    generate_vmap_rule = False

    @staticmethod
    def forward(x: Tensor, scale: float) -> Tensor:
        if x.dtype in (torch.float16, torch.bfloat16):
            return hadamard_transform_(x.float().contiguous(), scale=scale).to(x.dtype)
        source = x.contiguous()
        return _transformed(source, torch.empty_like(source), scale)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, float], output: Tensor) -> None:
        ctx.scale = inputs[1]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return _Transform.apply(grads[0], ctx.scale), None  # type: ignore[no-untyped-call]

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Tensor:
        return _Transform.apply(tangents[0], ctx.scale)  # type: ignore[no-untyped-call]

    @staticmethod
    def vmap(info: Any, dims: tuple[int, None], x: Tensor, scale: float) -> tuple[Tensor, int]:
        return _Transform.apply(x.movedim(dims[0], 0), scale), 0  # type: ignore[no-untyped-call]


def _check(x: Any) -> None:
    if not isinstance(x, Tensor) or not x.is_floating_point() or x.ndim == 0:
        raise InputTypeError("expected a tensor of floating numbers with at least one axis; convert with .float()")
    size = x.shape[-1]
    if size < 1 or size & (size - 1):
        raise InputError(
            f"expected a power of two in the last axis, got {size}; pad it with zeros to {next_power_of_two(max(size, 1))}"
        )


def _transformed(x: Tensor, y: Tensor, scale: float) -> Tensor:
    """From contiguous float32 or float64 ``x`` to ``y``, which may be ``x`` itself."""
    if x.numel() == 0:
        return y
    if x.device.type == "cpu" and torch.get_float32_matmul_precision() == "highest":
        return _blocked(x, y, scale)
    if y is not x:
        y.copy_(x)
    if y.is_cuda and y.dtype == torch.float32 and _gpu_programs() is not None:
        try:
            _gpu_programs().transform_(y.view(-1, y.shape[-1]), scale)
            return y
        except Exception as error:
            _without_gpu_programs(error)
            y.copy_(x)
    return _butterflies(y, scale)  # sums only: no product that a setting could round to ten bits


@functools.cache
def _gpu_programs() -> Any:
    """The module of GPU programs, where Triton is installed; None where it is not or does not import."""
    if _failed or importlib.util.find_spec("triton") is None:
        return None
    try:
        return importlib.import_module("theodolite.theory.dimension._hadamard_gpu")
    except Exception as error:
        _without_gpu_programs(error)
        return None


_failed: list[str] = []


def _without_gpu_programs(error: Exception) -> None:
    _failed.append(str(error))
    _gpu_programs.cache_clear()
    warnings.warn(
        f"the GPU program of the Hadamard transform did not compile ({type(error).__name__}: {error}); "
        "plain torch operations are used, about ten times slower",
        stacklevel=2,
    )


def _butterflies(x: Tensor, scale: float) -> Tensor:
    """Radix 2 with sums and differences, for any device and precision."""
    flat = x.view(-1, x.shape[-1])
    half = 1
    while half < flat.shape[1]:
        pairs = flat.view(len(flat), -1, 2, half)
        total = pairs[:, :, 0] + pairs[:, :, 1]
        torch.sub(pairs[:, :, 0], pairs[:, :, 1], out=pairs[:, :, 1])
        pairs[:, :, 0].copy_(total)
        half *= 2
    return x.mul_(scale) if scale != 1.0 else x


def _blocked(x: Tensor, y: Tensor, scale: float) -> Tensor:
    """From ``x`` to ``y``, which may be ``x``: blocks in the cache first, then, eight levels at a time, across them."""
    size = x.shape[-1]
    near = min(size, BLOCK)
    scratch = x.new_empty(2, 2 * BLOCK)
    for source, target in zip(torch.split(x.view(-1), BLOCK), torch.split(y.view(-1), BLOCK), strict=True):
        _within(source, target, near, scratch, scale)
    while near < size:
        rows = min(DIGIT**2, size // near)
        for group in y.view(-1, rows, near):
            _across(group, scratch)
        near *= rows
    return y


def _digits(size: int) -> list[int]:
    """Powers of two whose product is ``size``, the larger last: small ones within small blocks are slow products."""
    levels = size.bit_length() - 1
    count = 1 if levels <= 6 else 2 if levels <= 10 else -(-levels // 4)
    return [1 << (levels // count + (place >= count - levels % count)) for place in range(count)]


def _within(source: Tensor, target: Tensor, size: int, scratch: Tensor, scale: float) -> None:
    """Rows of ``size`` in one block, digit by digit as matrix products, the last digit first."""
    digits, inner = _digits(size), 1
    for place, digit in enumerate(reversed(digits)):
        h = _small(digit, source.dtype) if place else _small(digit, source.dtype) * scale
        out = target if place == len(digits) - 1 and place else scratch[place % 2, : source.numel()]
        if inner == 1:
            torch.mm(source.view(-1, digit), h, out=out.view(-1, digit))
        elif digit * inner == source.numel():
            torch.mm(h, source.view(digit, inner), out=out.view(digit, inner))
        else:
            shape = (source.numel() // (digit * inner), digit, inner)
            torch.bmm(h.expand(shape[0], digit, digit), source.view(shape), out=out.view(shape))
        source, inner = out, inner * digit
    if source is not target:
        target.copy_(source)


def _across(group: Tensor, scratch: Tensor) -> None:
    """The first axis of (rows, near): the first product reads a strip of columns where it lies, a copy puts it back."""
    rows, near = group.shape
    digits = _digits(rows)
    width = min(near, 2 * BLOCK // rows)
    a, b = (part[: rows * width] for part in scratch)
    for start in range(0, near, width):
        strip = group[:, start : start + width]
        if len(digits) == 1:
            torch.mm(_small(rows, a.dtype), strip, out=a.view(rows, width))
            strip.copy_(a.view(rows, width))
            continue
        shape = (*digits, width)
        h = _small(digits[1], a.dtype).expand(digits[0], -1, -1)
        torch.bmm(h, group.view(*digits, near)[:, :, start : start + width], out=a.view(shape))
        torch.mm(_small(digits[0], a.dtype), a.view(digits[0], -1), out=b.view(digits[0], -1))
        strip.copy_(b.view(rows, width))


@functools.lru_cache(maxsize=32)
def _small(digit: int, dtype: torch.dtype) -> Tensor:
    return hadamard_matrix(digit, dtype=dtype)
