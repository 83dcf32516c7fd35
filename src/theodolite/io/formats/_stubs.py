"""What stands for the objects of a pickle: tensors and arrays without their values, and husks of everything else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite.core.lazy_torch import dtype_of
from theodolite.io.formats._format import MOST_TENSORS, checked_shape

if TYPE_CHECKING:
    import torch


class Husk:
    """An object of a class that is not built: what it was called with, given as state or filled with."""

    parts: list[tuple[str, Any]]

    def __new__(cls, *given: Any) -> Husk:
        """Not in ``__init__``, which pickles can pass over."""
        made = super().__new__(cls)
        made.parts = [(str(place), value) for place, value in enumerate(given)]
        return made

    def __call__(self, *given: Any) -> Husk:
        """Another husk."""
        return Husk(*given)

    def append(self, value: Any) -> None:
        """As a list would."""
        self.parts.append((str(len(self.parts)), value))

    def extend(self, values: Any) -> None:
        """As a list would."""
        for value in values:
            self.append(value)

    def add(self, value: Any) -> None:
        """As a set would."""
        self.append(value)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.parts.append((word(key), value))


@dataclass(frozen=True)
class Kind:
    """A type of numbers by torch's name, and its bytes: torch is not loaded for it."""

    name: str
    itemsize: int

    def __str__(self) -> str:
        """As torch calls it."""
        return self.name

    @property
    def dtype(self) -> torch.dtype:
        """Torch's type."""
        return dtype_of(self.name)


@dataclass(frozen=True)
class StoredObject:
    """A storage of the file: its key there, its type and its number of entries."""

    key: str
    kind: Kind
    count: int


@dataclass(frozen=True)
class Stub:
    """A tensor without its values: where in which storage they lie. ``fault`` says why it cannot be read."""

    storage: StoredObject | None
    kind: Kind
    offset: int = 0
    shape: tuple[int, ...] = ()
    stride: tuple[int, ...] = ()
    fault: str = ""


@dataclass
class ArrayStub:
    """A numpy array inside the pickle, complete once its state has come."""

    array: np.ndarray | None = field(default=None, repr=False)
    fault: str = ""

    def take(self, state: Any) -> None:
        """(version, shape, dtype, whether by columns, bytes), as numpy writes it."""
        try:
            _, shape, dtype, by_columns, raw = state
            if not isinstance(dtype, DtypeStub) or not isinstance(raw, bytes | bytearray):
                raise TypeError("an array of objects")
            flat = np.frombuffer(raw, dtype=np.dtype(dtype.code))
            array = flat.reshape(checked_shape(list(shape)), order="F" if by_columns else "C")
            self.array = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("=")))
        except (TypeError, ValueError) as error:
            self.fault = f"{error}"


@dataclass
class DtypeStub:
    """A numpy type of numbers, with its byte order."""

    code: str

    def take(self, state: Any) -> None:
        """(version, order, ...)."""
        if isinstance(state, tuple) and len(state) > 1 and state[1] in ("<", ">"):
            self.code = state[1] + self.code.lstrip("<>|=")


def leaves(tree: Any) -> Iterator[tuple[str, Stub | ArrayStub]]:
    """Every tensor and array with its path, depth first, each container once; what modules keep apart is put together."""
    stack: list[tuple[str, Any]] = [("", tree)]
    seen: set[int] = set()
    count = 0
    while stack:
        name, here = stack.pop()
        if isinstance(here, Stub | ArrayStub):
            count += 1
            if count > MOST_TENSORS:
                raise ValueError(f"more than {MOST_TENSORS:,} tensors")
            yield name or "tensor", here
            continue
        if id(here) not in seen and (inside := members(here)):
            seen.add(id(here))
            stack += [(_joined(name, key, here), value) for key, value in reversed(inside)]


def members(here: Any) -> list[tuple[str, Any]]:
    """What a container holds, by name or place."""
    if isinstance(here, dict):
        return [(word(key), value) for key, value in here.items()]
    if isinstance(here, list | tuple):
        return [(str(place), value) for place, value in enumerate(here)]
    return here.parts if isinstance(here, Husk) else []


_OF_MODULES = ("_parameters", "_buffers", "_modules")


def _joined(name: str, key: str, holder: Any) -> str:
    if isinstance(holder, Husk) and key in _OF_MODULES:
        return name
    joined = f"{name}.{key}" if name else key
    if len(joined) > 4096:
        raise ValueError("names of more than 4096 letters")
    return joined


def word(key: Any) -> str:
    """A key in letters."""
    return key if isinstance(key, str) else str(key) if isinstance(key, int | float | bool) else type(key).__name__
