"""What kernels, covariances and a model's inputs may be."""

from __future__ import annotations

import math
from typing import Any

from theodolite.core.domains import array, whole


def kernel(name: str, value: Any, *, tensor: bool) -> Any:
    """The same of a kernel's matrix, which is square and symmetric."""
    found = array(name, value, tensor=tensor)
    if found.ndim == 2:
        _symmetric(name, found)
    return found


def _symmetric(name: str, matrix: Any) -> None:
    rows, columns = matrix.shape
    if rows != columns:
        raise ValueError(f"expected a square {name}, got shape ({rows}, {columns}); points by the same points")
    apart, size = float(abs(matrix - matrix.T).max()), float(abs(matrix).max())
    if apart > 1e-4 * size:
        raise ValueError(f"expected a symmetric {name}, got entries that differ by {apart:.3g} from their mirror image")


def model_inputs(name: str, value: Any) -> Any:
    """What a model is called with, of at least one sample; an array becomes a tensor, whole numbers (tokens) stay whole.

    Its values are not looked at: functions of a model are differentiated and mapped over, where no value may decide.
    """
    import torch

    if isinstance(value, dict | tuple):
        return value
    try:
        found = torch.as_tensor(value)
    except Exception as error:
        raise TypeError(f"expected a tensor for {name}, got {type(value).__name__}") from error
    if 0 in found.shape:
        raise ValueError(f"expected at least one sample for {name}, got shape {tuple(found.shape)}")
    return found


def covariance(name: str, value: Any) -> tuple[float, float, float]:
    """The covariances of two inputs, three numbers that a Gaussian can have."""
    try:
        K11, K22, K12 = (float(one) for one in value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"expected three numbers (K11, K22, K12) for {name}, got {value!r}") from error
    if not (
        0 <= K11 < math.inf
        and 0 <= K22 < math.inf
        and abs(K12) <= math.sqrt(K11) * math.sqrt(K22) * (1 + 1e-9) + 1e-300
    ):
        raise ValueError(
            f"expected variances of at least 0 and |K12| of at most their root for {name}, got {(K11, K22, K12)}"
        )
    return K11, K22, K12


def inputs_or_count(name: str, value: Any) -> Any:
    """A network's inputs, or how many there are."""
    return array(name, value, tensor=True) if hasattr(value, "ndim") and value.ndim else whole(name, value, least=1)
