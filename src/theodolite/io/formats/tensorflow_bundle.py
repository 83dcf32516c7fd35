"""TensorFlow: ``NAME.index``, a sorted table of names, types, shapes and places, beside ``NAME.data-00000-of-00001``.

The table is one of LevelDB: blocks of keys, each written as what it has more than the one before, found by an index block that
the last 48 bytes lead to. Values are protocol buffers. Read here without the library; what is not numbers is named.
"""

import math
from collections.abc import Iterator
from pathlib import Path

import torch

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
        entries = dict(_table(path.read_bytes()))
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
    fields = [_fields(part) for part in _messages(_fields(_message(entry, 2)), 2)]
    shape = checked_shape([_number(dimension, 1) for dimension in fields])
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
    footer = raw[-FOOTER:]
    _, place = _handle(footer, 0)
    index, _ = _handle(footer, place)
    count = 0
    for _, value in _entries(_block(raw, index)):
        for key, entry in _entries(_block(raw, _handle(value, 0)[0])):
            count += 1
            if count > MOST_TENSORS:
                raise ValueError(f"more than {MOST_TENSORS:,} names")
            yield key, entry


def _handle(raw: bytes, place: int) -> tuple[tuple[int, int], int]:
    offset, place = _varint(raw, place)
    size, place = _varint(raw, place)
    return (offset, size), place


def _block(raw: bytes, handle: tuple[int, int]) -> bytes:
    offset, size = handle
    if offset + size + 5 > len(raw):
        raise ValueError(f"a block at byte {offset:,} of {len(raw):,}")
    if raw[offset + size]:
        raise ValueError("a packed block")
    return raw[offset : offset + size]


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    if len(block) < 4:
        raise ValueError("a block without an end")
    end = len(block) - 4 * (1 + int.from_bytes(block[-4:], "little"))
    place, key = 0, b""
    while place < end:
        shared, place = _varint(block, place)
        more, place = _varint(block, place)
        length, place = _varint(block, place)
        if shared > len(key) or place + more + length > end:
            raise ValueError("a name that leads out of its block")
        key = key[:shared] + block[place : place + more]
        yield key, block[place + more : place + more + length]
        place += more + length


def _varint(raw: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = raw[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
    raise ValueError("a number of more than ten bytes")


def _fields(raw: bytes) -> Fields:
    """The fields of a protocol buffer: numbers, and bytes of what has a length."""
    found: Fields = {}
    place = 0
    while place < len(raw):
        tag, place = _varint(raw, place)
        value: int | bytes
        if tag & 7 == 0:
            value, place = _varint(raw, place)
        else:
            length = {1: 8, 5: 4}.get(tag & 7)
            if length is None:
                length, place = _varint(raw, place)
            if tag & 7 not in (1, 2, 5) or place + length > len(raw):
                raise ValueError("a field that leads out of its message")
            value, place = raw[place : place + length], place + length
        found.setdefault(tag >> 3, []).append(value)
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


def _messages(fields: Fields, key: int) -> list[bytes]:
    return [value for value in fields.get(key, []) if isinstance(value, bytes)]


format = Format("TensorFlow", recognizes, weights)
