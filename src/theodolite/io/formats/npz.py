"""numpy's .npz: a zip of arrays. Headers are read at first, an array only when it is asked for."""

import ast
import math
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from theodolite.core.checks import InputError
from theodolite.io.files import printable
from theodolite.io.formats import _zips
from theodolite.io.formats._format import Format, checked_shape, damaged, source_of, unreadable
from theodolite.io.weights import Weight, Weights

KIND = ".npz file"
LONGEST_HEADER = 10_000


_WRONG = (*_zips.ERRORS, TypeError, MemoryError, SyntaxError, RecursionError, KeyError)


def recognizes(head: bytes, path: Path) -> bool:
    """A zip whose members are all arrays; a file of that suffix is one, to be named as damaged."""
    if path.suffix.lower() == ".npz":
        return True
    if not head.startswith(b"PK"):
        return False
    try:
        names = _zips.members(path)
    except _zips.ERRORS:
        return False
    return bool(names) and all(name.endswith(".npy") for name in names)


def weights(path: Path) -> Weights:
    """Every array, by name; those that are not of numbers are named with the reason."""
    try:
        source = source_of(path)
        return {
            info.filename.removesuffix(".npy"): _weight(path, info, source) for info in _zips.members(path).values()
        }
    except (*_zips.ERRORS, MemoryError) as error:
        raise damaged(KIND, path, error) from error


def _weight(path: Path, info: zipfile.ZipInfo, source: str) -> Weight:
    name = info.filename.removesuffix(".npy")
    try:
        with zipfile.ZipFile(path) as file, file.open(info) as member:
            shape, _, dtype = _header(member)
            if math.prod(shape) * dtype.itemsize + member.tell() != info.file_size:
                raise ValueError(f"{info.file_size:,} bytes for shape {list(shape)}, {dtype}")
        kind = torch.from_numpy(np.empty(0, _wanted(dtype))).dtype
    except _WRONG as error:
        words = printable(" ".join(str(error).split()), 120) or type(error).__name__
        return unreadable(name, f"expected numbers in {printable(name, 60)} of {path}, got {words}; save a plain array")
    return Weight(name, shape, kind, _Array(str(path.absolute()), info.filename), source)


def _header(member: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether by columns, and type: a dictionary written in Python, after its length."""
    start = member.read(8)
    if len(start) < 8 or start[:6] != b"\x93NUMPY" or start[6] not in (1, 2, 3):
        raise ValueError("no array of numpy's")
    length = int.from_bytes(member.read(2 if start[6] == 1 else 4), "little")
    if length > LONGEST_HEADER:
        raise ValueError(f"a header of {length:,} bytes")
    facts = ast.literal_eval(member.read(length).decode("latin-1").strip())
    if not isinstance(facts, dict) or set(facts) != {"descr", "fortran_order", "shape"}:
        raise ValueError("a header without type, order and shape")
    if not isinstance(facts["descr"], str):
        raise ValueError("records, not numbers")
    dtype = np.dtype(facts["descr"])
    if dtype.kind not in "fiubc" or dtype.hasobject:
        raise ValueError(f"dtype {printable(str(dtype), 60)}")
    return checked_shape(facts["shape"]), bool(facts["fortran_order"]), dtype


def _wanted(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type in this machine's byte order, long doubles as doubles."""
    if dtype.kind == "f" and dtype.itemsize > 8:
        return np.dtype(np.float64)
    return np.dtype(np.complex128) if dtype.kind == "c" and dtype.itemsize > 16 else dtype.newbyteorder("=")


@dataclass(frozen=True)
class _Array:
    """An array of an .npz; calling it reads it."""

    path: str
    member: str

    def __call__(self) -> Tensor:
        try:
            return self._read()
        except InputError:
            raise
        except _WRONG as error:  # packed bytes that do not unpack, or are others than were written
            raise damaged(KIND, Path(self.path), error) from error

    def _read(self) -> Tensor:
        with zipfile.ZipFile(self.path) as file, file.open(self.member) as member:
            shape, by_columns, dtype = _header(member)
            flat = np.empty(math.prod(shape), dtype)
            view = flat.view(np.uint8).data
            while len(view):
                block = member.read(min(len(view), 1 << 24))
                if not block:
                    raise InputError(f"expected {len(view):,} bytes more in {self.path}, got its end; save it again")
                view[: len(block)] = block
                view = view[len(block) :]
        array = flat.reshape(shape, order="F" if by_columns else "C").astype(_wanted(dtype), copy=False)
        return torch.from_numpy(np.ascontiguousarray(array))


format = Format(".npz", recognizes, weights)
