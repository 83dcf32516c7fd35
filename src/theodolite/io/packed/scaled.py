"""Matrices of eight bits beside their scales: float8 with one, one a row or one a block, and whole numbers likewise.

Names differ (``weight_scale``, ``weight_scale_inv``, ``scale_weight``); in all of them the matrix is to be multiplied.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from theodolite.io.packed._scheme import Config, Match, Packed, is_matrix, matched, spread_blocks
from theodolite.io.weights import Weight, Weights

if TYPE_CHECKING:
    from torch import Tensor

KINDS = ("float8_e4m3fn", "float8_e5m2", "int8")
NAMES = ("weight_scale", "weight_scale_inv", "scale_weight", "weight._scale")
USUAL = 128
BESIDE = ("input_scale", "scale_input", "activation_scale", "output_scale", "weight_zero_point", "k_scale", "v_scale")
"""What says how activations are rounded, not how the weight was: it goes with the matrix."""


def scheme(name: str, weights: Weights, config: Config) -> Match | None:
    """The weight of which this tensor is the matrix, if it is one."""
    stem, packed = name.removesuffix("._data").removesuffix("weight"), weights[name]
    if not is_matrix(packed, *KINDS) or stem == name:
        return None
    scale = next((weights[key] for each in NAMES if (key := f"{stem}{each}") in weights), None)
    if scale is None or f"{stem}weight_zero_point" in weights:
        return None
    block = _block(packed.shape, scale, config)
    if block is None:
        return None
    beside = tuple(key for each in BESIDE if (key := f"{stem}{each}") in weights)
    note = f"dequantized from {packed.kind}, {_words(packed.shape, block)}"
    read = Packed(_times, (packed, scale), {"rows": block[0], "columns": block[1]})
    return matched(f"{stem}weight", weights, (name, scale.name, *beside), shape=packed.shape, note=note, read=read)


def _block(shape: tuple[int, ...], scale: Weight, config: Config) -> tuple[int, int] | None:
    """How many rows and columns share a scale."""
    rows, columns = shape
    if math.prod(scale.shape) == 1:
        return rows, columns
    if scale.shape in ((rows,), (rows, 1)):
        return 1, columns
    if len(scale.shape) != 2:
        return None
    told = config.get("weight_block_size")
    usual = tuple(told) if isinstance(told, list) and len(told) == 2 and all(type(n) is int for n in told) else None
    for height, width in filter(None, (usual, (USUAL, USUAL), _even(shape, scale.shape))):
        if height > 0 and width > 0 and scale.shape == (-(-rows // height), -(-columns // width)):
            return height, width
    return None


def _even(shape: tuple[int, ...], scales: tuple[int, ...]) -> tuple[int, int] | None:
    if 0 in scales or shape[0] % scales[0] or shape[1] % scales[1]:
        return None
    return shape[0] // scales[0], shape[1] // scales[1]


def _words(shape: tuple[int, ...], block: tuple[int, int]) -> str:
    if block == shape:
        return "one scale"
    return "a scale a row" if block == (1, shape[1]) else f"a scale for each {block[0]} x {block[1]}"


def _times(packed: Tensor, scale: Tensor, rows: int, columns: int) -> Tensor:
    spread = spread_blocks(
        scale.float().reshape(-(-packed.shape[0] // rows), -(-packed.shape[1] // columns)),
        (packed.shape[0], packed.shape[1]),
        (rows, columns),
    )
    return packed.float() * spread
