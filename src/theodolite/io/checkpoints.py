"""Checkpoints in every format people have, as weights that are read from disk one tensor at a time."""

from __future__ import annotations

import importlib
import json
import pkgutil
import stat
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite.core.checks import InputError
from theodolite.io import formats
from theodolite.io.files import is_plain_file, printable
from theodolite.io.formats import _zips
from theodolite.io.formats._format import HEAD, LONGEST_NAME, Format, Place, Unreadable, unreadable
from theodolite.io.packed.unpacking import quantization, unpacked
from theodolite.io.weights import Listed, Weight, Weights, left_out

if TYPE_CHECKING:
    from torch import Tensor

KINDS = (
    "a checkpoint file (safetensors, torch, .npz, GGUF, ONNX, Keras, flax, TensorFlow), a folder of shards, "
    "or package.module:function"
)
LARGEST_INDEX = 32_000_000
USUAL = ("safetensors_file", "torch_file")


def checkpoint(name: str | Path, *, device: str = "cpu") -> Weights:
    """The tensors of a checkpoint, by name; each is read from disk, and put on the ``device``, only when asked for.

    What kind of file it is is told by its first bytes. A file that is damaged is an error. In a folder a missing or
    damaged shard is not: reading one of its tensors is. A quantized matrix and its scales are one weight, and so are tensors
    that share their place in the file. Letters of a name that would not show are escaped.
    """
    path = _meant(Path(name))
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
    except (OSError, ValueError) as error:
        raise InputError(f"expected {KINDS}, got {str(name)!r}, which does not exist; check the path") from error
    if kind not in (stat.S_IFDIR, stat.S_IFREG):
        raise InputError(f"expected {KINDS}, got {str(name)!r}, which is no plain file; copy what it gives to one")
    weights = _folder(path) if kind == stat.S_IFDIR else _file(path)
    if not weights:
        raise InputError(f"expected tensors in {path}, got none; save model.state_dict()")
    faults = [weight.read.reason for weight in weights.values() if isinstance(weight.read, Unreadable)]
    if kind == stat.S_IFREG and len(faults) == len(weights):
        raise InputError(faults[0])
    shown = _printable_names(_once(unpacked(weights, quantization(path)), left_out(weights)))
    return shown if device == "cpu" else Listed({k: _on(w, device) for k, w in shown.items()}, shown.left_out)


def _meant(path: Path) -> Path:
    """The file, or the index of a TensorFlow checkpoint, which is called by the name that its files begin with."""
    try:
        index = path.with_name(f"{path.name}.index")
        return index if not path.exists() and index.is_file() else path
    except (OSError, ValueError):  # a name too long for the system, or none: said where the path is looked up
        return path


def _once(weights: Weights, out: Mapping[str, tuple[str, ...]]) -> Listed:
    """Tied weights, which lie at the same place of a file, under the first of their names."""
    first: dict[Place, str] = {}
    tied: dict[str, tuple[str, ...]] = {}
    for name, weight in weights.items():
        if isinstance(weight.read, Place) and weight.shape and 0 not in weight.shape:
            one = first.setdefault(weight.read, name)
            if one != name:
                tied[f"tied to {one}: the same numbers"] = (*tied.get(f"tied to {one}: the same numbers", ()), name)
    gone = {name for names in tied.values() for name in names}
    return Listed({name: weight for name, weight in weights.items() if name not in gone}, {**out, **tied})


@dataclass(frozen=True)
class _OnDevice:
    read: Callable[[], Tensor]
    device: str

    def __call__(self) -> Tensor:
        return self.read.onto(self.device) if isinstance(self.read, Place) else self.read().to(self.device)


def _on(weight: Weight, device: str) -> Weight:
    return replace(weight, read=_OnDevice(weight.read, device), device=device)


def _printable_names(weights: Listed) -> Listed:
    """The same under names that can be printed, no two of them alike."""
    shown: dict[str, Weight] = {}
    for weight in weights.values():
        name = printable(weight.name, LONGEST_NAME)
        if name in shown:
            name = next(other for k in range(2, len(weights) + 2) if (other := f"{name} ({k})") not in shown)
        shown[name] = weight if name == weight.name else replace(weight, name=name)
    out = {
        printable(why, LONGEST_NAME): tuple(printable(name, LONGEST_NAME) for name in names)
        for why, names in weights.left_out.items()
    }
    return Listed(shown, out)


def _formats() -> Iterator[Format]:
    """Every format, the most usual first and loaded one by one, those without a signature last."""
    names = [info.name for info in pkgutil.iter_modules(formats.__path__) if not info.name.startswith("_")]
    last = []
    for name in sorted(names, key=lambda name: (name not in USUAL, name)):
        found: Format = importlib.import_module(f"{formats.__name__}.{name}").format
        if found.last:
            last.append(found)
        else:
            yield found
    yield from last


