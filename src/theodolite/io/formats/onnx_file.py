"""ONNX: the initializers and constants of the graph and of those inside it, found by a small reader; nothing of it is run."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from theodolite.io.formats._bytes import Cursor
from theodolite.io.formats._format import MOST_TENSORS, Format, Place, checked_shape, damaged, source_of, unreadable
from theodolite.io.weights import Weight, Weights

KIND = "ONNX file"
GRAPH, FUNCTION, NODE, INITIALIZER = 7, 25, 1, 5
OUTPUT, ATTRIBUTE, VALUE, INNER, SEVERAL, INNERS = 2, 5, 5, 6, 10, 11
DIMS, TYPE, FLOATS, INT32S, INT64S, NAME, RAW, DOUBLES, UINT64S, EXTERNAL = 1, 2, 4, 5, 7, 8, 9, 10, 11, 13
"""Numbers of the fields of ModelProto, GraphProto, NodeProto, AttributeProto and TensorProto."""

DEEPEST = 16
"""Graphs inside one another, such as the branches of an If."""

TYPES = {
    1: torch.float32,
    2: torch.uint8,
    3: torch.int8,
    4: torch.uint16,
    5: torch.int16,
    6: torch.int32,
    7: torch.int64,
    9: torch.bool,
    10: torch.float16,
    11: torch.float64,
    12: torch.uint32,
    13: torch.uint64,
    14: torch.complex64,
    15: torch.complex128,
    16: torch.bfloat16,
    17: torch.float8_e4m3fn,
    19: torch.float8_e5m2,
}

OF_KIND = {
    torch.float32: FLOATS,
    torch.float64: DOUBLES,
    torch.int64: INT64S,
    torch.uint32: UINT64S,
    torch.uint64: UINT64S,
    torch.complex64: -1,
    torch.complex128: -1,
}
"""The field that holds numbers one by one; of all other types 32 bits each, of small floats their bits."""


@dataclass(frozen=True)
class Groups:
    """A tensor whose numbers lie one after the other in groups of seven bits; calling it reads it."""

    path: str
    start: int
    length: int
    dtype: torch.dtype
    shape: tuple[int, ...]

    def __call__(self) -> torch.Tensor:
        """The tensor."""
        with Cursor(self.path, self.start) as cursor:
            groups = np.frombuffer(cursor.take(self.length, most=self.length), dtype=np.uint8)
        last = np.flatnonzero(groups < 0x80)
        first = np.concatenate([[0], last[:-1] + 1])
        if len(last) != math.prod(self.shape) or last[-1] + 1 != len(groups):
            raise ValueError(f"expected {math.prod(self.shape):,} numbers, got {len(last):,}; save the model again")
        place = np.arange(len(groups)) - np.repeat(first, last + 1 - first)
        bits = (groups & 0x7F).astype(np.uint64) << np.minimum(7 * place, 63).astype(np.uint64)
        numbers = torch.from_numpy(np.add.reduceat(bits, first).view(np.int64)).reshape(self.shape)
        if self.dtype.is_floating_point:
            return numbers.to(torch.int16 if self.dtype.itemsize == 2 else torch.uint8).view(self.dtype)
        return numbers.to(self.dtype)


def recognizes(head: bytes, path: Path) -> bool:
    """No signature: a first field that is a small version, and a graph among the fields that fill the file."""
    if len(head) < 4 or head[0] != 8 or not 1 <= head[1] <= 32:
        return path.suffix.lower() == ".onnx"
    try:
        with Cursor(str(path)) as cursor:
            return any(number == GRAPH for number, _, _ in cursor.fields(cursor.end))
    except (ValueError, OSError):
        return path.suffix.lower() == ".onnx"


def weights(path: Path) -> Weights:
    """Every initializer, by name."""
    try:
        source = source_of(path)
        found: dict[str, Weight] = {}
        with Cursor(str(path)) as cursor:
            for tensor in _tensors(cursor):
                if len(found) >= MOST_TENSORS:
                    raise ValueError(f"more than {MOST_TENSORS:,} tensors")
                name, number = tensor.name, 2
                while tensor.name in found:  # graphs inside have names of their own
                    tensor.name, number = f"{name} ({number})", number + 1
                found[tensor.name] = _weight(tensor, path, source)
        return found
    except (ValueError, OSError, UnicodeDecodeError, OverflowError) as error:
        raise damaged(KIND, path, error) from error


@dataclass
class _Tensor:
    name: str = ""
    dims: list[int] = field(default_factory=list)
    kind: int = 0
    places: dict[int, tuple[int, int]] = field(default_factory=dict)
    external: dict[str, str] = field(default_factory=dict)


def _tensors(cursor: Cursor) -> Iterator[_Tensor]:
    for number, start, length in cursor.fields(cursor.end):
        if number in (GRAPH, FUNCTION) and start >= 0:
            cursor.move(start)
            yield from _inside(cursor, start + length, nodes=NODE if number == GRAPH else 7, depth=0)


def _inside(cursor: Cursor, end: int, *, nodes: int, depth: int) -> Iterator[_Tensor]:
    """The tensors of a graph, or of a function, whose nodes are its field of another number."""
    if depth > DEEPEST:
        raise ValueError(f"more than {DEEPEST} graphs inside one another")
    for number, start, length in cursor.fields(end):
        if start < 0:
            continue
        cursor.move(start)
        if number == INITIALIZER and nodes == NODE:
            yield _described(cursor, start + length)
        elif number == nodes:
            yield from _of_node(cursor, start + length, depth)


def _of_node(cursor: Cursor, end: int, depth: int) -> Iterator[_Tensor]:
    """The tensors among the attributes of a node, by the name of what it gives, and those of the graphs among them."""
    output, attributes = "", []
    for number, start, length in cursor.fields(end):
        if number == OUTPUT and start >= 0 and not output:
            output = _text(cursor, start, length)
        elif number == ATTRIBUTE and start >= 0:
            attributes.append((start, start + length))
    for first, last in attributes:
        cursor.move(first)
        for number, start, length in cursor.fields(last):
            if start < 0:
                continue
            if number in (VALUE, SEVERAL):
                cursor.move(start)
                tensor = _described(cursor, start + length)
                tensor.name = output or tensor.name
                yield tensor
            elif number in (INNER, INNERS):
                cursor.move(start)
                yield from _inside(cursor, start + length, nodes=NODE, depth=depth + 1)


def _described(cursor: Cursor, end: int) -> _Tensor:
    tensor = _Tensor()
    for number, start, value in cursor.fields(end):
        if number == DIMS and start < 0:
            tensor.dims.append(value)
        elif number == DIMS:
            cursor.move(start)
            while cursor.place < start + value:
                tensor.dims.append(cursor.varint())
        elif number == TYPE and start < 0:
            tensor.kind = value
        elif number == NAME and start >= 0:
            cursor.move(start)
            tensor.name = cursor.take(value).decode("utf-8", "surrogateescape")
        elif number == EXTERNAL and start >= 0:
            cursor.move(start)
            words = {n: _text(cursor, s, v) for n, s, v in cursor.fields(start + value) if s >= 0}
            tensor.external[words.get(1, "")] = words.get(2, "")
        elif start >= 0:
            tensor.places[number] = (start, value)
        if len(tensor.dims) > 64:
            raise ValueError("a tensor of more than 64 axes")
    return tensor


def _text(cursor: Cursor, start: int, length: int) -> str:
    cursor.move(start)
    return cursor.take(length).decode("utf-8", "surrogateescape")


def _weight(tensor: _Tensor, path: Path, source: str) -> Weight:
    name, shape, dtype = tensor.name or "tensor", checked_shape(tensor.dims), TYPES.get(tensor.kind)
    if dtype is None:
        return unreadable(name, f"expected a type of numbers for {name}, got ONNX type {tensor.kind}; convert it first")
    size = math.prod(shape) * dtype.itemsize
    typed = OF_KIND.get(dtype, INT32S)
    for place in (RAW, typed):
        if place in tensor.places and (size or place == RAW):
            start, length = tensor.places[place]
            if place not in (RAW, FLOATS, DOUBLES):
                return Weight(name, shape, dtype, Groups(str(path.absolute()), start, length, dtype, shape), source)
            if length != size:
                raise ValueError(f"{length:,} bytes for {name} of shape {list(shape)}, {dtype}")
            return Weight(name, shape, dtype, Place(str(path.absolute()), start, dtype, shape), source)
    if tensor.external:
        return _outside(name, shape, dtype, tensor, path)
    if not size:
        return Weight(name, shape, dtype, Place(str(path.absolute()), 0, dtype, shape), source)
    return unreadable(name, f"expected the numbers of {name}, got none; save the model with raw_data")


def _outside(name: str, shape: tuple[int, ...], dtype: torch.dtype, tensor: _Tensor, path: Path) -> Weight:
    """A tensor whose bytes lie in a file beside this one, and nowhere else."""
    location = tensor.external.get("location", "")
    beside = path.parent / Path(location).name
    size = math.prod(shape) * dtype.itemsize
    offset = int(tensor.external.get("offset") or 0)
    if location != Path(location).name or not beside.is_file():
        return unreadable(name, f"expected {name} in a file next to {path}, got {location!r}; copy it there")
    if offset < 0 or offset + size > beside.stat().st_size:
        return unreadable(name, f"expected {size:,} bytes of {name} in {beside}, got fewer; copy it again")
    return Weight(name, shape, dtype, Place(str(beside.absolute()), offset, dtype, shape), source_of(beside))


format = Format("ONNX", recognizes, weights, last=True)
