"""Torch: the zip of today, the file from before 1.6, and TorchScript; the tensors alone, nothing of it is run."""

from __future__ import annotations

import io
import operator
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any, BinaryIO

from theodolite.core.lazy_torch import torch
from theodolite.io.formats import _zips
from theodolite.io.formats._format import Format, InMemory, Place, byteswapped, damaged, source_of, span, unreadable
from theodolite.io.formats._pickles import limited, plain
from theodolite.io.formats._stubs import ArrayStub, Kind, StoredObject, Stub, leaves
from theodolite.io.weights import Listed, Weight, Weights

if TYPE_CHECKING:
    from torch import Tensor

OLD = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
"""The magic number of files from before torch 1.6, as the pickle that they begin with."""

KIND = "torch checkpoint"
NOT_RUN = "classes and functions that the pickle names, which were not run; their tensors were read"
ERRORS = (
    *_zips.ERRORS,
    KeyError,
    TypeError,
    AttributeError,
    MemoryError,
    OverflowError,
    RecursionError,
    UnpicklingError,
)


def recognizes(head: bytes, path: Path) -> bool:
    """A zip with a data.pkl, or the old magic number; a file of one of torch's suffixes that is a zip or a pickle."""
    if head.startswith(b"PK"):
        try:
            return any(name.rpartition("/")[2] == "data.pkl" for name in _zips.members(path))
        except _zips.ERRORS:
            return path.suffix.lower() in (".pt", ".pth", ".bin", ".ckpt")
    return head.startswith((OLD, b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"))


def weights(path: Path) -> Weights:
    """The tensors of the state dict inside what training scripts wrap around it; of a whole model likewise."""
    try:
        with path.open("rb") as file:
            zipped = file.read(2) == b"PK"
        foreign: set[str] = set()
        found, place = _zipped(path, foreign) if zipped else _old(path, foreign)
        source, (inner, within) = source_of(path), _innermost(found)
        beside = tuple(name for name, _ in leaves(found) if not name.startswith(within)) if within else ()
        made = {name: _weight(name, stub, place, source) for name, stub in _named(inner)}
        wrapped = {f"outside of the {within[:-1]} that the file wraps (an optimizer, averages)": beside}
        return Listed(made, {**wrapped, NOT_RUN: tuple(sorted(foreign))})
    except ERRORS as error:
        raise damaged(KIND, path, error) from error


def _named(found: Any) -> list[tuple[str, Stub | ArrayStub]]:
    """Every tensor under a name of its own: the second of the same name is numbered."""
    times: Counter[str] = Counter()
    named = []
    for name, stub in leaves(found):
        times[name] += 1
        named.append((f"{name} ({times[name]})" if times[name] > 1 else name, stub))
    return named


WRAPPERS = ("state_dict", "model_state_dict", "model_state", "model")


def _innermost(loaded: Any) -> tuple[Any, str]:
    """The state dict inside what training scripts wrap around it (epoch, optimizer and so on), and where it is in there."""
    within = ""
    for _ in range(8):
        keys = [key for key in WRAPPERS if isinstance(loaded, dict) and isinstance(loaded.get(key), dict)]
        if not keys:
            break
        loaded, within = loaded[keys[0]], f"{within}{keys[0]}."
    return loaded, within


def _weight(name: str, stub: Stub | ArrayStub, place: Callable[[Stub], Any], source: str) -> Weight:
    if isinstance(stub, ArrayStub):
        if stub.array is None or stub.array.dtype.itemsize > 8:
            return unreadable(name, f"expected numbers in {name}, got {stub.fault or 'none'}; save it as a tensor")
        tensor = torch.from_numpy(stub.array)
        return Weight(name, tuple(tensor.shape), tensor.dtype, InMemory(tensor), source)
    if stub.fault:
        return unreadable(name, f"expected a plain tensor in {name}, got {stub.fault}; make it dense before saving")
    return Weight(name, stub.shape, stub.kind, place(stub), source)


def stored_object(pid: Any) -> StoredObject:
    """What a persistent name says of a storage."""
    if not isinstance(pid, tuple) or len(pid) < 5 or pid[0] != "storage" or not isinstance(pid[1], Kind):
        raise ValueError("a storage that is not described")
    if type(pid[4]) is not int or pid[4] < 0 or not isinstance(pid[2], str | int):
        raise ValueError("a storage without a size")
    return StoredObject(str(pid[2]), pid[1], pid[4])


def _zipped(path: Path, foreign: set[str]) -> tuple[Any, Callable[[Stub], Any]]:
    found = _zips.members(path)
    pickles = [name for name in found if name.rpartition("/")[2] == "data.pkl"]
    if len(pickles) != 1:
        raise ValueError(f"{len(pickles)} members called data.pkl")
    stem = pickles[0].removesuffix("data.pkl")
    order = _zips.content(path, f"{stem}byteorder", 16) if f"{stem}byteorder" in found else b"little"

    def stored(pid: Any) -> StoredObject:
        storage = stored_object(pid)
        info = found.get(f"{stem}data/{storage.key}")
        if info is None or info.file_size < storage.count * storage.kind.itemsize:
            raise ValueError(f"storage {storage.key} missing or short")
        return storage

    def place(stub: Stub) -> Any:
        assert stub.storage is not None
        info = found[f"{stem}data/{stub.storage.key}"]
        first = stub.offset * stub.kind.itemsize
        swapped = order == b"big" and stub.kind.itemsize > 1
        if info.compress_type != zipfile.ZIP_STORED:
            return _Packed(str(path.absolute()), info.filename, first, stub, swapped)
        start = _zips.start_of(path, info)
        return Place(str(path.absolute()), start + first, stub.kind, stub.shape, _stride(stub), swapped)

    return plain(limited(_zips.content(path, pickles[0], 1 << 28)), stored, foreign), place


def _stride(stub: Stub) -> tuple[int, ...] | None:
    """None where the entries lie row by row, as nearly all do."""
    steps = accumulate(reversed(stub.shape[1:]), operator.mul, initial=1)
    rows = zip(stub.shape, stub.stride, reversed(list(steps)), strict=True) if stub.shape else ()
    return None if all(size == 1 or step == own for size, step, own in rows) else stub.stride


@dataclass(frozen=True)
class _Packed:
    """A tensor in a member that is compressed."""

    path: str
    member: str
    first: int
    stub: Stub
    swapped: bool

    def __call__(self) -> Tensor:
        raw = bytearray(_zips.content(Path(self.path), self.member, 1 << 34)[self.first :])
        count = span(self.stub.shape, self.stub.stride)
        flat = torch.frombuffer(raw, dtype=self.stub.kind.dtype, count=count) if count else torch.empty(0)
        flat = byteswapped(flat) if self.swapped else flat
        return flat.as_strided(self.stub.shape, self.stub.stride) if count else flat.new_empty(self.stub.shape)


def _old(path: Path, foreign: set[str]) -> tuple[Any, Callable[[Stub], Any]]:
    """Five pickles one after the other (magic, version, system, object, keys), then each storage: its count, its bytes."""
    size = path.stat().st_size
    sizes: dict[str, int] = {}

    def stored(pid: Any) -> Any:
        if isinstance(pid, tuple) and len(pid) > 1 and pid[0] == "module":  # a class, beside its source
            return pid[1]
        storage = stored_object(pid)
        if len(pid) > 5 and pid[5] is not None:
            raise ValueError("a storage that is a view of another")
        if storage.count * storage.kind.itemsize > size:
            raise ValueError(f"storage {storage.key} of more bytes than the file has")
        sizes[storage.key] = storage.kind.itemsize
        return storage

    with path.open("rb") as raw:
        if raw.read(len(OLD)) != OLD:
            raise ValueError("a pickle that torch did not write; save model.state_dict() with torch.save")
        file = _Bounded(raw)
        for _ in range(2):
            plain(file, stored_object)
        found, keys = plain(file, stored, foreign), plain(file, stored_object)
        starts: dict[str, int] = {}
        for key in keys if isinstance(keys, list) else ():
            count = int.from_bytes(raw.read(8), "little")
            starts[str(key)] = raw.tell()
            length = count * sizes.get(str(key), 1)
            if starts[str(key)] + length > size:
                raise ValueError(f"storage {key} beyond the end of the file")
            raw.seek(length, io.SEEK_CUR)

    def place(stub: Stub) -> Place:
        assert stub.storage is not None
        first = starts[stub.storage.key] + stub.offset * stub.kind.itemsize
        return Place(str(path.absolute()), first, stub.kind, stub.shape, _stride(stub))

    return found, place


class _Bounded:
    """A file of pickles that gives no more than pickles have a use for at a time."""

    def __init__(self, raw: BinaryIO) -> None:
        self.raw, self.left = raw, 64_000_000

    def read(self, count: int = -1) -> bytes:
        """Bytes, as long as there are some left."""
        return self._counted(self.raw.read(max(0, min(count, self.left))))

    def readline(self) -> bytes:
        """A line."""
        return self._counted(self.raw.readline(self.left))

    def _counted(self, found: bytes) -> bytes:
        self.left -= len(found)
        if self.left <= 0:
            raise ValueError("pickles of more than 64,000,000 bytes besides the storages")
        return found


format = Format("torch", recognizes, weights)
