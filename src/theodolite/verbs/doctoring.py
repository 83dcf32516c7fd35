"""Known answers asked of this installation: whether its arithmetic can be trusted, before anything is read off it."""

from __future__ import annotations

import functools
import importlib
import math
import os
import platform
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from theodolite.measure._known_answers import (
    EIGENVALUES_OFF,
    eigenvalue_errors,
    gpu_errors,
    product_errors,
    random_number_error,
    singular_value_errors,
    small_numbers_are_kept,
    thread_error,
)
from theodolite.verbs._presented import Presentable

if TYPE_CHECKING:
    from rich.console import RenderableType

LIBRARIES = ("torch", "scipy.linalg")
Outcome = Literal["right", "wrong", "absent"]


@dataclass(frozen=True)
class Known:
    """One known answer: what was asked, how it came out, the error that was found, and what to do about it."""

    name: str
    verdict: Outcome
    says: str
    remedy: str = ""
    error: float = 0.0


@dataclass(frozen=True)
class Health(Presentable):
    """Every known answer of this installation."""

    columns: ClassVar[tuple[str, ...]] = ("name", "verdict", "says", "remedy", "error")
    kind: ClassVar[str] = "doctor"
    answers: tuple[Known, ...]

    @property
    def good(self) -> bool:
        """No answer was wrong."""
        return all(answer.verdict != "wrong" for answer in self.answers)

    @property
    def headline(self) -> str:
        """All of it in a few words."""
        asked = [answer for answer in self.answers if answer.verdict != "absent"]
        wrong = [answer.name for answer in asked if answer.verdict == "wrong"]
        words = f"{len(asked) - len(wrong)} of {len(asked)} known answers right"
        return words + (f"; wrong: {', '.join(wrong)}" if wrong else "")

    def rows(self) -> list[dict[str, Any]]:
        """One flat dictionary an answer."""
        return [asdict(answer) for answer in self.answers]

    def table(self) -> RenderableType:
        """For the terminal."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, show_header=False)
        marks = {"right": "✓", "wrong": "✗", "absent": "–"}
        for answer in self.answers:
            words = answer.says + (f" {answer.remedy}" if answer.remedy else "")
            table.add_row(marks[answer.verdict], answer.name, Text(words))
        return Group(table, "", Text(self.headline + "."))

    def document(self) -> dict[str, Any]:
        """What `json` writes."""
        return {"good": self.good, "headline": self.headline, "answers": self.rows()}


def doctor() -> Health:
    """Every known answer: products, eigenvalues, threads, random numbers, the disk, and a GPU where there is one.

    >>> doctor().good
    True
    """
    for library in LIBRARIES:
        importlib.import_module(library)
    return Health(tuple(_asked(check) for check in (*_QUICK, *_MORE)))


@functools.cache
def quick_health() -> Health:
    """The answers that take a few milliseconds, asked once a process of the libraries it has loaded: what pages cite."""
    return Health(tuple(_asked(check) for check in _QUICK))


def _asked(check: Callable[[], Known]) -> Known:
    try:
        return check()
    except Exception as error:  # a library that cannot be called is an answer too
        name = check.__name__.strip("_").replace("_", " ")
        return Known(name, "wrong", f"{type(error).__name__}: {error}", "Reinstall it.", math.inf)


def _verdict(name: str, error: float, limit: float, right: str, remedy: str) -> Known:
    if error <= limit:
        return Known(name, "right", right, error=error)
    return Known(name, "wrong", f"Off by {error:.3g}, of {limit:.3g} at most.", remedy, error)


def _products() -> Known:
    """Matrix products of numpy and torch, in double and single precision."""
    errors = product_errors()
    right = f"Exact in float64 and float32 ({', '.join(errors)})."
    return _verdict("matrix products", max(errors.values()), 0.0, right, _BLAS)


_BLAS = "Reinstall numpy and torch, from the same source; set OMP_NUM_THREADS=1 to see whether threads are to blame."


def _eigenvalues() -> Known:
    """Symmetric eigenvalue drivers of numpy, scipy and torch."""
    return _worst_of("eigenvalues", eigenvalue_errors())


def _singular_values() -> Known:
    """Singular value drivers."""
    return _worst_of("singular values", singular_value_errors())


def _worst_of(name: str, errors: dict[str, float]) -> Known:
    worst = max(errors, key=lambda key: errors[key])
    right = f"{len(errors)} drivers, off by {errors[worst]:.1e} at most ({worst})."
    return _verdict(name, errors[worst], EIGENVALUES_OFF, right, f"The driver of {worst} is to blame. {_BLAS}")


def _small_numbers() -> Known:
    remedy = "A library has switched denormal numbers off (-ffast-math); find it by importing one after the other."
    error = 0.0 if small_numbers_are_kept() else 1.0
    return _verdict("numbers near zero", error, 0.0, "Denormal numbers are kept.", remedy)


def _random_numbers() -> Known:
    """The first numbers of torch's and numpy's generators from seed 0."""
    right = "Seeds give the same random numbers as when the verdicts were recorded."
    remedy = "Verdicts still hold, but their digits will differ."
    return _verdict("random numbers", random_number_error(), 0.0, right, remedy)


def _threads() -> Known:
    """The same product on one thread and on all, and as many threads as there are cores."""
    import torch

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    used = torch.get_num_threads()
    if used > cores:
        remedy = f"Set OMP_NUM_THREADS={cores}: more threads than cores wait for each other."
        return Known("threads", "wrong", f"{used} threads on {cores} cores.", remedy, float(used - cores))
    return _verdict("threads", thread_error(), 1e-13, f"{used} of {cores} cores; the same answer as on one.", _BLAS)


def _disk() -> Known:
    """A file written whole into the temporary folder and read back."""
    from theodolite.io.files import write_atomically

    with tempfile.TemporaryDirectory() as folder:
        written = write_atomically(Path(folder) / "known", b"theodolite" * 1000)
        same = written.read_bytes() == b"theodolite" * 1000
    remedy = "Set TMPDIR to a folder with room that can be written."
    return _verdict("temporary folder", 0.0 if same else 1.0, 0.0, "Can be written and read back.", remedy)


def _gpu() -> Known:
    """Exact products and known eigenvalues in float64 on the GPU."""
    import torch

    if not torch.cuda.is_available():
        return Known("GPU", "absent", "None that torch can use; everything runs on the CPU.")
    error = gpu_errors()[0]
    right = f"{torch.cuda.get_device_name()}: float64 products exact, eigenvalues off by {error:.1e}."
    return _verdict("GPU", error, EIGENVALUES_OFF, right, "Use the CPU (--device cpu).")


def _gpu_single_precision() -> Known:
    """Whether float32 products on the GPU are rounded to fewer digits (TF32)."""
    import torch

    if not torch.cuda.is_available():
        return Known("GPU, float32", "absent", "No GPU.")
    remedy = "torch.backends.cuda.matmul.allow_tf32 = False."
    return _verdict("GPU, float32", gpu_errors()[1], 0.0, "Products are exact.", remedy)


def _triton() -> Known:
    """The transform that Triton compiles, against the one of torch."""
    import importlib.util

    import torch

    if importlib.util.find_spec("triton") is None or not torch.cuda.is_available():
        return Known("Triton", "absent", "Needs a GPU and the package triton; torch does the same, more slowly.")
    from theodolite.theory.dimension.hadamard import hadamard_transform

    x = torch.linspace(-1, 1, 4 * 1024, dtype=torch.float32).reshape(4, 1024)
    error = float((hadamard_transform(x.cuda()).cpu() - hadamard_transform(x)).abs().max())
    return _verdict("Triton", error, 1e-3, f"Compiles; off by {error:.1e}.", "pip install --upgrade triton")


def _engines() -> Known:
    """Which optional packages are there."""
    import importlib.util

    wanted = {"ray": "ray", "dask": "distributed", "keras": "h5py", "pandas": "pandas", "transformers": "transformers"}
    missing = [extra for extra, module in wanted.items() if importlib.util.find_spec(module) is None]
    if missing:
        words = f"Without {', '.join(missing)}: pip install 'theodolite[{','.join(missing)}]' if you need them."
        return Known("optional packages", "absent", words)
    return Known("optional packages", "right", f"All installed: {', '.join(wanted)}.")


def _versions() -> Known:
    import numpy as np
    import scipy
    import torch

    libraries = f"torch {torch.__version__}, numpy {np.__version__}, scipy {scipy.__version__}"
    return Known("versions", "right", f"Python {platform.python_version()}, {libraries}, {platform.machine()}.")


_QUICK: Iterable[Callable[[], Known]] = (_products, _eigenvalues, _singular_values, _small_numbers, _random_numbers)
_MORE: Iterable[Callable[[], Known]] = (_threads, _disk, _gpu, _gpu_single_precision, _triton, _engines, _versions)
