"""MXFP4 of expert stacks: blocks of 32 float4 in 16 bytes, with a power of two for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from theodolite.core.lazy_torch import torch
from theodolite.io.packed._scheme import FP4, Config, Match, Packed, matched, nibbles
from theodolite.io.weights import Weights

if TYPE_CHECKING:
    from torch import Tensor

END = "_blocks"


def scheme(name: str, weights: Weights, config: Config) -> Match | None:
    """The weight of which this tensor holds the blocks, if it is one: experts by inputs by outputs, as it is used."""
    packed, scale = weights[name], weights.get(f"{name.removesuffix(END)}_scales")
    if not name.endswith(END) or scale is None or {packed.kind, scale.kind} != {"uint8"}:
        return None
    if len(packed.shape) != 4 or packed.shape[-1] != 16 or scale.shape != packed.shape[:-1]:
        return None
    experts, outputs, blocks, _ = packed.shape
    return matched(
        name.removesuffix(END),
        weights,
        (name, scale.name),
        shape=(experts, 32 * blocks, outputs),
        note="dequantized from MXFP4, blocks of 32",
        read=Packed(_from_blocks, (packed, scale)),
    )


def _from_blocks(packed: Tensor, scale: Tensor) -> Tensor:
    numbers = torch.tensor(FP4)[nibbles(packed, high_first=False).flatten(3)]  # (experts, outputs, blocks, 32)
    sized = torch.ldexp(numbers, scale.int().unsqueeze(-1) - 127)
    return sized.flatten(2).transpose(1, 2).contiguous()