def _file(path: Path) -> Weights:
    try:
        if not is_plain_file(path):  # a pipe would be waited for
            raise InputError(f"expected {KINDS}, got {path}, which is no plain file; copy what it gives to one")
        with path.open("rb") as file:
            head = file.read(HEAD)
    except OSError as error:
        raise InputError(f"expected {KINDS}, got {path}, {one_line(error)}; check who may read it") from error
    for each in _formats():
        if each.recognizes(head, path):
            return each.weights(path)
    hints = {".py": f"name its function: {path.stem}:function", **dict.fromkeys((".csv", ".npy"), "pass it as --data")}
    todo = hints.get(path.suffix, "save the weights as .safetensors")
    raise InputError(f"expected {KINDS}, got {str(path)!r}; {todo}")


def _folder(path: Path) -> Weights:
    """The Hugging Face layout: an index that says which shard holds which tensor, or shards without an index.

    Or that of torch.distributed.checkpoint, or of TensorFlow, whose SavedModel has its variables in a folder of their own.
    """
    if (path / ".metadata").is_file():
        from theodolite.io.formats import _distributed

        return _distributed.weights(path)
    for pattern in ("*.safetensors", "*.bin", "*.pth", "*.pt"):
        indices, shards = sorted(path.glob(f"{pattern}.index.json")), sorted(path.glob(pattern))
        if indices:
            return _indexed(path, indices[0])
        if shards:
            return _together([_shard(shard) for shard in shards])
    for tables in (sorted(path.glob("*.index")), sorted((path / "variables").glob("*.index"))):
        if tables:
            return _file(max(tables, key=lambda table: (table.lstat().st_mtime_ns, table.name)))
    raise InputError(
        f"expected a folder with *.safetensors or *.bin in it, got {path} without any; download the shards"
    )


def _indexed(path: Path, index: Path) -> Weights:
    try:
        if not index.is_file():  # a pipe would be waited for
            raise ValueError("no plain file")
        if index.stat().st_size > LARGEST_INDEX:
            raise ValueError(f"{index.stat().st_size:,} bytes")
        where = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        if not isinstance(where, dict) or not all(isinstance(shard, str) for shard in where.values()):
            raise TypeError("a weight_map that does not map names to files")
    except (ValueError, KeyError, TypeError, OSError, RecursionError) as error:
        raise InputError(f"expected a weight_map in {index}, got {one_line(error)}; download the index") from error
    held = {shard: _shard(path / _inside(shard)) for shard in dict.fromkeys(where.values())}
    asked = {name: held[shard].get(name) or _lost(name, held[shard], shard) for name, shard in where.items()}
    beside = [{n: w for n, w in shard.items() if n not in where and w.source} for shard in held.values()]
    return _together([asked, *beside])


def _together(groups: Sequence[Weights]) -> Listed:
    """All of them; one whose name was there before is numbered, not lost."""
    found: dict[str, Weight] = {}
    for group in groups:
        for name, weight in group.items():
            number, key = 2, name
            while key in found:
                key, number = f"{name} ({number})", number + 1
            found[key] = replace(weight, name=key)
    out: dict[str, tuple[str, ...]] = {}
    for group in groups:
        for why, names in left_out(group).items():
            out[why] = (*out.get(why, ()), *names)
    return Listed(found, out)


def _inside(shard: str) -> str:
    """The name of a shard without its folder: an index does not lead out of its own."""
    return Path(shard.replace("\0", "")).name or "shard without a name"


def _shard(path: Path) -> Weights:
    """The tensors of a shard; of one that is missing or damaged, a single one under its own name that says why."""
    try:
        if not is_plain_file(path):
            raise InputError(f"expected the shard {path.name} of the index, got no such file; download it")
        return _file(path)
    except (ValueError, OSError) as error:
        return {path.name: unreadable(path.name, str(error))}


def _lost(name: str, held: Weights, shard: str) -> Weight:
    damaged = held.get(_inside(shard))
    if damaged is not None:
        return replace(damaged, name=name)
    return unreadable(name, f"expected {name} in {shard}, as the index says, got no such tensor; download both again")


def numbers(read: Callable[[], Any], what: str) -> np.ndarray:
    """The array of numbers that numpy reads, or an error that says of ``what`` it is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # numpy's, of headers that Python 2 wrote
            array = read()
    except (*_zips.ERRORS, MemoryError, SyntaxError, TypeError, KeyError, RecursionError, TokenError) as error:
        raise InputError(f"expected numbers in {what}, got {one_line(error)}; save it as a plain array") from error
    if not isinstance(array, np.ndarray):
        raise InputError(f"expected numbers in {what}, got {type(array).__name__}; save it as a plain array")
    if array.dtype.kind not in "fiub":
        raise InputError(f"expected numbers in {what}, got dtype {printable(str(array.dtype), 60)}; convert it first")
    return array


def one_line(error: BaseException) -> str:
    """An exception in one line, with its kind."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {printable(lines[0], 160)}" if lines else type(error).__name__
