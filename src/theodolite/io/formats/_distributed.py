"""Folders of torch.distributed.checkpoint: ``.metadata`` says which part of which tensor lies where in ``*.distcp`` files.

The metadata are a pickle, read without running it. A part is a file of torch of its own inside the other, with one tensor.
"""

import io
import math
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from theodolite.core.checks import InputError
from theodolite.io.formats._format import MOST_TENSORS, checked_shape, damaged, source_of, span, unreadable
from theodolite.io.formats._pickles import limited, plain
from theodolite.io.formats._stubs import Husk, Kind, StoredObject, Stub, leaves
from theodolite.io.formats.torch_file import ERRORS, stored_object
from theodolite.io.weights import Listed, Weight, Weights

METADATA = ".metadata"
KIND = "folder of torch.distributed.checkpoint"
OPTIMIZERS = {"optim", "optimizer", "optimizers", "opt"}


def weights(folder: Path) -> Weights:
    """Every tensor, by name; what belongs to an optimizer is left out."""
    try:
        found = _parts(plain(limited((folder / METADATA).read_bytes()), _no_storage))
        tensors, stored = found["state_dict_metadata"], found["storage_data"]
        if not isinstance(tensors, dict) or not isinstance(stored, dict) or len(tensors) > MOST_TENSORS:
            raise ValueError("metadata that do not list tensors")
        places = _places(stored)
        listed = {str(name): _parts(facts) for name, facts in tensors.items()}
        kept = {name: facts for name, facts in listed.items() if "chunks" in facts}
        others = tuple(name for name in kept if OPTIMIZERS & set(name.split(".")[:-1]))
        others = others if len(others) < len(kept) else ()
        made = {n: _weight(n, facts, places.get(n, []), folder) for n, facts in kept.items() if n not in set(others)}
        return Listed(made, {"state of an optimizer, not weights": others})
    except ERRORS as error:
        raise damaged(KIND, folder / METADATA, error) from error


def _no_storage(pid: Any) -> Any:
    raise ValueError("tensors inside the metadata")


def _parts(husk: Any) -> dict[str, Any]:
    return dict(husk.parts) if isinstance(husk, Husk) else {}


@dataclass(frozen=True)
class _Place:
    """Where a part of a tensor lies: its first entry, and the bytes of a file."""

    first: tuple[int, ...] | None
    path: str
    offset: int
    length: int
    changed: bool


def _places(stored: dict[Any, Any]) -> dict[str, list[_Place]]:
    found: dict[str, list[_Place]] = {}
    for key, info in stored.items():
        index, facts = _parts(key), _parts(info)
        name, path, first = index.get("fqn"), facts.get("relative_path"), index.get("offset")
        offset, length = facts.get("offset"), facts.get("length")
        if not isinstance(name, str) or not isinstance(path, str) or type(offset) is not int or type(length) is not int:
            raise ValueError("a part of a tensor without a place")
        changed = bool(facts.get("transform_descriptors"))
        found.setdefault(name, []).append(
            _Place(None if first is None else checked_shape(first), path, offset, length, changed)
        )
    return found


def _weight(name: str, facts: dict[str, Any], places: list[_Place], folder: Path) -> Weight:
    shape, chunks = checked_shape(facts["size"]), [_parts(chunk) for chunk in facts["chunks"]]
    dtype = next((value for value in _values(facts["properties"]) if isinstance(value, Kind)), None)
    if dtype is None or "complex" in dtype.name:
        return unreadable(name, f"expected a type of numbers for {name}, got {dtype}; save it again")
    parts = []
    for chunk in chunks:
        first, sizes = checked_shape(chunk["offsets"]), checked_shape(chunk["sizes"])
        place = next((p for p in places if p.first == first or (p.first is None and len(chunks) == 1)), None)
        fault = _fault(name, place, folder)
        if fault or place is None:
            return unreadable(name, fault)
        if len(first) != len(shape) or any(a + b > c for a, b, c in zip(first, sizes, shape, strict=True)):
            raise ValueError("a part that lies outside of its tensor")
        parts.append(_Part(str((folder / Path(place.path).name).absolute()), place.offset, place.length, first, sizes))
    if sum(math.prod(part.sizes) for part in parts) != math.prod(shape):
        return unreadable(name, f"expected all parts of {name}, got some of them; copy the whole folder again")
    sources = sorted({source_of(Path(part.path)) for part in parts})
    return Weight(name, shape, dtype, _Assembled(shape, dtype.dtype, tuple(parts)), "|".join(sources))


