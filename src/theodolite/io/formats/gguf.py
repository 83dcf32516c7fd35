"""GGUF, the format of llama.cpp: facts, names and places, then tensors; blocks of few bits become float32 when read.

The layouts of blocks are those of ggml. A block holds 32 or 256 numbers with a scale of their own in half precision.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from theodolite.io.formats._bytes import Cursor
from theodolite.io.formats._format import (
    MOST_TENSORS,
    Format,
    Place,
    checked_shape,
    damaged,
    read_into,
    source_of,
    unreadable,
)
from theodolite.io.weights import Weight, Weights

KIND = "GGUF file"
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of a value of each type among the facts; 8 is a word, 9 a list."""

PLAIN = {
    0: torch.float32,
    1: torch.float16,
    24: torch.int8,
    25: torch.int16,
    26: torch.int32,
    27: torch.int64,
    28: torch.float64,
    30: torch.bfloat16,
}
NAMES = {9: "Q8_1", 10: "Q2_K", 11: "Q3_K", 15: "Q8_K", 16: "IQ2_XXS", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4"}
Floats = NDArray[np.float32]
Raw = NDArray[np.uint8]


def recognizes(head: bytes, path: Path) -> bool:
    """By its magic number."""
    return head.startswith(b"GGUF")


def weights(path: Path) -> Weights:
    """Every tensor, by name."""
    try:
        with Cursor(str(path)) as cursor:
            return _listed(cursor, path)
    except (ValueError, OSError, UnicodeDecodeError, OverflowError, RecursionError) as error:
        raise damaged(KIND, path, error) from error


def _listed(cursor: Cursor, path: Path) -> Weights:
    cursor.skip(4)
    version = cursor.number(4)
    if version not in (2, 3):
        raise ValueError(f"version {version}, of 2 or 3")
    count, facts = cursor.number(8), cursor.number(8)
    if count > MOST_TENSORS or facts > MOST_TENSORS:
        raise ValueError(f"{count:,} tensors and {facts:,} facts, of {MOST_TENSORS:,} at most")
    alignment = 32
    for _ in range(facts):
        key, kind = _word(cursor), cursor.number(4)
        if key == "general.alignment" and kind == 4:
            alignment = cursor.number(4)
        else:
            _pass_over(cursor, kind)
    if not 1 <= alignment <= 1 << 20:
        raise ValueError(f"an alignment of {alignment}")
    entries = [_entry(cursor) for _ in range(count)]
    if len({name for name, *_ in entries}) != len(entries):
        raise ValueError("a name twice")
    start = -(-cursor.place // alignment) * alignment
    source = source_of(path)
    return {
        name: _weight(name, shape, kind, (str(path.absolute()), start + offset, cursor.end), source)
        for name, shape, kind, offset in entries
    }


def _word(cursor: Cursor) -> str:
    return cursor.take(cursor.number(8)).decode("utf-8", "surrogateescape")


def _pass_over(cursor: Cursor, kind: int, depth: int = 0) -> None:
    if kind == 8:
        cursor.skip(cursor.number(8))
    elif kind == 9 and depth < 4:
        inner, count = cursor.number(4), cursor.number(8)
        if inner in SIZES:
            cursor.skip(SIZES[inner] * count)
        elif count > cursor.end:
            raise ValueError(f"a list of {count:,}")
        else:
            for _ in range(count):
                _pass_over(cursor, inner, depth + 1)
    elif kind in SIZES:
        cursor.skip(SIZES[kind])
    else:
        raise ValueError(f"a fact of type {kind}")


def _entry(cursor: Cursor) -> tuple[str, tuple[int, ...], int, int]:
    name, axes = _word(cursor), cursor.number(4)
    if axes > 8:
        raise ValueError(f"a tensor of {axes} axes")
    shape = checked_shape([cursor.number(8) for _ in range(axes)][::-1])
    return name, shape, cursor.number(4), cursor.number(8)


def _weight(name: str, shape: tuple[int, ...], kind: int, where: tuple[str, int, int], source: str) -> Weight:
    path, offset, end = where
    count = math.prod(shape)
    if kind in PLAIN:
        dtype, size = PLAIN[kind], count * PLAIN[kind].itemsize
        read: Callable[[], Tensor] = Place(path, offset, dtype, shape)
    elif kind in BLOCKS:
        entries, length, _ = BLOCKS[kind]
        if not shape or shape[-1] % entries:
            raise ValueError(f"rows of {shape[-1] if shape else 0} in blocks of {entries}")
        dtype, size = torch.float32, count // entries * length
        read = Blocks(path, offset, kind, shape)
    else:
        return unreadable(
            name,
            f"expected a known type for {name}, got {NAMES.get(kind, f'number {kind}')}; convert it to Q8_0 or F16",
        )
    if offset + size > end:
        raise ValueError(f"{name} at bytes {offset:,} to {offset + size:,} of {end:,}")
    return Weight(name, shape, dtype, read, source)


@dataclass(frozen=True)
class Blocks:
    """A tensor in blocks of few bits; calling it gives its numbers."""

    path: str
    offset: int
    kind: int
    shape: tuple[int, ...]

    def __call__(self) -> Tensor:
        """The numbers in float32, unpacked in pieces."""
        entries, length, unpacked = BLOCKS[self.kind]
        count = math.prod(self.shape) // entries
        raw = torch.empty(count * length, dtype=torch.uint8)
        if count:
            read_into(raw, self.path, self.offset)
        blocks, found = raw.numpy().reshape(count, length), np.empty((count, entries), np.float32)
        step = max(1, (1 << 20) // entries)
        for first in range(0, count, step):
            found[first : first + step] = unpacked(blocks[first : first + step])
        return torch.from_numpy(found).reshape(self.shape)


def _half(raw: Raw) -> Floats:
    return np.ascontiguousarray(raw).view("<f2").astype(np.float32)  # (blocks, 1)


def _nibbles(raw: Raw) -> Floats:
    return np.concatenate([raw & 15, raw >> 4], axis=1).astype(np.float32)


def _q8_0(b: Raw) -> Floats:
    return _half(b[:, :2]) * b[:, 2:].view(np.int8).astype(np.float32)


def _q4_0(b: Raw) -> Floats:
    return _half(b[:, :2]) * (_nibbles(b[:, 2:]) - 8)


def _q4_1(b: Raw) -> Floats:
    return _half(b[:, :2]) * _nibbles(b[:, 4:]) + _half(b[:, 2:4])


def _fifth_bits(raw: Raw) -> Floats:
    return np.unpackbits(np.ascontiguousarray(raw), axis=1, bitorder="little").astype(np.float32) * 16


def _q5_0(b: Raw) -> Floats:
    return _half(b[:, :2]) * (_nibbles(b[:, 6:]) + _fifth_bits(b[:, 2:6]) - 16)


def _q5_1(b: Raw) -> Floats:
    return _half(b[:, :2]) * (_nibbles(b[:, 8:]) + _fifth_bits(b[:, 4:8])) + _half(b[:, 2:4])


def _scales_and_mins(b: Raw) -> tuple[Floats, Floats]:
    """Eight scales and eight minima of six bits each, in twelve bytes: four whole, four whose high bits lie in these."""
    first, second, third = b[:, 0:4], b[:, 4:8], b[:, 8:12]
    scale = np.concatenate([first & 63, (third & 15) | ((first >> 6) << 4)], axis=1)
    least = np.concatenate([second & 63, (third >> 4) | ((second >> 6) << 4)], axis=1)
    return scale.astype(np.float32)[:, :, None], least.astype(np.float32)[:, :, None]


def _eights(b: Raw) -> Floats:
    """128 bytes as eight rows of 32: the low halves of each 32 bytes, then their high halves."""
    four = b.reshape(-1, 4, 1, 32)
    return np.concatenate([four & 15, four >> 4], axis=2).reshape(-1, 8, 32).astype(np.float32)


def _q4_k(b: Raw) -> Floats:
    scale, least = _scales_and_mins(b[:, 4:16])
    found = _half(b[:, :2])[:, :, None] * scale * _eights(b[:, 16:]) - _half(b[:, 2:4])[:, :, None] * least
    return np.asarray(found.reshape(-1, 256))


def _q5_k(b: Raw) -> Floats:
    scale, least = _scales_and_mins(b[:, 4:16])
    high = (b[:, 16:48].reshape(-1, 1, 32) >> np.arange(8, dtype=np.uint8)[:, None]) & 1
    whole = _eights(b[:, 48:]) + 16 * high.astype(np.float32)
    found = _half(b[:, :2])[:, :, None] * scale * whole - _half(b[:, 2:4])[:, :, None] * least
    return np.asarray(found.reshape(-1, 256))


def _q6_k(b: Raw) -> Floats:
    low, high = b[:, :128].reshape(-1, 2, 1, 64), b[:, 128:192].reshape(-1, 2, 1, 32)
    four = np.concatenate([low & 15, low >> 4], axis=2).reshape(-1, 2, 4, 32)
    two = (high >> np.array([0, 2, 4, 6], np.uint8)[:, None]) & 3
    whole = (four | (two << 4)).astype(np.float32).reshape(-1, 16, 16) - 32
    scale = np.ascontiguousarray(b[:, 192:208]).view(np.int8).astype(np.float32)[:, :, None]
    return np.asarray((_half(b[:, 208:210])[:, :, None] * scale * whole).reshape(-1, 256))


BLOCKS: dict[int, tuple[int, int, Callable[[Raw], Floats]]] = {
    2: (32, 18, _q4_0),
    3: (32, 20, _q4_1),
    6: (32, 22, _q5_0),
    7: (32, 24, _q5_1),
    8: (32, 34, _q8_0),
    12: (256, 144, _q4_k),
    13: (256, 176, _q5_k),
    14: (256, 210, _q6_k),
}
"""By type: numbers of a block, its bytes, and how they are unpacked."""

format = Format("GGUF", recognizes, weights)
