"""Known answers asked of this installation: whether its arithmetic can be trusted, before anything is read off it.

Products of whole numbers are exact in floating point as long as they stay below 2^53 (2^24 in single precision), and the
eigenvalues of the matrix of second differences are 2 - 2 cos(k pi / (n + 1)): no measurement is needed to know them.
"""

from __future__ import annotations

import functools
import importlib
import math
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from theodolite.verbs._presented import Presentable

if TYPE_CHECKING:
    from rich.console import RenderableType

LIBRARIES = ("torch", "scipy.linalg")
Outcome = Literal["right", "wrong", "absent"]
SIZE = 96
"""Rows of the matrices: large enough that blocked and threaded code is taken."""

OFTEN = 40.0
"""Multiples of the rounding unit times the norm that eigenvalues may be off."""


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

    def page(self) -> str:
        """The table as a page."""
        from html import escape

        return f"<!doctype html><meta charset=utf-8><title>theodolite doctor</title><pre>{escape(self.text())}</pre>"

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


def _loaded(library: str) -> Any:
    """The library where this process has loaded it: what was not used has no part in what a page says."""
    return sys.modules.get(library)


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


@functools.cache
def _exact_product(most: int) -> tuple[Any, Any]:
    """A matrix of whole numbers and its square, in integers: no library of floating-point products has a part in it."""
    import numpy as np

    i, j = np.indices((SIZE, SIZE))
    a = (7 * i * i + 13 * j + 5 * i * j) % most - most // 2
    return a, np.einsum("ij,jk->ik", a, a)


def _off(product: Any, expected: Any) -> float:
    import numpy as np

    return float(np.abs(np.asarray(product, dtype=np.float64) - expected).max())


def _products() -> Known:
    """Matrix products of numpy and torch, in double and single precision."""
    import numpy as np

    worst, torch = 0.0, _loaded("torch")
    for most, dtype in ((1001, "float64"), (101, "float32")):
        a, expected = _exact_product(most)
        left = np.array(a, dtype=dtype)
        worst = max(worst, _off(left @ left, expected))
        if torch is not None:
            tensor = torch.tensor(a, dtype=getattr(torch, dtype))
            worst = max(worst, _off(tensor @ tensor, expected))
    asked = "numpy, torch" if torch is not None else "numpy"
    return _verdict("matrix products", worst, 0.0, f"Exact in float64 and float32 ({asked}).", _BLAS)


_BLAS = "Reinstall numpy and torch, from the same source; set OMP_NUM_THREADS=1 to see whether threads are to blame."


def _second_differences(size: int) -> Any:
    import numpy as np

    return 2.0 * np.eye(size) - np.eye(size, k=1) - np.eye(size, k=-1)


def _known_eigenvalues(size: int) -> Any:
    import numpy as np

    return 2 - 2 * np.cos(np.arange(1, size + 1) * math.pi / (size + 1))


def _eigenvalues() -> Known:
    """Symmetric eigenvalue drivers of numpy, scipy and torch."""
    import numpy as np

    matrix, known = _second_differences(SIZE), _known_eigenvalues(SIZE)
    found = {"numpy": np.linalg.eigvalsh(matrix)}
    if (torch := _loaded("torch")) is not None:
        found["torch"] = torch.linalg.eigvalsh(torch.from_numpy(matrix)).numpy()
    if (linalg := _loaded("scipy.linalg")) is not None:
        for driver in ("ev", "evd", "evr", "evx"):
            found[f"scipy {driver}"] = linalg.eigh(matrix, eigvals_only=True, driver=driver)
    return _worst_of("eigenvalues", {name: float(np.abs(values - known).max()) for name, values in found.items()})


def _singular_values() -> Known:
    """Singular value drivers."""
    import numpy as np

    matrix = np.eye(SIZE, SIZE + 1) - np.eye(SIZE, SIZE + 1, k=1)  # differences: its Gram matrix has second ones
    known = np.sqrt(_known_eigenvalues(SIZE))[::-1]
    found = {"numpy": np.linalg.svd(matrix, compute_uv=False)}
    if (torch := _loaded("torch")) is not None:
        found["torch"] = torch.linalg.svdvals(torch.from_numpy(matrix)).numpy()
    if (linalg := _loaded("scipy.linalg")) is not None:
        for driver in ("gesdd", "gesvd"):
            found[f"scipy {driver}"] = linalg.svd(matrix, compute_uv=False, lapack_driver=driver)
    return _worst_of("singular values", {name: float(np.abs(values - known).max()) for name, values in found.items()})