def _values(properties: Any) -> Iterator[Any]:
    for value in _parts(properties).values():
        yield from value if isinstance(value, tuple | list) else (value,)


def _fault(name: str, place: _Place | None, folder: Path) -> str:
    if place is None:
        return f"expected all parts of {name} in the metadata, got one without a place; copy the folder again"
    path = folder / Path(place.path).name
    if not path.is_file():
        return f"expected {path.name} next to the metadata, got no such file; copy the whole folder"
    if place.changed:
        return f"expected parts of {name} that are stored as they are, got packed ones; save without extensions"
    if place.offset < 0 or place.length < 1 or place.offset + place.length > path.stat().st_size:
        return f"expected {name} inside {path.name}, got a place beyond its end; copy it again"
    return ""


@dataclass(frozen=True)
class _Part:
    path: str
    offset: int
    length: int
    first: tuple[int, ...]
    sizes: tuple[int, ...]

    def tensor(self) -> Tensor:
        """The one tensor of the file inside the file."""
        with open(self.path, "rb") as file:
            file.seek(self.offset)
            raw = file.read(self.length)
        with zipfile.ZipFile(io.BytesIO(raw)) as inner:
            if any(info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1 for info in inner.infolist()):
                raise InputError(
                    f"expected parts that are stored as they are in {self.path}, got packed ones; save again"
                )
            pickles = [name for name in inner.namelist() if name.rpartition("/")[2] == "data.pkl"]
            if len(pickles) != 1:
                raise InputError(f"expected one tensor at byte {self.offset} of {self.path}, got {len(pickles)}")
            stem = pickles[0].removesuffix("data.pkl")

            def stored(pid: Any) -> StoredObject:
                found = stored_object(pid)
                if inner.getinfo(f"{stem}data/{found.key}").file_size < found.count * found.kind.itemsize:
                    raise InputError(f"expected the whole storage in {self.path}, got a part; copy it again")
                return found

            stubs = [stub for _, stub in leaves(plain(limited(inner.read(pickles[0])), stored))]
            if len(stubs) != 1 or not isinstance(stubs[0], Stub) or stubs[0].fault or stubs[0].storage is None:
                raise InputError(f"expected one plain tensor at byte {self.offset} of {self.path}, got another thing")
            return _from_storage(stubs[0], inner.read(f"{stem}data/{stubs[0].storage.key}"))


def _from_storage(stub: Stub, raw: bytes) -> Tensor:
    count = span(stub.shape, stub.stride)
    if not count:
        return torch.empty(stub.shape, dtype=stub.kind.dtype)
    first = stub.offset * stub.kind.itemsize
    flat = torch.frombuffer(bytearray(raw), dtype=stub.kind.dtype, count=count, offset=first)
    return flat.as_strided(stub.shape, stub.stride)


@dataclass(frozen=True)
class _Assembled:
    """A tensor of which each process wrote a part."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    parts: tuple[_Part, ...]

    def __call__(self) -> Tensor:
        whole = torch.zeros(self.shape, dtype=self.dtype)
        for part in self.parts:
            found = part.tensor()
            if tuple(found.shape) != part.sizes or found.dtype != self.dtype:
                raise InputError(f"expected a part of shape {list(part.sizes)}, got {list(found.shape)}; copy it again")
            whole[tuple(slice(a, a + b) for a, b in zip(part.first, part.sizes, strict=True))] = found
        return whole
