"""Targets and data from the command line: files and names become subjects, one tensor in memory at a time."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite.core.lazy_torch import is_module, torch
from theodolite.core.subject import Subject
from theodolite.io.adapters import Adapted, adapter, configuration, merged
from theodolite.io.checkpoints import KINDS, checkpoint, numbers, one_line
from theodolite.io.files import is_plain_file, is_there, printable
from theodolite.io.formats import _zips
from theodolite.io.weights import Listed, Weights, counterparts, left_out, weights_of

if TYPE_CHECKING:
    from torch import Tensor


def target(name: str, *, data: Any = None, device: str = "cpu", **facts: Any) -> Subject:
    """The subject that a target on the command line names: a checkpoint, or a function that returns a model.

    ``facts`` are the other fields of `Subject`, and ``base``, the checkpoint that an adapter belongs to. A function may also
    return a whole `Subject`.
    """
    if ":" in name and not is_there(Path(name)):
        return _from_function(name, data=data, facts=facts)
    _check_device(device)
    base = facts.pop("base", None)
    weights = checkpoint(name, device=device)
    if data is not None:
        raise ValueError(
            f"expected a model to run the data through, got the weights {name} alone; "
            "write a function that builds the model and loads them, and pass package.module:function"
        )
    found = adapter(weights, configuration(Path(name)))
    if found:
        return _adapted(
            name, weights, found, checkpoint(base, device=device) if base else facts.pop("origin", None), facts
        )
    if base is not None:
        raise ValueError(
            f"expected an adapter of low rank in {name} for --base, got none; to compare two checkpoints pass --against"
        )
    weights, facts["origin"] = _compared(weights, facts.get("origin"))
    return Subject(weights=weights, name=printable(name, 400), **facts)


def _compared(weights: Weights, others: Weights | None) -> tuple[Weights, Weights | None]:
    """The weights, and those of another checkpoint under their names; what has no counterpart there is said first."""
    if not others:
        return weights, None
    found = counterparts(weights, others)
    alone = tuple(name for name, weight in weights.items() if name not in found and weight.floating)
    if not any(weights[name].floating for name in found):
        raise ValueError(
            f"expected a checkpoint with tensors of the same names and shapes for --against, got none among its {len(others):,} "
            f"(such as {next(iter(others))}, here {next(iter(weights))}); pass the one that this was trained from"
        )
    if alone:
        why = f"not compared: the checkpoint of --against has none of the name and shape for {len(alone):,} of the tensors"
        weights = Listed(weights, {why: alone, **left_out(weights)})
    return weights, found


def _adapted(
    name: str, weights: Weights, found: Mapping[str, Adapted], base: Weights | None, facts: Mapping[str, Any]
) -> Subject:
    """An adapter alone, or the weights of its base that it changes, with those of the base as their origin."""
    facts = {**facts, "adapter": found, "name": printable(name, 400), "origin": None}
    if base is None:
        return Subject(weights=weights, **facts)
    after, before = merged(found, weights, base)
    return Subject(weights=after, **{**facts, "origin": before or None})


def _check_device(device: str) -> None:
    if device == "cpu":
        return
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(
            f"expected a device of this machine, got {device!r}: {one_line(error)}; leave out --device"
        ) from error


def dataset(name: str, *, exact: bool = False) -> Any:
    """Data from the command line: ``digits``, an .npz with x and perhaps y, or an .npy with x alone.

    Floats become float32 unless they are wanted ``exact``.
    """
    if name == "digits":
        from theodolite.io.builtin_network import digits

        return digits()
    path = Path(name)
    if path.suffix not in (".npz", ".npy") or not is_plain_file(path):
        raise ValueError(f"expected data as digits, a .npz with x and y, or a .npy, got {name!r}; check the path")
    arrays, names = _arrays(path)
    if isinstance(arrays, np.ndarray):
        return _inputs(arrays)
    if exact and "x" in arrays and "y" in arrays:
        return arrays["x"], arrays["y"]
    if "x" not in arrays:
        raise ValueError(f"expected an array called x (and y) in {path}, got {names}; numpy.savez(path, x=x, y=y)")
    x = _inputs(arrays["x"])
    return (x, _targets(arrays["y"])) if "y" in arrays else x


def asked_subject(
    name: str | None,
    data: str | None = None,
    *,
    against: str | None = None,
    base: str | None = None,
    device: str = "cpu",
    **given: Any,
) -> Subject:
    """The subject that a command line names; the built-in network where it names none. ``given`` are fields of `Subject`."""
    if name is None and data is None:
        from theodolite.io.builtin_network import builtin

        return builtin()
    if name is None:
        raise ValueError("expected a model to run the data through, got data alone; name package.module:function")
    return_large_blocks()
    loaded = dataset(data) if data else None
    origin = checkpoint(against, device=device) if against else None
    facts = {**given, "loss": default_loss(loaded), "origin": origin} | ({"base": base} if base else {})
    return target(name, data=loaded, device=device, **facts)


def return_large_blocks() -> None:
    """In this process, have the C library give tensors back to the system when they are freed.

    It would keep blocks of up to 32 MB (now 8 MB), and cut small notes out of them: then the next tensor of the same size no
    longer fits, and a survey that has one tensor in memory at a time grows as if it kept them all. Without glibc nothing is
    changed.
    """
    import ctypes

    with contextlib.suppress(OSError, AttributeError, TypeError):
        for option, size in _LIMITS:
            ctypes.CDLL(None).mallopt(option, size)


_LIMITS = (
    (-3, 8 << 20),
    (-1, 64 << 20),
)  # M_MMAP_THRESHOLD and M_TRIM_THRESHOLD of malloc.h: smaller ones are used again


def table(name: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Rows of numbers from the command line, in their own precision, and labels where there are any.

    ``digits``, an .npy, an .npz (x, or its only array; y labels it), a .csv of numbers (a first line of names is passed
    over), or with pandas a .parquet, of which columns of text are left out.
    """
    path = Path(name)
    if name == "digits":
        from sklearn.datasets import load_digits

        bunch = load_digits()
        return bunch.data, bunch.target
    readers = {".npy": _array_table, ".npz": _array_table, ".csv": _csv_table, ".parquet": _parquet_table}
    if path.suffix not in readers or not is_plain_file(path):
        raise ValueError(
            f"expected digits or a file that is .npy, .npz, .csv or .parquet, got {name!r}; check the path"
        )
    return readers[path.suffix](path)


