"""bitsandbytes: rows of eight bits with one scale each, or blocks of four bits from a table, whose scales may be packed too."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

from theodolite.core.checks import InputError
from theodolite.core.lazy_torch import torch
from theodolite.io.formats._format import checked_shape
from theodolite.io.packed._scheme import SMALL, Config, Match, Packed, is_matrix, matched, nibbles
from theodolite.io.weights import Weight, Weights

if TYPE_CHECKING:
    from torch import Tensor


def scheme(name: str, weights: Weights, config: Config) -> Match | None:
    """The weight of which this tensor is the packed matrix, if it is one."""
    return _eight(name, weights) or _four(name, weights)


def _eight(name: str, weights: Weights) -> Match | None:
    """Entries times the largest of their row, over 127."""
    packed, scale = weights[name], weights.get(f"{name.removesuffix('weight')}SCB")
    if scale is None or not is_matrix(packed, "int8") or scale.shape != packed.shape[:1]:
        return None
    beside = [f"{name.removesuffix('weight')}{part}" for part in ("SCB", "weight_format")]
    used = (name, *(part for part in beside if part in weights))
    note = "dequantized from bitsandbytes of 8 bits, a scale a row"
    return matched(name, weights, used, shape=packed.shape, note=note, read=Packed(_from_eight, (packed, scale)))


def _from_eight(packed: Tensor, scale: Tensor) -> Tensor:
    return packed.float() * (scale.float() / 127).unsqueeze(1)


def _four(name: str, weights: Weights) -> Match | None:
    state = next((weights[key] for kind in ("nf4", "fp4") if (key := _state(name, kind)) in weights), None)
    parts = [weights.get(f"{name}.{part}") for part in ("absmax", "quant_map")]
    if state is None or weights[name].kind != "uint8" or math.prod(state.shape) > SMALL or None in parts:
        return None
    facts = _facts(state)
    shape, block = checked_shape(facts.get("shape")), facts.get("blocksize")
    if type(block) is not int or block < 1 or math.prod(weights[name].shape) != (math.prod(shape) + 1) // 2:
        return None
    nested = [weights.get(f"{name}.{part}") for part in ("nested_absmax", "nested_quant_map")]
    offset, coarse = facts.get("nested_offset", 0.0), facts.get("nested_blocksize", 256)
    found = (weights[name], *(part for part in (*parts, *nested) if part is not None))
    if len(found) not in (3, 5) or type(coarse) is not int or not isinstance(offset, int | float):
        return None
    note = f"dequantized from bitsandbytes {facts.get('quant_type')}, blocks of {block}"
    used = (*(part.name for part in found), state.name)
    told = {"shape": shape, "block": block, "coarse": coarse, "offset": float(offset)}
    read = Packed(_from_four, found, told)
    return matched(name, weights, used, shape=shape, note=note, read=read)


def _state(name: str, kind: str) -> str:
    return f"{name}.quant_state.bitsandbytes__{kind}"


def _facts(state: Weight) -> dict[str, object]:
    """A text in JSON, kept as a tensor of bytes."""
    found = json.loads(bytes(state.read().flatten().to(torch.uint8).tolist()).decode("utf-8"))
    return found if isinstance(found, dict) else {}


def _from_four(
    packed: Tensor,
    scales: Tensor,
    table: Tensor,
    above: Tensor | None = None,
    codes: Tensor | None = None,
    *,
    shape: tuple[int, ...],
    block: int,
    coarse: int,
    offset: float,
) -> Tensor:
    if above is not None and codes is not None:
        scales = _over(codes.float()[scales.long().flatten()], above.float(), coarse) + offset
    numbers = nibbles(packed.flatten(), high_first=True).flatten()[: math.prod(shape)]
    return _over(table.float()[numbers], scales.float(), block).reshape(shape)


def _over(numbers: Tensor, scales: Tensor, block: int) -> Tensor:
    spread = scales.flatten().repeat_interleave(block)
    if len(spread) < len(numbers):
        raise InputError(f"expected a scale for each {block} numbers, got {scales.numel()}; download the file again")
    return numbers * spread[: len(numbers)]
