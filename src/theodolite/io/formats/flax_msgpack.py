"""Flax: nested maps in msgpack, arrays as extensions of (shape, type, bytes); large arrays come in chunks."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from theodolite.io.formats._bytes import Cursor
from theodolite.io.formats._format import MOST_TENSORS, Format, Place, checked_shape, damaged, source_of, unreadable
from theodolite.io.weights import Weight, Weights

KIND = "flax msgpack file"
DEEPEST = 64
ARRAY, SCALAR = 1, 3
CHUNKED = "__msgpack_chunked_array__"
FIXED = {0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}
LENGTHS = {
    0xC4: 1,
    0xC5: 2,
    0xC6: 4,
    0xD9: 1,
    0xDA: 2,
    0xDB: 4,
    0xDC: 2,
    0xDD: 4,
    0xDE: 2,
    0xDF: 4,
    0xC7: 1,
    0xC8: 2,
    0xC9: 4,
}


def recognizes(head: bytes, path: Path) -> bool:
    """No signature: a map whose first key is a word; or the suffix."""
    if path.suffix.lower() == ".msgpack":
        return True
    start = {0xDE: 3, 0xDF: 5}.get(head[0], 1) if head else 0
    is_map = bool(head) and (0x81 <= head[0] <= 0x8F or head[0] in (0xDE, 0xDF))
    if not is_map or len(head) <= start or not (0xA0 <= head[start] <= 0xBF or head[start] in (0xD9, 0xDA)):
        return False
    try:
        return bool(_entries(path))
    except (ValueError, OSError):
        return False


def weights(path: Path) -> Weights:
    """Every array, by the path of its keys."""
    try:
        source = source_of(path)
        return {name: _weight(name, found, source) for name, found in _entries(path).items()}
    except (ValueError, OSError, UnicodeDecodeError, OverflowError) as error:
        raise damaged(KIND, path, error) from error


@dataclass(frozen=True)
class _Chunks:
    """An array that was cut because it is large; calling it puts it together."""

    places: tuple[Place, ...]
    shape: tuple[int, ...]

    def __call__(self) -> Tensor:
        return torch.cat([place().flatten() for place in self.places]).reshape(self.shape)


def _weight(name: str, found: Place | _Chunks | str, source: str) -> Weight:
    if isinstance(found, str):
        return unreadable(name, f"expected an array of numbers in {name}, got {found}; save it in a type of numbers")
    dtype = found.dtype if isinstance(found, Place) else found.places[0].dtype
    return Weight(name, found.shape, dtype, found, source)


def _entries(path: Path) -> dict[str, Place | _Chunks | str]:
    found: dict[str, Place | _Chunks | str] = {}
    with Cursor(str(path)) as cursor:
        _walk(cursor, str(path.absolute()), "", found, 0)
        if cursor.place != cursor.end:
            raise ValueError(f"{cursor.end - cursor.place:,} bytes after the end")
    return found


def _head(cursor: Cursor) -> tuple[str, int]:
    """The kind of the next object and its number of bytes or members."""
    code = cursor.number(1)
    if code < 0x80 or code >= 0xE0 or code in (0xC0, 0xC2, 0xC3):
        return "atom", 0
    if code < 0xC0:
        return ("map", code & 15) if code < 0x90 else ("list", code & 15) if code < 0xA0 else ("word", code & 31)
    if code in FIXED:
        return "atom", FIXED[code]
    if 0xD4 <= code <= 0xD8:
        return "extension", 1 << (code - 0xD4)
    if code not in LENGTHS:
        raise ValueError(f"an object of code {code}")
    length = cursor.number(LENGTHS[code], order="big")
    kinds = {0xC4: "bytes", 0xD9: "word", 0xDC: "list", 0xDE: "map", 0xC7: "extension"}
    return kinds[max(first for first in kinds if first <= code)], length


def _walk(cursor: Cursor, path: str, name: str, found: dict[str, Any], depth: int) -> None:
    if depth > DEEPEST:
        raise ValueError(f"maps nested deeper than {DEEPEST}")
    kind, size = _head(cursor)
    if kind == "map":
        for _ in range(_counted(cursor, size)):
            key = _word(cursor)
            if key == CHUNKED:
                _put(found, name or "tensor", _chunks(cursor, path))
                return
            _walk(cursor, path, f"{name}.{key}" if name else key, found, depth + 1)
    elif kind == "list":
        for place in range(_counted(cursor, size)):
            _walk(cursor, path, f"{name}.{place}", found, depth + 1)
    elif kind == "extension":
        code, end = cursor.number(1), cursor.place + size
        if code in (ARRAY, SCALAR):
            _put(found, name or "tensor", _array(cursor, path))
        cursor.move(end)
    else:
        cursor.skip(size)


def _chunks(cursor: Cursor, path: str) -> _Chunks:
    """What follows the mark of a cut array: true, then its shape and its pieces, both as maps of numbered members."""
    cursor.skip(1)
    members: list[list[Any]] = []
    for wanted in ("shape", "chunks"):
        if _word(cursor) != wanted:
            raise ValueError(f"a cut array without {wanted}")
        kind, count = _head(cursor)
        if kind != "map":
            raise ValueError(f"a cut array without {wanted}")
        members.append([_numbered(cursor, path) for _ in range(_counted(cursor, count))])
    shape, pieces = checked_shape(members[0]), members[1]
    if not pieces or not all(isinstance(piece, Place) and piece.dtype == pieces[0].dtype for piece in pieces):
        raise ValueError("a cut array without pieces of one type")
    if sum(math.prod(piece.shape) for piece in pieces) != math.prod(shape):
        raise ValueError(f"pieces that do not make up shape {list(shape)}")
    return _Chunks(tuple(pieces), shape)


def _numbered(cursor: Cursor, path: str) -> Any:
    """A whole number, or an array, under a number."""
    _word(cursor)
    code, place = cursor.number(1), cursor.place - 1
    cursor.move(place)
    if code < 0x80 or code in (0xCC, 0xCD, 0xCE, 0xCF):
        return _whole(cursor)
    kind, size = _head(cursor)
    if kind != "extension" or cursor.number(1) != ARRAY:
        raise ValueError("a piece that is no array")
    end = cursor.place + size
    found = _array(cursor, path)
    cursor.move(end)
    return found


def _put(found: dict[str, Any], name: str, value: Any) -> None:
    if name in found or len(found) >= MOST_TENSORS:
        raise ValueError(f"{name[:60]} twice, or too many arrays")
    found[name] = value


def _counted(cursor: Cursor, size: int) -> int:
    if size > cursor.end - cursor.place:
        raise ValueError(f"{size:,} members in {cursor.end - cursor.place:,} bytes")
    return size


def _word(cursor: Cursor) -> str:
    kind, size = _head(cursor)
    if kind != "word":
        cursor.skip(size)
        return kind
    return cursor.take(size).decode("utf-8", "surrogateescape")


def _array(cursor: Cursor, path: str) -> Place | str:
    """(shape, type, bytes)."""
    if _head(cursor) != ("list", 3):
        raise ValueError("an array without shape, type and bytes")
    kind, axes = _head(cursor)
    if kind != "list" or axes > DEEPEST:
        raise ValueError("an array without a shape")
    shape = checked_shape([_whole(cursor) for _ in range(axes)])
    dtype = getattr(torch, _word(cursor), None)
    kind, size = _head(cursor)
    start = cursor.skip(size)
    if not isinstance(dtype, torch.dtype):
        return "a type that torch does not have"
    if kind != "bytes" or size != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"{size:,} bytes for shape {list(shape)}, {dtype}")
    return Place(path, start, dtype, shape)


def _whole(cursor: Cursor) -> int:
    code = cursor.number(1)
    if code < 0x80:
        return code
    if code not in (0xCC, 0xCD, 0xCE, 0xCF):
        raise ValueError("a size that is not a whole number")
    return cursor.number(FIXED[code], order="big")


format = Format("flax", recognizes, weights, last=True)
