"""What every format has in common: how it is recognized, tensors at a place in a file, and words that are safe to print."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite.core.checks import InputError
from theodolite.core.lazy_torch import dtype_of, kind_of, torch
from theodolite.io.files import printable
from theodolite.io.weights import Weight, Weights

if TYPE_CHECKING:
    from torch import Tensor

HEAD = 4096
"""First bytes that formats are shown."""

MOST_TENSORS = 200_000
MOST_AXES = 64
LONGEST_NAME = 240

PLAIN = ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool")
"""Types that numpy has too."""

BLOCK = 1 << 24
"""Bytes of a tensor that are read at a time on their way to a device."""


@dataclass(frozen=True)
class Format:
    """``recognizes`` is given the first bytes and the path; ``weights`` lists the tensors without reading them.

    Formats without a signature of their own are asked ``last``.
    """

    words: str
    recognizes: Callable[[bytes, Path], bool]
    weights: Callable[[Path], Weights]
    last: bool = False


@dataclass(frozen=True)
class Place:
    """A tensor that lies in a file as it is in memory; calling it reads it. ``stride`` is in entries; None: row by row.

    ``kind`` is the name of its type, or torch's type.

    Reading is by ``read``, not by memory map: a file that was cut short meanwhile is then an error, not a signal.
    """

    path: str
    offset: int
    kind: Any
    shape: tuple[int, ...]
    stride: tuple[int, ...] | None = None
    swapped: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", kind_of(self.kind))

    @property
    def dtype(self) -> torch.dtype:
        """Torch's type of the numbers."""
        return dtype_of(self.kind)

    def array(self) -> Any:
        """The numbers as an array where numpy has their type, without torch; else the tensor."""
        if self.stride is not None or self.swapped or self.kind not in PLAIN:
            return self()
        flat = np.empty(math.prod(self.shape), dtype=self.kind)
        if flat.size:
            filled(flat.view(np.uint8).data, self.path, self.offset)
        return flat.reshape(self.shape)

    def __call__(self) -> Tensor:
        """The tensor."""
        count = math.prod(self.shape) if self.stride is None else span(self.shape, self.stride)
        flat = torch.empty(count, dtype=self.dtype)
        if count:
            read_into(flat, self.path, self.offset)
        if self.swapped:
            flat = byteswapped(flat)
        return flat.reshape(self.shape) if self.stride is None else flat.as_strided(self.shape, self.stride)

    def onto(self, device: str) -> Tensor:
        """The tensor on a device; a large one block by block, so that this machine's memory never holds all of it."""
        count, size = math.prod(self.shape), self.dtype.itemsize
        if self.stride is not None or self.swapped or count * size <= BLOCK:
            return self().to(device)
        flat = torch.empty(count, dtype=self.dtype, device=device)
        block = torch.empty(BLOCK // size, dtype=self.dtype)
        for start in range(0, count, len(block)):
            part = block[: count - start]
            read_into(part, self.path, self.offset + start * size)
            flat[start : start + len(part)].copy_(part)
        return flat.reshape(self.shape)


@dataclass(frozen=True)
class InMemory:
    """A tensor that is already there."""

    tensor: Tensor

    def __call__(self) -> Tensor:
        """The tensor."""
        return self.tensor


@dataclass(frozen=True)
class Unreadable:
    """A tensor that cannot be read, and why: calling it says so."""

    reason: str

    def __call__(self) -> Tensor:
        """Raise the reason."""
        raise InputError(self.reason)


def unreadable(name: str, reason: str) -> Weight:
    """A weight whose place is known and whose values are not."""
    return Weight(name, (), "float32", Unreadable(printable(" ".join(reason.split()), 360)))


def span(shape: tuple[int, ...], stride: tuple[int, ...]) -> int:
    """How many entries of the storage a strided tensor reaches over."""
    return 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True)) if math.prod(shape) else 0


def read_into(flat: Tensor, path: str, offset: int) -> None:
    """Fill a flat tensor with the bytes from ``offset`` on."""
    filled(flat.view(torch.uint8).numpy().data, path, offset)


def filled(view: memoryview, path: str, offset: int) -> None:
    """Fill the memory with the bytes from ``offset`` on."""
    with open(path, "rb", buffering=0) as file:
        file.seek(offset)
        while len(view):
            got = file.readinto(view)
            if not got:
                raise InputError(f"expected {len(view):,} bytes more in {path}, got its end; copy or download it again")
            view = view[got:]


def byteswapped(flat: Tensor) -> Tensor:
    """The numbers of the other byte order."""
    size = flat.element_size()
    return flat.view(torch.uint8).reshape(-1, size).flip(1).contiguous().view(flat.dtype).flatten()


def source_of(path: Path) -> str:
    """What identifies a file's content well enough to keep what was computed from it."""
    facts = path.stat()
    return f"{path.resolve()}:{facts.st_size}:{facts.st_mtime_ns}"


def damaged(kind: str, path: Path, got: object) -> InputError:
    """The error for a file that is not what it says it is."""
    words = printable(" ".join(str(got).split()), 160) or type(got).__name__
    size = path.stat().st_size if path.exists() else 0
    return InputError(f"expected a whole {kind}, got {path}, {size:,} bytes: {words}; copy or download it again")


def checked_shape(shape: object) -> tuple[int, ...]:
    """A shape of whole numbers that are not negative, of at most 64 axes and 2^62 entries."""
    if not isinstance(shape, list | tuple) or not all(type(size) is int and 0 <= size < 2**62 for size in shape):
        raise ValueError("a shape that is not a list of sizes")
    if len(shape) > MOST_AXES:
        raise ValueError(f"a tensor of {len(shape)} axes, of {MOST_AXES} at most")
    if math.prod(size for size in shape if size) >= 2**62:
        raise ValueError("a tensor of more entries than any memory has")
    return tuple(shape)