def _array_table(path: Path) -> tuple[np.ndarray, np.ndarray | None]:
    arrays, names = _arrays(path, alone=True)
    if isinstance(arrays, np.ndarray):
        return arrays, None
    if "x" not in arrays:
        raise ValueError(f"expected an array called x in {path}, got {names}; numpy.savez(path, x=x, y=y)")
    return arrays["x"], arrays.get("y")


def _arrays(path: Path, *, alone: bool = False) -> tuple[np.ndarray | dict[str, np.ndarray], list[str]]:
    """The array of an .npy; of an .npz those called x and y, and the names of all. ``alone``: its only one may be x."""
    try:
        with path.open("rb") as raw:
            zipped = raw.read(2) == b"PK"
            raw.seek(0)
            if not zipped:
                return numbers(lambda: np.load(raw, allow_pickle=False), str(path)), []
            loaded = np.load(raw, allow_pickle=False)
            names = list(loaded.files)
            wanted = {key: key for key in ("x", "y") if key in names}
            if alone and len(names) == 1:
                wanted = {"x": names[0]}
            read = {key: partial(loaded.__getitem__, own) for key, own in wanted.items()}
            return {key: numbers(one, f"{printable(wanted[key], 60)} of {path}") for key, one in read.items()}, names
    except _zips.ERRORS as error:
        if str(error).startswith("expected"):
            raise
        raise ValueError(
            f"expected arrays of numbers in {path}, got {one_line(error)}; save with numpy.savez"
        ) from error


def _csv_table(path: Path) -> tuple[np.ndarray, None]:
    with path.open(encoding="utf-8", errors="replace") as lines:
        first = lines.readline()
    try:
        [float(word) for word in first.split(",")]
        names = 0
    except ValueError:
        names = 1
    try:
        return np.loadtxt(path, delimiter=",", skiprows=names, ndmin=2), None
    except ValueError as error:
        raise ValueError(f"expected numbers between commas in {path}, got {one_line(error)}; leave out text") from error


def _parquet_table(path: Path) -> tuple[np.ndarray, None]:
    try:
        import pandas

        frame = pandas.read_parquet(path)
    except ImportError as error:
        raise ImportError(
            f"expected pandas and pyarrow to read {path}, got none; pip install pandas pyarrow"
        ) from error
    except (OSError, ValueError) as error:
        raise ValueError(f"expected a table in {path}, got {one_line(error)}; write it with pandas") from error
    kept = frame.select_dtypes(["number", "bool"])
    if not len(kept.columns):
        raise ValueError(f"expected columns of numbers in {path}, got {list(frame.columns)}; add some")
    return kept.to_numpy(), None


def default_loss(data: Any) -> Callable[[Any, Any], Tensor] | None:
    """Cross-entropy for whole-number targets, mean square for others, none without targets."""
    if not isinstance(data, tuple):
        return None
    functional = torch.nn.functional
    return functional.mse_loss if data[1].is_floating_point() else functional.cross_entropy


def _inputs(x: np.ndarray) -> Tensor:
    return torch.from_numpy(_single(x) if x.dtype.kind in "fub" else x.astype(np.int64))


def _targets(y: np.ndarray) -> Tensor:
    return torch.from_numpy(_single(y) if y.dtype.kind == "f" else y.astype(np.int64))


def _single(x: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        found: np.ndarray = x.astype(np.float32)
    if bool((np.isinf(found) & np.isfinite(x)).any()):
        size = float(np.abs(x[np.isfinite(x)]).max())
        raise ValueError(f"expected data that single precision holds, got numbers up to {size:.3g}; scale them first")
    return found


def _from_function(name: str, *, data: Any, facts: Mapping[str, Any]) -> Subject:
    module, _, function = name.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        make = getattr(importlib.import_module(module), function)
    except AttributeError as error:
        raise ValueError(f"expected a function called {function} in {module}, got none; check the name") from error
    except Exception as error:
        raise ValueError(
            f"expected {KINDS}, got {name!r}: {one_line(error)}; run it where the module imports"
        ) from error
    made = make if is_module(make) or isinstance(make, Subject) else _called(name, make)
    if isinstance(made, Subject):
        return made
    if not is_module(made):
        raise ValueError(
            f"expected {name} to return an nn.Module or a Subject, got {type(made).__name__}; return the model"
        )
    origin = _compared(weights_of(made), facts["origin"])[1] if facts.get("origin") else None
    return Subject(made, data=data, name=name, **{**facts, "origin": origin})


def _called(name: str, make: Any) -> Any:
    if not callable(make):
        raise ValueError(f"expected {name} to be a function that returns a model, got {type(make).__name__}; wrap it")
    needed = [
        p.name
        for p in inspect.signature(make).parameters.values()
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    if needed:
        raise ValueError(
            f"expected {name} to need no arguments, got one that needs {', '.join(needed)}; "
            "write a function without arguments that calls it"
        )
    try:
        return make()
    except Exception as error:
        raise ValueError(
            f"expected {name} to return a model, got {one_line(error)}; call it in Python to see why"
        ) from error
