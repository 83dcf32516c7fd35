"""Data that the command line names: files of arrays and tables, and the built-in digits."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite.core.checks import InputError, MissingPackageError
from theodolite.core.lazy_torch import torch
from theodolite.io.checkpoints import numbers, one_line

if TYPE_CHECKING:
    from torch import Tensor


def dataset(name: str, *, exact: bool = False) -> Any:
    """Data from the command line: ``digits``, an .npz with x and perhaps y, or an .npy with x alone.

    Floats become float32 unless they are wanted ``exact``.
    """
    if name == "digits":
        return digits()
    path = Path(name)
    if path.suffix not in (".npz", ".npy") or not path.exists():
        raise InputError(f"expected data as digits, a .npz with x and y, or a .npy, got {name!r}; check the path")
    try:
        with path.open("rb") as raw:
            loaded = _loaded(raw, path)
            if isinstance(loaded, np.ndarray):
                return _inputs(loaded)
            arrays = {key: numbers(loaded, key, path) for key in ("x", "y") if key in loaded.files}
            names = loaded.files
    except (OSError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(
            f"expected arrays of numbers in {path}, got {one_line(error)}; save with numpy.savez"
        ) from error
    if exact and "x" in arrays and "y" in arrays:
        return arrays["x"], arrays["y"]
    if "x" not in arrays:
        raise InputError(f"expected an array called x (and y) in {path}, got {names}; numpy.savez(path, x=x, y=y)")
    x = _inputs(arrays["x"])
    return (x, _targets(arrays["y"])) if "y" in arrays else x


def digits() -> tuple[Tensor, Tensor]:
    """The 1,797 images of 8 x 8 pixels, centered and scaled to variance one over all pixels, and their labels."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    x = torch.as_tensor(bunch.data, dtype=torch.float32)
    return (x - x.mean()) / x.std(), torch.as_tensor(bunch.target)


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
    if path.suffix not in readers or not path.is_file():
        raise InputError(
            f"expected digits or a file that is .npy, .npz, .csv or .parquet, got {name!r}; check the path"
        )
    return readers[path.suffix](path)


def _array_table(path: Path) -> tuple[np.ndarray, np.ndarray | None]:
    try:
        with path.open("rb") as raw:
            loaded = _loaded(raw, path)
            if isinstance(loaded, np.ndarray):
                return loaded, None
            key = "x" if "x" in loaded.files else loaded.files[0] if len(loaded.files) == 1 else ""
            if not key:
                raise InputError(
                    f"expected an array called x in {path}, got {loaded.files}; numpy.savez(path, x=x, y=y)"
                )
            return numbers(loaded, key, path), numbers(loaded, "y", path) if "y" in loaded.files else None
    except (OSError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(
            f"expected arrays of numbers in {path}, got {one_line(error)}; save with numpy.save"
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
        raise InputError(f"expected numbers between commas in {path}, got {one_line(error)}; leave out text") from error


def _parquet_table(path: Path) -> tuple[np.ndarray, None]:
    try:
        import pandas

        frame = pandas.read_parquet(path)
    except ImportError as error:
        raise MissingPackageError(
            f"expected pandas and pyarrow to read {path}, got none; pip install pandas pyarrow"
        ) from error
    except (OSError, ValueError) as error:
        raise InputError(f"expected a table in {path}, got {one_line(error)}; write it with pandas") from error
    kept = frame.select_dtypes(["number", "bool"])
    if not len(kept.columns):
        raise InputError(f"expected columns of numbers in {path}, got {list(frame.columns)}; add some")
    return kept.to_numpy(), None


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
        raise InputError(f"expected arrays of numbers in {path}, got {one_line(error)}; save plain arrays") from error
