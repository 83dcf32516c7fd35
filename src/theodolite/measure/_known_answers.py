"""What libraries compute beside what is known exactly: errors of products, eigenvalues, random numbers and threads.

Products of whole numbers are exact in floating point as long as they stay below 2^53 (2^24 in single precision), and the
eigenvalues of the matrix of second differences are 2 - 2 cos(k pi / (n + 1)): no measurement is needed to know them. Only
libraries that this process has loaded are asked: what was not used has no part in what a page says.
"""

import functools
import math
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

SIZE = 96
"""Rows of the matrices: large enough that blocked and threaded code is taken."""
OFTEN = 40.0
"""Multiples of the rounding unit times the norm that eigenvalues may be off."""
EIGENVALUES_OFF = OFTEN * 2.2e-16 * 4 * math.sqrt(SIZE)
DOUBLE, SINGLE = 1001, 101
"""Whole numbers up to half of this have products that are exact in double and in single precision."""
TORCH_FIRST, NUMPY_FIRST = 0.9700530018065531, 0.6369616873214543


@functools.cache
def exact_product(most: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A matrix of whole numbers and its square, in integers: no library of floating-point products has a part in it."""
    i, j = np.indices((SIZE, SIZE))
    a = (7 * i * i + 13 * j + 5 * i * j) % most - most // 2
    return a, np.einsum("ij,jk->ik", a, a)


def largest_difference(found: Any, expected: Any) -> float:
    """The largest entry of the difference, in double precision."""
    return float(np.abs(np.asarray(found, dtype=np.float64) - expected).max())


def product_errors() -> dict[str, float]:
    """By library, what its products of whole numbers are off by, in double and in single precision."""
    torch = sys.modules.get("torch")
    worst: dict[str, float] = {}
    for most, dtype in ((DOUBLE, "float64"), (SINGLE, "float32")):
        a, expected = exact_product(most)
        left = np.array(a, dtype=dtype)
        worst["numpy"] = max(worst.get("numpy", 0.0), largest_difference(left @ left, expected))
        if torch is not None:
            tensor = torch.tensor(a, dtype=getattr(torch, dtype))
            worst["torch"] = max(worst.get("torch", 0.0), largest_difference(tensor @ tensor, expected))
    return worst


def second_differences(size: int) -> NDArray[np.float64]:
    """2 on the diagonal and -1 beside it."""
    return 2.0 * np.eye(size) - np.eye(size, k=1) - np.eye(size, k=-1)


def known_eigenvalues(size: int) -> NDArray[np.float64]:
    """Those of the second differences, ascending."""
    return 2 - 2 * np.cos(np.arange(1, size + 1) * math.pi / (size + 1))


def eigenvalue_errors() -> dict[str, float]:
    """By driver, what its eigenvalues of a symmetric matrix are off by."""
    matrix, known = second_differences(SIZE), known_eigenvalues(SIZE)
    found = {"numpy": np.linalg.eigvalsh(matrix)}
    if (torch := sys.modules.get("torch")) is not None:
        found["torch"] = torch.linalg.eigvalsh(torch.from_numpy(matrix)).numpy()
    if (linalg := sys.modules.get("scipy.linalg")) is not None:
        for driver in ("ev", "evd", "evr", "evx"):
            found[f"scipy {driver}"] = linalg.eigh(matrix, eigvals_only=True, driver=driver)
    return {name: largest_difference(values, known) for name, values in found.items()}


def singular_value_errors() -> dict[str, float]:
    """By driver, what its singular values are off by."""
    matrix = np.eye(SIZE, SIZE + 1) - np.eye(SIZE, SIZE + 1, k=1)  # differences: its Gram matrix has second ones
    known = np.sqrt(known_eigenvalues(SIZE))[::-1]
    found = {"numpy": np.linalg.svd(matrix, compute_uv=False)}
    if (torch := sys.modules.get("torch")) is not None:
        found["torch"] = torch.linalg.svdvals(torch.from_numpy(matrix)).numpy()
    if (linalg := sys.modules.get("scipy.linalg")) is not None:
        for driver in ("gesdd", "gesvd"):
            found[f"scipy {driver}"] = linalg.svd(matrix, compute_uv=False, lapack_driver=driver)
    return {name: largest_difference(values, known) for name, values in found.items()}


def small_numbers_are_kept() -> bool:
    """Whether numbers near zero are kept: some libraries make the processor flush them for the whole process."""
    return float(np.float64(5e-324) * np.float64(1.0)) == 5e-324 and float(np.float32(1e-40) * np.float32(1.0)) > 0


def random_number_error() -> float:
    """What the first numbers of torch's and numpy's generators from seed 0 are off by."""
    error = abs(float(np.random.default_rng(0).random()) - NUMPY_FIRST)
    if (torch := sys.modules.get("torch")) is not None:
        drawn = torch.rand(2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        error = max(error, abs(float(drawn[0]) - TORCH_FIRST))
    return error


def thread_error() -> float:
    """By what share a product on one thread differs from that on all."""
    import torch

    before = torch.get_num_threads()
    a = torch.linspace(-1, 1, 300 * 300, dtype=torch.float64).reshape(300, 300).sin()
    many = a @ a
    try:
        torch.set_num_threads(1)
        one = a @ a
    finally:
        torch.set_num_threads(before)
    return float((many - one).abs().max() / (one.abs().max() or 1.0))


def gpu_errors() -> tuple[float, float]:
    """What products and eigenvalues in double precision, and products in single, are off by on the GPU."""
    import torch

    a, expected = exact_product(DOUBLE)
    there = torch.tensor(a, dtype=torch.float64, device="cuda")
    error = largest_difference((there @ there).cpu(), expected)
    found = torch.linalg.eigvalsh(torch.from_numpy(second_differences(SIZE)).cuda()).cpu()
    a, expected = exact_product(SINGLE)
    there = torch.tensor(a, dtype=torch.float32, device="cuda")
    return max(error, largest_difference(found, known_eigenvalues(SIZE))), largest_difference(
        (there @ there).cpu(), expected
    )
