"""The largest eigenvalue, known as well as it takes to say on which side of an edge it lies."""

import math

from torch import Tensor

from theodolite.core.checks import at_least, not_negative
from theodolite.measure.curvature.lanczos import MEMORY, Eigenpairs, Symmetric, _Krylov

FEWEST = 3
"""Products before anything is said."""


def largest_beside(
    operator: Symmetric,
    edge: float = math.inf,
    *,
    tolerance: float = 0.05,
    most: int = 60,
    start: Tensor | None = None,
    memory: int = MEMORY,
) -> Eigenpairs:
    r"""The largest eigenvalue by Lanczos, stopped once it lies on one side of ``edge`` by more than its bound.

    Its Ritz value is never above the largest eigenvalue, and an eigenvalue lies within the residual of it. It stops where the
    bound is below ``tolerance`` of the value, or where value and bound lie on one side (``converged``), or after ``most``
    products. ``memory`` bounds the basis, of two vectors at the least. Source: parlett1998, section 4.5.

    >>> import torch
    >>> from types import SimpleNamespace
    >>> class Diagonal(SimpleNamespace):
    ...     def __call__(self, v): return v * self.like
    >>> matrix = Diagonal(size=100, like=torch.arange(100.0, dtype=torch.float64))
    >>> found = largest_beside(matrix, edge=20.0)
    >>> found.values[0] - found.residuals[0] > 20 and found.products < 8
    True
    """
    not_negative(tolerance=tolerance)
    at_least(1, most=most)
    state = _Krylov(operator, count=1, sign=1.0, memory=memory, most=most, fewest=2)
    state.begin(start)
    del start
    converged = False
    while not state.exhausted() and state.products < most and not converged:
        state.step()
        if state.products >= min(FEWEST, most):
            value, bound = float(state.ritz()[0][0]), float(state.residuals()[0])
            close = float(state.errors()[0]) <= tolerance * abs(value)
            converged = close or (math.isfinite(edge) and abs(value - edge) > bound)
    return state.result(converged=converged or state.exhausted())
