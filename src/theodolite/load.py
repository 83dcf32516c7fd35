"""Targets and data from the command line: files and names become subjects, one tensor in memory at a time."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from theodolite.subject import Subject, Weight, Weights, weights_of

KINDS = "a .safetensors, .pt, .pth, .bin, .ckpt or .npz file, a folder of safetensors, or package.module:function"


def target(name: str, *, data: Any = None, **facts: Any) -> Subject:
    """The subject that a target on the command line names: a checkpoint, or a function that returns a model.

    ``facts`` are the other fields of `Subject`. A function may also return a whole `Subject`.
    """
    if ":" in name and not Path(name).exists():
        return _from_function(name, data=data, facts=facts)
    weights = checkpoint(name)
    if data is not None:
        raise ValueError(
            f"expected a model to run the data through, got the weights {name} alone; "
            "write a function that builds the model and loads them, and pass package.module:function"
        )
    return Subject(weights=weights, name=name, **facts)


def checkpoint(name: str | Path) -> Weights:
    """The tensors of a checkpoint, by name; each is read from disk only when asked for."""
    path = Path(name)
    if not path.exists():
        raise ValueError(f"expected {KINDS}, got {str(name)!r}, which does not exist; check the path")
    if path.is_dir():
        return _folder(path)
    readers: dict[str, Callable[[Path], Weights]] = {
        ".safetensors": _safetensors,
        ".npz": _npz,
        **dict.fromkeys((".pt", ".pth", ".bin", ".ckpt"), _torch),
    }
    if path.suffix.lower() not in readers:
        raise ValueError(f"expected {KINDS}, got {str(name)!r}; save the weights as .safetensors")
    weights = readers[path.suffix.lower()](path)
    if not weights:
        raise ValueError(f"expected tensors in {path}, got none; save model.state_dict()")
    return weights


def dataset(name: str) -> Any:
    """Data from the command line: ``digits``, an .npz with x and perhaps y, or an .npy with x alone."""
    if name == "digits":
        from theodolite.construct.digits import digits

        return digits()
    path = Path(name)
    if path.suffix not in (".npz", ".npy") or not path.exists():
        raise ValueError(f"expected data as digits, a .npz with x and y, or a .npy, got {name!r}; check the path")
    try:
        with path.open("rb") as raw:
            loaded = _loaded(raw, path)
            if isinstance(loaded, np.ndarray):
                return _inputs(loaded)
            arrays = {key: _array(loaded, key, path) for key in ("x", "y") if key in loaded.files}
            names = loaded.files
    except (OSError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"expected arrays of numbers in {path}, got {_line(error)}; save with numpy.savez") from error
    if "x" not in arrays:
        raise ValueError(f"expected an array called x (and y) in {path}, got {names}; numpy.savez(path, x=x, y=y)")
    x = _inputs(arrays["x"])
    return (x, _targets(arrays["y"])) if "y" in arrays else x


def default_loss(data: Any) -> Callable[[Any, Any], Tensor] | None:
    """Cross-entropy for whole-number targets, mean square for others, none without targets."""
    if not isinstance(data, tuple):
        return None
    functional = torch.nn.functional
    return functional.mse_loss if data[1].is_floating_point() else functional.cross_entropy


def _inputs(x: np.ndarray) -> Tensor:
    return torch.from_numpy(x.astype(np.float32) if x.dtype.kind in "fub" else x.astype(np.int64))


def _targets(y: np.ndarray) -> Tensor:
    return torch.from_numpy(y.astype(np.float32) if y.dtype.kind == "f" else y.astype(np.int64))


def _loaded(raw: Any, path: Path) -> Any:
    try:
        return np.load(raw, allow_pickle=False)
    except ValueError as error:  # numpy's word for pickled objects
        raise ValueError(f"expected arrays of numbers in {path}, got {_line(error)}; save plain arrays") from error


def _array(file: Any, name: str, path: Path) -> np.ndarray:
    try:
        array = file[name]
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"expected numbers in {name} of {path}, got {_line(error)}; save it as a plain array"
        ) from error
    if array.dtype.kind not in "fiub":
        raise ValueError(f"expected numbers in {name} of {path}, got dtype {array.dtype}; convert it first")
    return array  # type: ignore[no-any-return]


def _safetensors(path: Path) -> Weights:
    from safetensors import SafetensorError, safe_open

    def read(name: str) -> Callable[[], Tensor]:
        def tensor() -> Tensor:
            with safe_open(path, framework="pt") as file:
                return file.get_tensor(name)  # type: ignore[no-any-return]

        return tensor

    try:
        with safe_open(path, framework="pt") as file:
            names = list(file.keys())
        header = _header(path)
    except (SafetensorError, ValueError, OSError) as error:
        raise ValueError(
            f"expected a whole safetensors file, got {path}, {path.stat().st_size:,} bytes: {_line(error)}; "
            "copy or download it again"
        ) from error
    return {name: Weight(name, tuple(header[name]["shape"]), _DTYPES.get(header[name]["dtype"], torch.float32), read(name))
            for name in names}  # fmt: skip


def _header(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return json.loads(file.read(int.from_bytes(file.read(8), "little")))  # type: ignore[no-any-return]


_DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
           "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8,
           "BOOL": torch.bool, "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2}  # fmt: skip


def _folder(path: Path) -> Weights:
    """The Hugging Face layout: an index that says which shard holds which tensor, or shards without an index."""
    indices = sorted(path.glob("*.safetensors.index.json"))
    shards = sorted(path.glob("*.safetensors"))
    if not indices and not shards:
        raise ValueError(
            f"expected a folder with *.safetensors in it, got {path} without any; save the model as safetensors"
        )
    if not indices:
        return {name: weight for shard in shards for name, weight in _safetensors(shard).items()}
    try:
        where: dict[str, str] = json.loads(indices[0].read_text())["weight_map"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"expected a weight_map in {indices[0]}, got {_line(error)}; download the index again"
        ) from error
    missing = sorted({shard for shard in where.values() if not (path / Path(shard).name).exists()})
    if missing:
        raise ValueError(f"expected every shard of the index in {path}, got none called {missing[0]}; download it")
    held = {shard: _safetensors(path / Path(shard).name) for shard in set(where.values())}
    lost = [name for name, shard in where.items() if name not in held[shard]]
    if lost:
        raise ValueError(
            f"expected {lost[0]} in {where[lost[0]]}, as the index says, got no such tensor; download both"
        )
    return {name: held[shard][name] for name, shard in where.items()}


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
        raise ValueError(f"expected a torch checkpoint in {path}, got {_line(error)}; copy or save it again") from error
    return weights_of(dict(_flat("", _innermost(loaded))))


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
                tensor = torch.from_numpy(_array(file, name, path))
                weights[name] = Weight(name, tuple(tensor.shape), tensor.dtype, read(name))
    except (OSError, EOFError, zipfile.BadZipFile, AttributeError) as error:
        raise ValueError(f"expected a whole .npz file, got {path}: {_line(error)}; copy or save it again") from error
    return weights


def _from_function(name: str, *, data: Any, facts: Mapping[str, Any]) -> Subject:
    module, _, function = name.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        make = getattr(importlib.import_module(module), function)
    except AttributeError as error:
        raise ValueError(f"expected a function called {function} in {module}, got none; check the name") from error
    except Exception as error:
        raise ValueError(f"expected {KINDS}, got {name!r}: {_line(error)}; run it where the module imports") from error
    made = make if isinstance(make, nn.Module | Subject) else _called(name, make)
    if isinstance(made, Subject):
        return made
    if not isinstance(made, nn.Module):
        raise ValueError(
            f"expected {name} to return an nn.Module or a Subject, got {type(made).__name__}; return the model"
        )
    return Subject(made, data=data, name=name, **facts)


def _called(name: str, make: Any) -> Any:
    if not callable(make):
        raise ValueError(f"expected {name} to be a function that returns a model, got {type(make).__name__}; wrap it")
    needed = [p.name for p in inspect.signature(make).parameters.values()
              if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]  # fmt: skip
    if needed:
        raise ValueError(
            f"expected {name} to need no arguments, got one that needs {', '.join(needed)}; "
            "write a function without arguments that calls it"
        )
    try:
        return make()
    except Exception as error:
        raise ValueError(
            f"expected {name} to return a model, got {_line(error)}; call it in Python to see why"
        ) from error


def _line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
