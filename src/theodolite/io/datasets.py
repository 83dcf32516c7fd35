"""Data that the command line names: files of arrays and tables, and the built-in digits."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite.core.checks import InputError, MissingPackageError
from theodolite.core.lazy_torch import torch
from theodolite.io.checkpoints import numbers, one_line
from theodolite.io.files import is_plain_file, printable
from theodolite.io.formats import _zips

if TYPE_CHECKING:
    from torch import Tensor


def dataset(name: str, *, exact: bool = False) -> Any:
    """Data from the command line: ``digits``, an .npz with x and perhaps y, or an .npy with x alone.

    Floats become float32 unless they are wanted ``exact``.
    """
    if name == "digits":
        return digits()
    path = Path(name)
    if path.suffix not in (".npz", ".npy") or not is_plain_file(path):
        todo = "save it with numpy.savez(path, x=x, y=y)" if path.is_file() else "check the path"
        raise InputError(f"expected data as digits, a .npz with x and y, or a .npy, got {name!r}; {todo}")
    arrays, names = _arrays(path)
    if isinstance(arrays, np.ndarray):
        return _inputs(arrays)
    if exact and "x" in arrays and "y" in arrays:
        return arrays["x"], arrays["y"]
    if "x" not in arrays:
        raise InputError(f"expected an array called x (and y) in {path}, got {names}; numpy.savez(path, x=x, y=y)")
    x = _inputs(arrays["x"])
    return (x, _targets(arrays["y"])) if "y" in arrays else x


def digits() -> tuple[Tensor, Tensor]:
    """The 1,797 images of 8 x 8 pixels, centered and scaled to variance one over all pixels, and their labels."""
    images, labels = _digits()
    x = torch.as_tensor(images, dtype=torch.float32)
    return (x - x.mean()) / x.std(), torch.as_tensor(labels)


def _digits() -> tuple[np.ndarray, np.ndarray]:
    """As scikit-learn has them, from its file: to import the package takes two seconds."""
    found = importlib.util.find_spec("sklearn")
    root = Path((found.submodule_search_locations or ["."])[0]) if found is not None else Path()
    path = root / "datasets" / "data" / "digits.csv.gz"
    if path.is_file():
        rows = np.loadtxt(path, delimiter=",")
        return rows[:, :-1], rows[:, -1].astype(int)
    from sklearn.datasets import load_digits

    bunch = load_digits()
    return bunch.data, bunch.target


def table(name: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Rows of numbers from the command line, in their own precision, and labels where there are any.

    ``digits``, an .npy, an .npz (x, or its only array; y labels it), a .csv of numbers (a first line of names is passed
    over), or with pandas a .parquet, of which columns of text are left out.
    """
    path = Path(name)
    if name == "digits":
        return _digits()
    readers = {".npy": _array_table, ".npz": _array_table, ".csv": _csv_table, ".parquet": _parquet_table}
    if path.suffix not in readers or not is_plain_file(path):
        raise InputError(
            f"expected digits or a file that is .npy, .npz, .csv or .parquet, got {name!r}; check the path"
        )
    return readers[path.suffix](path)


def _array_table(path: Path) -> tuple[np.ndarray, np.ndarray | None]:
    arrays, names = _arrays(path, alone=True)
    if isinstance(arrays, np.ndarray):
        return arrays, None
    if "x" not in arrays:
        raise InputError(f"expected an array called x in {path}, got {names}; numpy.savez(path, x=x, y=y)")
    return arrays["x"], arrays.get("y")


def _arrays(path: Path, *, alone: bool = False) -> tuple[np.ndarray | dict[str, np.ndarray], list[str]]:
    """The array of an .npy; of an .npz those called x and y, and the names of all. ``alone``: its only one may be x."""
    try:
        with path.open("rb") as raw:
            zipped = raw.read(2) == b"PK"
            raw.seek(0)
            if not zipped and path.suffix == ".npz":
                raise InputError(f"expected a .npz file, got {path}, which is another kind; save it with numpy.savez")
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
        if isinstance(error, InputError):
            raise
        raise InputError(
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
    return torch.from_numpy(_single(x) if x.dtype.kind in "fub" else x.astype(np.int64))


def _targets(y: np.ndarray) -> Tensor:
    return torch.from_numpy(_single(y) if y.dtype.kind == "f" else y.astype(np.int64))


def _single(x: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        found: np.ndarray = x.astype(np.float32)
    if bool((np.isinf(found) & np.isfinite(x)).any()):
        size = float(np.abs(x[np.isfinite(x)]).max())
        raise InputError(f"expected data that single precision holds, got numbers up to {size:.3g}; scale them first")
    return found
