"""GPTQ and AWQ: whole numbers of few bits in words of 32, with a scale and a zero for each group of inputs.

GPTQ packs along the inputs, AWQ (in the order of its kernels) along the outputs; shapes tell which. Files of GPTQ store each
zero less one, unless their configuration says ``gptq_v2``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from theodolite.core.checks import InputError
from theodolite.core.lazy_torch import torch
from theodolite.io.packed._scheme import Config, Match, Packed, fields, is_matrix, matched, whole_bits
from theodolite.io.weights import Weight, Weights

if TYPE_CHECKING:
    from torch import Tensor

END = ".qweight"
ORDER = (0, 4, 1, 5, 2, 6, 3, 7)
"""Where in a word of AWQ the outputs 0 to 7 lie."""


def scheme(name: str, weights: Weights, config: Config) -> Match | None:
    """The weight of which this tensor is the packed matrix, if it is one."""
    stem = name.removesuffix(END)
    if not name.endswith(END) or not is_matrix(weights[name], "int32"):
        return None
    scales, zeros, order = (weights.get(f"{stem}.{part}") for part in ("scales", "qzeros", "g_idx"))
    if scales is None or zeros is None or len(scales.shape) != 2 or not is_matrix(zeros, "int32"):
        return None
    if zeros.shape[0] != scales.shape[0]:
        return None
    bits = whole_bits(zeros.shape[1], scales.shape[1])
    if not bits:
        return None
    if weights[name].shape[1] == scales.shape[1]:
        return _gptq(stem, bits, (weights[name], scales, zeros, order), weights, config)
    return _awq(stem, bits, (weights[name], scales, zeros), weights)


_Parts = tuple[Weight, Weight, Weight, Weight | None]


def _gptq(stem: str, bits: int, parts: _Parts, weights: Weights, config: Config) -> Match | None:
    packed, scales, _, order = parts
    inputs, outputs = packed.shape[0] * 32 // bits, packed.shape[1]
    if inputs % scales.shape[0] or (order is not None and order.shape != (inputs,)):
        return None
    less = 0 if config.get("checkpoint_format") == "gptq_v2" else 1
    kept = tuple(part for part in parts if part is not None)
    note = f"dequantized from GPTQ of {bits} bits, groups of {inputs // scales.shape[0]}"
    read = Packed(_from_gptq, kept, {"bits": bits, "less": less})
    used = tuple(part.name for part in kept)
    return matched(f"{stem}.weight", weights, used, shape=(outputs, inputs), note=note, read=read)


def _from_gptq(
    packed: Tensor, scales: Tensor, zeros: Tensor, order: Tensor | None = None, *, bits: int, less: int
) -> Tensor:
    numbers = fields(packed, bits, 0)  # (inputs, outputs)
    origin = (fields(zeros, bits, 1) + less) & ((1 << bits) - 1)  # (groups, outputs)
    size = numbers.shape[0] // scales.shape[0]
    group = order.long() if order is not None else torch.arange(numbers.shape[0]) // size
    if int(group.max()) >= scales.shape[0] or int(group.min()) < 0:
        raise InputError("expected groups of inputs that have a scale, got others in g_idx; download the file again")
    return ((numbers - origin[group]).float() * scales.float()[group]).T.contiguous()


def _awq(stem: str, bits: int, parts: tuple[Weight, Weight, Weight], weights: Weights) -> Match | None:
    packed, scales, _ = parts
    inputs, outputs = packed.shape[0], scales.shape[1]
    if bits != 4 or packed.shape[1] * 8 != outputs or inputs % scales.shape[0]:
        return None
    note = f"dequantized from AWQ of 4 bits, groups of {inputs // scales.shape[0]}"
    used = tuple(part.name for part in parts)
    read = Packed(_from_awq, parts)
    return matched(f"{stem}.weight", weights, used, shape=(outputs, inputs), note=note, read=read)


def _from_awq(packed: Tensor, scales: Tensor, zeros: Tensor) -> Tensor:
    def ordered(words: Tensor) -> Tensor:
        return fields(words, 4, 1).reshape(len(words), -1, 8)[..., list(ORDER)].flatten(1)

    size = packed.shape[0] // scales.shape[0]
    origin, scale = (each.repeat_interleave(size, 0) for each in (ordered(zeros), scales.float()))
    return ((ordered(packed) - origin).float() * scale).T.contiguous()
