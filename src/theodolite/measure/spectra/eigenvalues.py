"""Eigenvalues of Gram matrices, in float64 whatever the storage, checked against the trace."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from theodolite.core.checks import InputError, InputTypeError, as_tensor
from theodolite.core.lazy_torch import array_of, is_tensor, torch

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

BLOCK = 1 << 19
"""Entries upcast at a time: the matrix itself is never copied whole."""

TRACE_ERROR = 1e-9


@overload
def gram_eigenvalues(matrix: Tensor) -> Tensor: ...


@overload
def gram_eigenvalues(matrix: NDArray[Any]) -> NDArray[np.float64]: ...


def gram_eigenvalues(matrix: Any) -> Any:
    r"""The eigenvalues of $W^\top W$ (the smaller of the two Gram matrices), ascending, float64, on the device of W.

    The Gram matrix is summed in float64 from blocks, whatever W is stored in; its eigenvalues are right to about
    $\epsilon_{64}\lambda_{\max}$ times the smaller side, so that those of a float32 matrix down to its own rounding are
    meaningful. Their sum must equal the squared Frobenius norm; where the solver fails or they do not, the singular
    values are taken instead. Of an array an array, of a tensor a tensor.

    >>> import torch
    >>> gram_eigenvalues(torch.tensor([[3.0, 0.0, 0.0], [0.0, 2.0, 0.0]])).tolist()
    [4.0, 9.0]
    """
    tensor = is_tensor(matrix)
    if not tensor and not isinstance(matrix, np.ndarray):
        raise InputTypeError(
            f"expected matrix to be a tensor or an array, got {type(matrix).__name__}; use torch.as_tensor"
        )
    real = matrix.is_floating_point() if tensor else matrix.dtype.kind == "f"
    if matrix.ndim != 2 or not real:
        raise InputError(f"expected a real matrix, got {tuple(matrix.shape)} {matrix.dtype}; use weight_matrices")
    if tensor and matrix.device.type not in ("cpu", "mps"):  # no float64 on the latter
        return _on_device(matrix.detach())
    found = _eigenvalues(array_of(matrix))
    return torch.from_numpy(found) if tensor else found


def _eigenvalues(matrix: NDArray[Any]) -> NDArray[np.float64]:
    """By numpy's library, which multiplies a matrix with itself in half the time and is never slower than torch's here."""
    if matrix.dtype.itemsize == 8:  # squares of others are numbers of float64
        largest = float(max(matrix.max(), -matrix.min())) if matrix.size else 0.0
        if 0.0 < largest < 1e-100:
            return np.asarray(_eigenvalues(matrix / largest) * largest**2)
    gram = _gram(matrix if matrix.shape[0] >= matrix.shape[1] else matrix.T)
    trace = float(np.trace(gram))
    if not math.isfinite(trace):
        raise InputError("expected finite weights, got NaN or infinity; leave this matrix out")
    try:
        found = np.linalg.eigvalsh(gram)
        if abs(float(found.sum()) - trace) <= TRACE_ERROR * trace:
            return np.asarray(np.maximum(found, 0.0))
    except np.linalg.LinAlgError:  # the solver did not converge
        pass
    return _squared_singular_values(matrix.astype(np.float64), trace)


def _gram(tall: NDArray[Any]) -> NDArray[np.float64]:
    """The n x n Gram matrix of a tall matrix, summed over blocks of rows."""
    rows, size = tall.shape
    gram = np.zeros((size, size))
    step = max(BLOCK // max(size, 1), 256)
    for start in range(0, rows, step):
        wide = tall[start : start + step].astype(np.float64)
        gram += wide.T @ wide
    return gram


def _squared_singular_values(matrix: NDArray[np.float64], trace: float) -> NDArray[np.float64]:
    from scipy.linalg import svdvals

    for solve in (lambda: np.linalg.svd(matrix, compute_uv=False), lambda: svdvals(matrix)):
        try:
            found: NDArray[np.float64] = np.square(np.ascontiguousarray(solve()[::-1]))
        except np.linalg.LinAlgError:
            continue
        if abs(float(found.sum()) - trace) <= TRACE_ERROR * trace:
            return found
    raise ArithmeticError("expected the eigenvalues to sum to the squared norm, got another sum from three solvers")


def _on_device(matrix: Tensor) -> Tensor:
    largest = float(matrix.abs().max()) if matrix.numel() else 0.0
    if 0.0 < largest < 1e-100:
        return _on_device(matrix.double() / largest) * largest**2
    tall = matrix if matrix.shape[0] >= matrix.shape[1] else matrix.T
    gram = torch.zeros(tall.shape[1], tall.shape[1], dtype=torch.float64, device=tall.device)
    for block in torch.split(tall, max(BLOCK // max(tall.shape[1], 1), 256)):
        wide = block.double()
        gram.addmm_(wide.T, wide)
    trace = float(gram.diagonal().sum())
    if not math.isfinite(trace):
        raise InputError("expected finite weights, got NaN or infinity; leave this matrix out")
    try:
        found: Tensor = torch.linalg.eigvalsh(gram)
        if abs(float(found.sum()) - trace) <= TRACE_ERROR * trace:
            return found.clamp_(min=0.0)
    except RuntimeError:  # the solver did not converge
        pass
    return torch.from_numpy(_squared_singular_values(matrix.double().cpu().numpy(), trace)).to(matrix.device)


def condition_number(matrix: Tensor) -> float:
    r"""$\kappa=\sigma_{\max}/\sigma_{\min}$ over the non-zero singular values, by a full decomposition in float64.

    The eigenvalues of the Gram matrix lose singular values below $10^{-8}\sigma_{\max}$; these do not. Zero means at or
    below the larger side times the float64 spacing of the largest. Not a number (NaN) for a matrix of zeros.

    >>> import torch
    >>> condition_number(torch.diag(torch.tensor([1.0, 0.5, 0.0])))
    2.0
    """
    matrix = as_tensor(matrix)
    values = torch.linalg.svdvals(matrix.detach().to(torch.complex128 if matrix.is_complex() else torch.float64))
    top = float(values[0]) if values.numel() else 0.0
    kept = values[values > max(matrix.shape) * torch.finfo(torch.float64).eps * top]
    return top / float(kept[-1]) if kept.numel() else math.nan
