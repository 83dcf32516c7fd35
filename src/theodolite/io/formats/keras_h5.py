"""Keras and other HDF5 files, alone or inside a .keras archive, by the package h5py."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from theodolite.core.checks import InputError
from theodolite.io.files import printable
from theodolite.io.formats import _zips
from theodolite.io.formats._format import MOST_TENSORS, Format, checked_shape, damaged, source_of, unreadable
from theodolite.io.weights import Weight, Weights

KIND = "HDF5 file"
MAGIC = b"\x89HDF\r\n\x1a\n"
INSIDE = "model.weights.h5"
LARGEST_INSIDE = 1 << 31


def recognizes(head: bytes, path: Path) -> bool:
    """By its magic number, or an archive that holds such a file."""
    if head.startswith(b"PK"):
        try:
            return INSIDE in _zips.members(path)
        except _zips.ERRORS:
            return False
    return head.startswith(MAGIC)


def weights(path: Path) -> Weights:
    """Every data set of numbers, by its path in the file with dots for slashes."""
    try:
        source, found = source_of(path), {}
        with _opened(str(path.absolute())) as file:
            names: list[str] = []
            file.visititems(lambda name, thing: _note(names, name, thing))
            for name in names:
                found[name.replace("/", ".")] = _weight(path, name, file[name], source)
        return found
    except (*_zips.ERRORS, KeyError, TypeError, AttributeError, MemoryError, RecursionError) as error:
        if str(error).startswith("expected the package"):
            raise
        raise damaged(KIND, path, error) from error


def _note(names: list[str], name: str, thing: Any) -> None:
    if hasattr(thing, "dtype"):
        names.append(name)
        if len(names) > MOST_TENSORS:
            raise ValueError(f"more than {MOST_TENSORS:,} data sets")


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    try:
        import h5py
    except ImportError as error:
        raise InputError(
            f"expected the package h5py to read {path}, got none; pip install 'theodolite[keras]'"
        ) from error
    with open(path, "rb") as raw:
        zipped = raw.read(2) == b"PK"
    inside: Any = io.BytesIO(_zips.content(Path(path), INSIDE, LARGEST_INSIDE)) if zipped else path
    with h5py.File(inside, "r") as file:
        yield file


def _weight(path: Path, name: str, data: Any, source: str) -> Weight:
    key = name.replace("/", ".")
    try:
        shape, dtype = checked_shape(data.shape), np.dtype(data.dtype)
        if dtype.kind not in "fiub" or dtype.itemsize > 8 or dtype.hasobject:
            raise ValueError(f"dtype {printable(str(dtype), 60)}")
        if data.external or data.is_virtual:
            raise ValueError("numbers that lie in other files")
        stored, size = data.id.get_storage_size(), data.size * dtype.itemsize
        if size > max(_zips.LARGEST_UNPACKED, _zips.WORST_RATIO * stored):
            raise ValueError(f"{stored:,} bytes that unpack to {size:,}")
        kind = torch.from_numpy(np.empty(0, dtype.newbyteorder("="))).dtype
    except (ValueError, TypeError, OSError, RuntimeError) as error:
        words = printable(" ".join(str(error).split()), 120)
        return unreadable(key, f"expected numbers in {printable(key, 60)} of {path}, got {words}; save a plain array")
    return Weight(key, shape, kind, _DataSet(str(path.absolute()), name), source)


@dataclass(frozen=True)
class _DataSet:
    """A data set of an HDF5 file; calling it reads it."""

    path: str
    name: str

    def __call__(self) -> Tensor:
        with _opened(self.path) as file:
            array = np.asarray(file[self.name][()])
        return torch.from_numpy(np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="), copy=False)))


format = Format("HDF5", recognizes, weights)
