"""Checkpoints in every format people have, as weights that are read from disk one tensor at a time."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from theodolite.io.weights import Weight, Weights, weights_of

KINDS = "a .safetensors, .pt, .pth, .bin, .ckpt or .npz file, a folder of safetensors, or package.module:function"


def checkpoint(name: str | Path, *, device: str = "cpu") -> Weights:
    """The tensors of a checkpoint, by name; each is read from disk, and put on the ``device``, only when asked for.

    A file that is damaged is an error. In a folder a missing or damaged shard is not: reading one of its tensors is.
    """
    path = Path(name)
    if not path.exists():
        raise ValueError(f"expected {KINDS}, got {str(name)!r}, which does not exist; check the path")
    readers: dict[str, Callable[[Path], Weights]] = {
        ".safetensors": _safetensors,
        ".npz": _npz,
        **dict.fromkeys((".pt", ".pth", ".bin", ".ckpt"), _torch),
    }
    if path.is_dir():
        weights = _folder(path)
    elif path.suffix.lower() in readers:
        weights = readers[path.suffix.lower()](path)
    else:
        raise ValueError(f"expected {KINDS}, got {str(name)!r}; save the weights as .safetensors")
    if not weights:
        raise ValueError(f"expected tensors in {path}, got none; save model.state_dict()")
    return weights if device == "cpu" else {key: _on(weight, device) for key, weight in weights.items()}


def _on(weight: Weight, device: str) -> Weight:
    return replace(weight, read=lambda: weight.read().to(device))


def _source(path: Path) -> str:
    facts = path.stat()
    return f"{path.resolve()}:{facts.st_size}:{facts.st_mtime_ns}"


def _safetensors(path: Path) -> Weights:
    from safetensors import SafetensorError, safe_open

    def read(name: str) -> Callable[[], Tensor]:
        def tensor() -> Tensor:
            with safe_open(path, framework="pt") as file:
                return file.get_tensor(name)  # type: ignore[no-any-return]

        return tensor

    try:
        with safe_open(path, framework="pt"):
            header = _header(path)
    except (SafetensorError, ValueError, OSError) as error:
        raise ValueError(
            f"expected a whole safetensors file, got {path}, {path.stat().st_size:,} bytes: {one_line(error)}; "
            "copy or download it again"
        ) from error
    return {
        name: Weight(name, tuple(facts["shape"]), _DTYPES.get(facts["dtype"], torch.uint8), read(name), _source(path))
        for name, facts in header.items()
        if name != "__metadata__"
    }


def _header(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return json.loads(file.read(int.from_bytes(file.read(8), "little")))  # type: ignore[no-any-return]


_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
}


def _folder(path: Path) -> Weights:
    """The Hugging Face layout: an index that says which shard holds which tensor, or shards without an index."""
    indices = sorted(path.glob("*.safetensors.index.json"))
    shards = sorted(path.glob("*.safetensors"))
    if not shards:
        raise ValueError(f"expected a folder with *.safetensors in it, got {path} without any; download the shards")
    if not indices:
        return {name: weight for shard in shards for name, weight in _shard(shard).items()}
    try:
        where: dict[str, str] = json.loads(indices[0].read_text())["weight_map"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"expected a weight_map in {indices[0]}, got {one_line(error)}; download the index") from error
    held = {shard: _shard(path / Path(shard).name) for shard in dict.fromkeys(where.values())}
    return {name: held[shard].get(name) or _lost(name, held[shard], shard) for name, shard in where.items()}


def _shard(path: Path) -> Weights:
    """The tensors of a shard; of one that is missing or damaged, a single one under its own name that says why."""
    try:
        if not path.exists():
            raise ValueError(f"expected the shard {path.name} of the index, got no such file; download it")
        return _safetensors(path)
    except ValueError as error:
        return {path.name: _broken(path.name, str(error))}


def _lost(name: str, held: Weights, shard: str) -> Weight:
    damaged = held.get(Path(shard).name)
    if damaged is not None:
        return replace(damaged, name=name)
    return _broken(name, f"expected {name} in {shard}, as the index says, got no such tensor; download both again")


def _broken(name: str, reason: str) -> Weight:
    def read() -> Tensor:
        raise ValueError(reason)

    return Weight(name, (), torch.float32, read)


def _torch(path: Path) -> Weights:
    """A state dict, read by memory map and never unpickled beyond tensors and plain containers."""
    try:
        try:
            loaded = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        except RuntimeError:  # files from before torch 1.6 cannot be mapped
            loaded = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        if "weights_only" in str(error) or "Unsupported" in str(error):
            raise ValueError(
                f"expected a state dict in {path}, got a pickled object, which could run code when loaded; "
                "save it with torch.save(model.state_dict(), path) or as .safetensors"
            ) from error
        raise ValueError(
            f"expected a torch checkpoint in {path}, got {one_line(error)}; copy or save it again"
        ) from error
    return weights_of(dict(_flat("", _innermost(loaded))), source=_source(path))


def _innermost(loaded: Any) -> Any:
    """The state dict inside what training scripts wrap around it: epoch, optimiser and so on."""
    for key in ("state_dict", "model_state_dict", "model_state", "model"):
        if isinstance(loaded, Mapping) and isinstance(loaded.get(key), Mapping):
            return _innermost(loaded[key])
    return loaded


def _flat(prefix: str, tree: Any) -> list[tuple[str, Tensor]]:
    if isinstance(tree, Tensor):
        return [(prefix or "tensor", tree)]
    if isinstance(tree, Mapping):
        return [
            pair for key, branch in tree.items() for pair in _flat(f"{prefix}.{key}" if prefix else str(key), branch)
        ]
    return []


def _npz(path: Path) -> Weights:
    def read(name: str) -> Callable[[], Tensor]:
        def tensor() -> Tensor:
            with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
                return torch.from_numpy(np.asarray(file[name]))

        return tensor

    weights = {}
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            for name in file.files:
                tensor = torch.from_numpy(numbers(file, name, path))
                weights[name] = Weight(name, tuple(tensor.shape), tensor.dtype, read(name), _source(path))
    except (OSError, EOFError, zipfile.BadZipFile, AttributeError) as error:
        raise ValueError(f"expected a whole .npz file, got {path}: {one_line(error)}; copy or save it again") from error
    return weights


def numbers(file: Any, name: str, path: Path) -> np.ndarray:
    """An array of numbers from an opened .npz, or an error that names it."""
    try:
        array = file[name]
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"expected numbers in {name} of {path}, got {one_line(error)}; save it as a plain array"
        ) from error
    if array.dtype.kind not in "fiub":
        raise ValueError(f"expected numbers in {name} of {path}, got dtype {array.dtype}; convert it first")
    return array  # type: ignore[no-any-return]


def one_line(error: BaseException) -> str:
    """An exception in one line, with its kind."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
