"""What the schemes have in common: the tensors of one module, numbers of few bits, and weights put together when read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from theodolite.core.lazy_torch import torch
from theodolite.io.weights import Weight, Weights

if TYPE_CHECKING:
    from torch import Tensor

Config = Mapping[str, object]
"""What the folder's configuration says of its quantization; empty where there is none."""

SMALL = 1 << 16
"""Entries up to which a tensor is read while the weights are listed."""


@dataclass(frozen=True)
class Packed:
    """A weight made of several tensors: ``function`` is given those of ``parts`` in their order, and the ``facts``."""

    function: Callable[..., Tensor]
    parts: tuple[Weight, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self) -> Tensor:
        """The weight in float32."""
        return self.function(*(part.read() for part in self.parts), **self.facts)


@dataclass(frozen=True)
class Match:
    """One weight, and the names of the tensors it stands for."""

    weight: Weight
    used: tuple[str, ...]


def matched(
    name: str, weights: Weights, used: tuple[str, ...], *, shape: tuple[int, ...], note: str, read: Packed
) -> Match:
    """The match of a weight of this name and shape; what it depends on is that of all its parts."""
    parts = [weights[part] for part in used]
    sources = tuple(dict.fromkeys(part.source for part in parts))
    known = "" if "" in sources else "|".join((note, *sources))
    return Match(Weight(name, shape, "float32", read, known, note=note), used)


def fields(packed: Tensor, bits: int, axis: int) -> Tensor:
    """Whole numbers of 1 to 8 bits out of words of 32, the lowest bits first, along one of two axes."""
    shifts = torch.arange(0, 32, bits, dtype=torch.int32)
    spread = (packed.to(torch.int32).unsqueeze(-1) >> shifts) & ((1 << bits) - 1)  # (rows, columns, fields)
    return spread.transpose(1, 2).flatten(0, 1) if axis == 0 else spread.flatten(1)


def nibbles(packed: Tensor, *, high_first: bool) -> Tensor:
    """Two numbers of four bits a byte."""
    low, high = packed & 15, packed >> 4
    return torch.stack((high, low) if high_first else (low, high), -1).long()


def whole_bits(words: int, numbers: int) -> int:
    """How many bits each of ``numbers`` has in so many words of 32: 2, 4 or 8, else 0."""
    bits = 32 * words // numbers if numbers else 0
    return bits if bits in (2, 4, 8) and bits * numbers == 32 * words else 0


def is_matrix(weight: Weight | None, *kinds: str) -> bool:
    """A tensor of two axes of one of these types, not empty."""
    return weight is not None and len(weight.shape) == 2 and weight.kind in kinds and math.prod(weight.shape) > 0


def spread_blocks(scales: Tensor, shape: tuple[int, int], block: tuple[int, int]) -> Tensor:
    """Each scale over its block of the matrix; blocks at the edges may be cut."""
    rows, columns = block
    return scales.repeat_interleave(rows, 0)[: shape[0]].repeat_interleave(columns, 1)[:, : shape[1]]


FP4 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0)
"""The sixteen numbers of E2M1: a sign, two bits of exponent, one of fraction."""
