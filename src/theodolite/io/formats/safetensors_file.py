"""Safetensors: a length, a header of names, types, shapes and places in JSON, then the bytes. Read here without the library.

What the header says is held against the size of the file before anything is allocated: places inside it, one after the other
without overlap, as many bytes as shape and type ask for, each name once.
"""

import json
import math
from pathlib import Path
from typing import Any

from theodolite.io.files import printable
from theodolite.io.formats._format import MOST_TENSORS, Format, Place, checked_shape, damaged, source_of, unreadable
from theodolite.io.weights import Listed, Weight, Weights

LONGEST_HEADER = 32_000_000
KIND = "safetensors file"
ODD_METADATA = "tolerated: metadata that is not words by name, for which the library safetensors refuses the file"

DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U64": "uint64",
    "U32": "uint32",
    "U16": "uint16",
    "U8": "uint8",
    "BOOL": "bool",
    "C64": "complex64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
}

SIZES = {kind: int(name[1:].split("_")[0]) // 8 for name, kind in DTYPES.items() if name[0] != "B"} | {
    "bfloat16": 2,
    "bool": 1,
}
"""Bytes of a number."""


def recognizes(head: bytes, path: Path) -> bool:
    """A length of eight bytes, then a brace; a file of that suffix is one whatever it begins with, to be named as damaged."""
    return path.suffix.lower() == ".safetensors" or (len(head) > 8 and head[8:9] == b"{" and head[5:8] == b"\0\0\0")


def weights(path: Path) -> Weights:
    """Every tensor, by name."""
    try:
        header, start = _header(path)
        entries = {name: facts for name, facts in header.items() if name != "__metadata__"}
        if len(entries) > MOST_TENSORS:
            raise ValueError(f"{len(entries):,} tensors, of {MOST_TENSORS:,} at most")
        _check_places(entries, path.stat().st_size - start)
        source = source_of(path)
        made = {name: _weight(name, facts, path, start, source) for name, facts in entries.items()}
        told = header.get("__metadata__", {})
        plain = isinstance(told, dict) and all(isinstance(value, str) for value in told.values())
        return made if plain else Listed(made, {ODD_METADATA: ("__metadata__",)})
    except (ValueError, KeyError, TypeError, RecursionError, OSError, MemoryError) as error:
        raise damaged(KIND, path, error) from error


def _header(path: Path) -> tuple[dict[str, Any], int]:
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 10 or not 2 <= length <= min(size - 8, LONGEST_HEADER):
            raise ValueError(f"a header of {length:,} bytes")
        text = file.read(length)
    header = json.loads(text.decode("utf-8"), object_pairs_hook=_once)
    if not isinstance(header, dict):
        raise ValueError("a header that is not an object")
    return header, 8 + length


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1) if len(names) < 1000 else "a name"
        raise ValueError(f"{printable(twice, 60)} twice in the header")
    return found


def _check_places(entries: dict[str, Any], room: int) -> None:
    """The places follow one another from 0 to the end of the file."""
    end = 0
    for first, last, name in sorted((*_offsets(name, facts), name) for name, facts in entries.items()):
        if first != end:
            raise ValueError(f"{printable(name, 60)} at byte {first:,} after one that ends at {end:,}")
        end = last
    if end != room:
        raise ValueError(f"tensors of {end:,} bytes in {room:,}")


def _offsets(name: str, facts: Any) -> tuple[int, int]:
    first, last = facts["data_offsets"]
    if type(first) is not int or type(last) is not int or not 0 <= first <= last:
        raise ValueError(f"no place for {printable(name, 60)}")
    return first, last


def _weight(name: str, facts: Any, path: Path, start: int, source: str) -> Weight:
    shape, (first, last) = checked_shape(facts["shape"]), facts["data_offsets"]
    dtype = DTYPES.get(facts["dtype"])
    if dtype is None:
        kind = printable(str(facts["dtype"]), 20)
        return unreadable(name, f"expected a type that torch has for {name}, got {kind}; convert it first")
    if last - first != math.prod(shape) * SIZES[dtype]:
        raise ValueError(f"{last - first:,} bytes for {printable(name, 60)} of shape {list(shape)}, {dtype}")
    return Weight(name, shape, dtype, Place(str(path.absolute()), start + first, dtype, shape), source)


format = Format("safetensors", recognizes, weights)