def _worst_of(name: str, errors: dict[str, float]) -> Known:
    limit = OFTEN * 2.2e-16 * 4 * math.sqrt(SIZE)
    worst = max(errors, key=lambda key: errors[key])
    right = f"{len(errors)} drivers, off by {errors[worst]:.1e} at most ({worst})."
    return _verdict(name, errors[worst], limit, right, f"The driver of {worst} is to blame. {_BLAS}")


def _small_numbers() -> Known:
    """Whether numbers near zero are kept: some libraries make the processor flush them for the whole process."""
    import numpy as np

    kept = float(np.float64(5e-324) * np.float64(1.0)) == 5e-324 and float(np.float32(1e-40) * np.float32(1.0)) > 0
    remedy = "A library has switched denormal numbers off (-ffast-math); find it by importing one after the other."
    return _verdict("numbers near zero", 0.0 if kept else 1.0, 0.0, "Denormal numbers are kept.", remedy)


def _random_numbers() -> Known:
    """The first numbers of torch's and numpy's generators from seed 0."""
    import numpy as np

    error = abs(float(np.random.default_rng(0).random()) - NUMPY_FIRST)
    if (torch := _loaded("torch")) is not None:
        drawn = torch.rand(2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        error = max(error, abs(float(drawn[0]) - TORCH_FIRST))
    right = "Seeds give the same random numbers as when verdicts were recorded."
    return _verdict("random numbers", error, 0.0, right, "Verdicts stay the same, but their digits will differ.")


TORCH_FIRST, NUMPY_FIRST = 0.9700530018065531, 0.6369616873214543


def _threads() -> Known:
    """The same product on one thread and on all, and as many threads as there are cores."""
    import torch

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    before = torch.get_num_threads()
    a = torch.linspace(-1, 1, 300 * 300, dtype=torch.float64).reshape(300, 300).sin()
    many = a @ a
    try:
        torch.set_num_threads(1)
        one = a @ a
    finally:
        torch.set_num_threads(before)
    error = float((many - one).abs().max() / (one.abs().max() or 1.0))
    if before > cores:
        remedy = f"Set OMP_NUM_THREADS={cores}: more threads than cores slow each other down."
        return Known("threads", "wrong", f"{before} threads on {cores} cores.", remedy, float(before - cores))
    return _verdict("threads", error, 1e-13, f"{before} of {cores} cores; the same answer as on one.", _BLAS)


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
    a, expected = _exact_product(1001)
    there = torch.tensor(a, dtype=torch.float64, device="cuda")
    error = _off((there @ there).cpu(), expected)
    matrix = torch.from_numpy(_second_differences(SIZE)).cuda()
    known = torch.from_numpy(_known_eigenvalues(SIZE))
    error = max(error, float((torch.linalg.eigvalsh(matrix).cpu() - known).abs().max()))
    right = f"{torch.cuda.get_device_name()}: float64 products exact, eigenvalues off by {error:.1e}."
    return _verdict("GPU", error, OFTEN * 2.2e-16 * 4 * math.sqrt(SIZE), right, "Use the CPU (--device cpu).")


def _gpu_single_precision() -> Known:
    """Whether float32 products on the GPU are rounded to fewer digits (TF32)."""
    import torch

    if not torch.cuda.is_available():
        return Known("GPU, float32", "absent", "No GPU.")
    a, expected = _exact_product(101)
    there = torch.tensor(a, dtype=torch.float32, device="cuda")
    remedy = "torch.backends.cuda.matmul.allow_tf32 = False."
    return _verdict("GPU, float32", _off((there @ there).cpu(), expected), 0.0, "Products are exact.", remedy)


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
    return Known("optional packages", "right", f"All there: {', '.join(wanted)}.")


def _versions() -> Known:
    import numpy as np
    import scipy
    import torch

    libraries = f"torch {torch.__version__}, numpy {np.__version__}, scipy {scipy.__version__}"
    return Known("versions", "right", f"Python {platform.python_version()}, {libraries}, {platform.machine()}.")


_QUICK: Iterable[Callable[[], Known]] = (_products, _eigenvalues, _singular_values, _small_numbers, _random_numbers)
_MORE: Iterable[Callable[[], Known]] = (_threads, _disk, _gpu, _gpu_single_precision, _triton, _engines, _versions)
