"""compressed-tensors: whole numbers of few bits in words of 32, or pairs of float4, with scales for groups of inputs.

The numbers are kept without a sign: half of their range is taken away again, or the zero that is kept beside them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from theodolite.core.lazy_torch import torch
from theodolite.io.formats._format import checked_shape
from theodolite.io.packed._scheme import FP4, Config, Match, Packed, fields, is_matrix, matched, nibbles
from theodolite.io.weights import Weights

if TYPE_CHECKING:
    from torch import Tensor

END = "weight_packed"


def scheme(name: str, weights: Weights, config: Config) -> Match | None:
    """The weight of which this tensor is the packed matrix, if it is one."""
    if not name.endswith(END) or len(weights[name].shape) != 2:
        return None
    return _words(name, weights) or _pairs(name, weights)


def _words(name: str, weights: Weights) -> Match | None:
    stem, packed = name.removesuffix(END), weights[name]
    scale, shape = weights.get(f"{stem}weight_scale"), weights.get(f"{stem}weight_shape")
    zero, order = weights.get(f"{stem}weight_zero_point"), weights.get(f"{stem}weight_g_idx")
    if scale is None or shape is None or shape.shape != (2,) or not is_matrix(packed, "int32") or order is not None:
        return None
    rows, columns = checked_shape([int(size) for size in shape.read().tolist()])
    bits = next((b for b in (4, 8, 2) if packed.shape == (rows, -(-columns * b // 32))), 0)
    if not bits or not is_matrix(scale, scale.kind) or scale.shape[0] != rows or columns % scale.shape[1]:
        return None
    parts = (packed, scale, *((zero,) if zero is not None else ()))
    note = f"dequantized from compressed-tensors of {bits} bits, groups of {columns // scale.shape[1]}"
    used = (*(part.name for part in parts), shape.name)
    read = Packed(_from_words, parts, {"bits": bits, "columns": columns})
    return matched(f"{stem}weight", weights, used, shape=(rows, columns), note=note, read=read)


def _from_words(packed: Tensor, scale: Tensor, zero: Tensor | None = None, *, bits: int, columns: int) -> Tensor:
    numbers, origin = fields(packed, bits, 1)[:, :columns].float(), torch.tensor(0.0)
    middle = float(1 << (bits - 1))
    if zero is not None:
        rows = fields(zero, bits, 0)[: len(packed)] - middle if zero.dtype == torch.int32 else zero
        origin = rows.float().repeat_interleave(columns // scale.shape[1], 1)
    return (numbers - middle - origin) * scale.float().repeat_interleave(columns // scale.shape[1], 1)


def _pairs(name: str, weights: Weights) -> Match | None:
    """Two numbers a byte. NVFP4: a scale in float8 for each 16, and one for all to divide by; MXFP4: a power of two a block."""
    stem, packed = name.removesuffix(END), weights[name]
    scale, whole = weights.get(f"{stem}weight_scale"), weights.get(f"{stem}weight_global_scale")
    if scale is None or packed.kind != "uint8" or (whole is None) != (scale.kind == "uint8"):
        return None
    if whole is not None and math.prod(whole.shape) != 1:
        return None
    rows, columns = packed.shape[0], 2 * packed.shape[1]
    if len(scale.shape) != 2 or scale.shape[0] != rows or 0 in scale.shape or columns % scale.shape[1]:
        return None
    beside = [key for part in ("input_global_scale", "input_scale") if (key := f"{stem}{part}") in weights]
    note = f"dequantized from float4, groups of {columns // scale.shape[1]}"
    parts = (packed, scale, *((whole,) if whole is not None else ()))
    read, used = Packed(_from_pairs, parts), (*(part.name for part in parts), *beside)
    return matched(f"{stem}weight", weights, used, shape=(rows, columns), note=note, read=read)


def _from_pairs(packed: Tensor, scale: Tensor, whole: Tensor | None = None) -> Tensor:
    numbers = torch.tensor(FP4)[nibbles(packed, high_first=False).flatten(1)]
    one = torch.ones(())
    sizes = torch.ldexp(one, scale.int() - 127) if whole is None else scale.float() / whole.float()
    return numbers * sizes.repeat_interleave(numbers.shape[1] // scale.shape[1], 1)
