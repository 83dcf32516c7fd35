"""TensorFlow: ``NAME.index``, a sorted table of names, types, shapes and places, beside ``NAME.data-00000-of-00001``.

The table is one of LevelDB: blocks of keys, each written as what it has more than the one before, found by an index block that
the last 48 bytes lead to. Values are protocol buffers. Read here without the library; what is not numbers is named.
"""

import math
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import torch

from theodolite.io.formats._bytes import Cursor
from theodolite.io.formats._format import MOST_TENSORS, Format, Place, checked_shape, damaged, source_of, unreadable
from theodolite.io.weights import Listed, Weight, Weights

KIND = "TensorFlow checkpoint"
MAGIC = (0xDB4775248B80FB57).to_bytes(8, "little")
FOOTER, LARGEST = 48, 1 << 27
VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"
COUNTERS = ("save_counter", "_CHECKPOINTABLE_OBJECT_GRAPH")
DTYPES = {
    1: torch.float32,
    2: torch.float64,
    3: torch.int32,
    4: torch.uint8,
    5: torch.int16,
    6: torch.int8,
    8: torch.complex64,
    9: torch.int64,
    10: torch.bool,
    14: torch.bfloat16,
    17: torch.uint16,
    19: torch.float16,
    22: torch.uint32,
    23: torch.uint64,
}
Fields = dict[int, list[int | bytes]]


def recognizes(head: bytes, path: Path) -> bool:
    """By the number that tables end with."""
    if path.suffix != ".index" or path.stat().st_size < FOOTER:
        return path.suffix == ".index"
    with path.open("rb") as file:
        file.seek(-8, 2)
        return file.read(8) == MAGIC


def weights(path: Path) -> Weights:
    """Every variable, by name; those of an optimizer and counters are left out."""
    try:
        if path.stat().st_size > LARGEST:
            raise ValueError(f"an index of {path.stat().st_size:,} bytes")
        entries = dict(islice(_table(path.read_bytes()), MOST_TENSORS + 2))
        if len(entries) > MOST_TENSORS + 1:
            raise ValueError(f"more than {MOST_TENSORS:,} names")
        header = _fields(entries.pop(b"", b""))
        if _number(header, 2):
            raise ValueError("numbers of the other byte order")
        shards = _number(header, 1)
        found, others = {}, []
        for key, value in entries.items():
            name = key.decode("utf-8", "replace").removesuffix(VALUE)
            if name in COUNTERS or any(word in ("optimizer", ".OPTIMIZER_SLOT") for word in name.split("/")):
                others.append(name)
                continue
            found[name] = _weight(name, _fields(value), path, shards)
        return Listed(found, {"state of an optimizer or of the saving, not weights": tuple(others)})
    except (ValueError, KeyError, IndexError, OSError, OverflowError) as error:
        raise damaged(KIND, path, error) from error


def _weight(name: str, entry: Fields, path: Path, shards: int) -> Weight:
    kind, offset, size = _number(entry, 1), _number(entry, 4), _number(entry, 5)
    dtype = DTYPES.get(kind)
    if dtype is None:
        return unreadable(name, f"expected numbers in {name} of {path}, got values of type {kind}; leave it out")
    if 7 in entry:
        return unreadable(name, f"expected {name} in one piece, got slices; load and save it in one process")
    sides = [_fields(part) for part in _fields(_message(entry, 2)).get(2, []) if isinstance(part, bytes)]
    shape = checked_shape([_number(side, 1) for side in sides])
    data = path.with_name(f"{path.stem}.data-{_number(entry, 3):05d}-of-{shards:05d}")
    if not data.is_file():
        return unreadable(name, f"expected {data.name} next to {path}, got no such file; copy all files of it")
    if size != math.prod(shape) * dtype.itemsize or offset + size > data.stat().st_size:
        return unreadable(name, f"expected {size:,} bytes of {name} in {data.name}, got fewer; copy it again")
    source = f"{source_of(path)}|{source_of(data)}"
    return Weight(name, shape, dtype, Place(str(data.absolute()), offset, dtype, shape), source)


def _table(raw: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Every key with its value."""
    if len(raw) < FOOTER or raw[-8:] != MAGIC:
        raise ValueError("no end of a table")
    footer = Cursor(raw, len(raw) - FOOTER)
    _handle(footer)
    for _, value in _entries(_block(raw, *_handle(footer))):
        yield from _entries(_block(raw, *_handle(Cursor(value))))


def _handle(cursor: Cursor) -> tuple[int, int]:
    """Where a block lies, and its bytes."""
    return cursor.varint(), cursor.varint()


def _block(raw: bytes, offset: int, size: int) -> bytes:
    if offset + size + 5 > len(raw):
        raise ValueError(f"a block at byte {offset:,} of {len(raw):,}")
    if raw[offset + size]:
        raise ValueError("a packed block")
    return raw[offset : offset + size]


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    if len(block) < 4:
        raise ValueError("a block without an end")
    end = len(block) - 4 * (1 + int.from_bytes(block[-4:], "little"))
    cursor, key = Cursor(block, end=max(0, end)), b""
    while cursor.place < end:
        shared, more, length = cursor.varint(), cursor.varint(), cursor.varint()
        if shared > len(key):
            raise ValueError("a name that leads out of its block")
        key = key[:shared] + cursor.take(more, LARGEST)
        yield key, cursor.take(length, LARGEST)


def _fields(raw: bytes) -> Fields:
    """The fields of a protocol buffer: numbers, and bytes of what has a length."""
    found: Fields = {}
    for number, start, value in Cursor(raw).fields(len(raw)):
        found.setdefault(number, []).append(value if start < 0 else raw[start : start + value])
    return found


def _number(fields: Fields, key: int) -> int:
    value = fields.get(key, [0])[-1]
    if not isinstance(value, int) or value >= 2**62:
        raise ValueError("no number where one should be")
    return value


def _message(fields: Fields, key: int) -> bytes:
    value = fields.get(key, [b""])[-1]
    if not isinstance(value, bytes):
        raise ValueError("no message where one should be")
    return value


format = Format("TensorFlow", recognizes, weights)
