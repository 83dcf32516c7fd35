"""Eigenvalues of Gram matrices, in float64 whatever the storage, checked against the trace."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

BLOCK = 1 << 21
"""Entries upcast at a time: the matrix itself is never copied whole."""

TRACE_ERROR = 1e-9


def gram_eigenvalues(matrix: Tensor) -> Tensor:
    r"""The eigenvalues of $W^\top W$ (the smaller of the two Gram matrices), ascending, float64, on the device of W.

    The Gram matrix is summed in float64 from blocks, whatever W is stored in; its eigenvalues are right to about
    $\epsilon_{64}\lambda_{\max}$ times the smaller side, so that those of a float32 matrix down to its own rounding are
    meaningful. Their sum must equal the squared Frobenius norm; where the solver fails or they do not, the singular
    values are taken instead.

    >>> gram_eigenvalues(torch.tensor([[3.0, 0.0, 0.0], [0.0, 2.0, 0.0]])).tolist()
    [4.0, 9.0]
    """
    if matrix.ndim != 2 or not matrix.is_floating_point():
        raise ValueError(f"expected a real matrix, got {tuple(matrix.shape)} {matrix.dtype}; use weight_matrices")
    matrix = matrix.detach()
    if matrix.device.type == "mps":  # no float64 there
        matrix = matrix.cpu()
    largest = float(matrix.abs().max()) if matrix.numel() else 0.0
    if 0.0 < largest < 1e-100:  # whose squares a double no longer holds
        return gram_eigenvalues(matrix.double() / largest) * largest**2
    gram = _gram(matrix if matrix.shape[0] >= matrix.shape[1] else matrix.T)
    trace = float(gram.diagonal().sum())
    if not math.isfinite(trace):
        raise ValueError("expected finite weights, got NaN or infinity; leave this matrix out")
    try:
        found: Tensor = torch.linalg.eigvalsh(gram)
        if abs(float(found.sum()) - trace) <= TRACE_ERROR * trace:
            return found.clamp_(min=0.0)
    except RuntimeError:  # the solver did not converge
        pass
    return _squared_singular_values(matrix, trace)


def _gram(tall: Tensor) -> Tensor:
    """The n x n Gram matrix of a tall matrix, summed over blocks of rows."""
    size = tall.shape[1]
    gram = torch.zeros(size, size, dtype=torch.float64, device=tall.device)
    for block in torch.split(tall, max(BLOCK // max(size, 1), 256)):
        wide = block.double()
        gram.addmm_(wide.T, wide)
    return gram


def _squared_singular_values(matrix: Tensor, trace: float) -> Tensor:
    from scipy.linalg import svdvals

    array = matrix.double().cpu().numpy()
    try:
        found: Tensor = torch.linalg.svdvals(matrix.double()).square().flip(0)
        if abs(float(found.sum()) - trace) <= TRACE_ERROR * trace:
            return found
    except RuntimeError:
        pass
    found = torch.from_numpy(np.ascontiguousarray(svdvals(array)[::-1])).square()
    if abs(float(found.sum()) - trace) > TRACE_ERROR * trace:
        raise ArithmeticError("expected the eigenvalues to sum to the squared norm, got another sum from three solvers")
    return found.to(matrix.device)


def condition_number(matrix: Tensor) -> float:
    r"""$\kappa=\sigma_{\max}/\sigma_{\min}$ over the non-zero singular values, by a full decomposition in float64.

    The eigenvalues of the Gram matrix lose singular values below $10^{-8}\sigma_{\max}$; these do not. Zero means at or
    below the larger side times the float64 spacing of the largest. Not a number (NaN) for a matrix of zeros.

    >>> condition_number(torch.diag(torch.tensor([1.0, 0.5, 0.0])))
    2.0
    """
    values = torch.linalg.svdvals(matrix.detach().double())
    top = float(values[0]) if values.numel() else 0.0
    kept = values[values > max(matrix.shape) * torch.finfo(torch.float64).eps * top]
    return top / float(kept[-1]) if kept.numel() else math.nan
