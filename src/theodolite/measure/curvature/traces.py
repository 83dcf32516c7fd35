"""Trace, diagonal and Frobenius norm of a symmetric matrix from products alone, each with its standard error."""

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from theodolite.core.checks import InputError, at_least
from theodolite.core.reading import Estimate
from theodolite.core.statistics import student_inflation
from theodolite.measure.curvature.lanczos import Symmetric


@dataclass(frozen=True)
class Diagonal:
    """Diagonal entries and their standard errors, (P,) each."""

    values: Tensor = field(repr=False)
    errors: Tensor = field(repr=False)


@dataclass(frozen=True)
class Squared:
    """The square of a symmetric matrix, two products at a time."""

    root: Symmetric

    @property
    def size(self) -> int:
        """The number of rows."""
        return self.root.size

    @property
    def like(self) -> Tensor:
        """A tensor of its kind."""
        return self.root.like

    def __call__(self, vectors: Tensor) -> Tensor:
        """The square times each row."""
        return self.root(self.root(vectors))


def trace(operator: Symmetric, *, products: int = 100, generator: torch.Generator | None = None) -> Estimate:
    r"""$\mathrm{tr}\,A$ by XTrace: each of k test vectors probes what the range found by the other k-1 leaves.

    $t_i=\mathrm{tr}\,Q_i^TAQ_i+\mu_i^TA\mu_i$, with $Q_i$ a basis of $A\omega_j$, $j\neq i$, and $\mu_i$ the part of
    $\omega_i$ outside it, scaled to its expected norm; k is half of ``products``. Exact where ``products`` reach the size.
    Source: epperly2024.

    >>> class Diagonal:
    ...     size, like = 3, torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64)
    ...     def __call__(self, v): return v * self.like
    >>> trace(Diagonal()).value
    7.0
    """
    n, like = operator.size, operator.like
    k = products // 2
    if k < 2:
        raise InputError(f"expected at least four products for a trace with its error, got {products}")
    if 2 * k >= n:
        rows = torch.eye(n, dtype=like.dtype, device=like.device)
        return Estimate(math.fsum(operator(rows).diagonal().double().tolist()))
    omega = _sphere(k, n, like, generator)  # (k, n), rows of squared norm n
    images = operator(omega)
    Q, R = torch.linalg.qr(images.double().T)  # (n, k), (k, k)
    H = Q.T @ operator(Q.T.to(like)).double().T
    W = Q.T @ omega.double().T
    total = H.diagonal().sum()
    size = R.diagonal().abs()
    if size.min() <= 1e2 * torch.finfo(like.dtype).eps * size.max():  # the whole range is in the basis
        return Estimate(float(total), float(size.min() * k))
    S = torch.linalg.solve_triangular(R.T, torch.eye(k, dtype=R.dtype, device=R.device), upper=False)  # inverse of R^T
    S = S / S.norm(dim=0)
    X = W - S * (S * W).sum(0)
    quadratic = (W * R).sum(0) - 2 * (X * R).sum(0) + (X * (H @ X)).sum(0)
    scale = (n - k + 1) / (n - X.square().sum(0))
    draws = total - (S * (H @ S)).sum(0) + scale * quadratic
    spread = float(draws.std()) / math.sqrt(k)
    return Estimate(float(draws.mean()), spread * student_inflation(k))


def frobenius_norm(operator: Symmetric, *, products: int = 100, generator: torch.Generator | None = None) -> Estimate:
    r"""$|A|_F=\sqrt{\mathrm{tr}\,A^2}$ by XTrace of the square; its error by the square root's slope.

    Squared trace over squared norm is the number of directions that share the curvature of a positive matrix.

    >>> class Diagonal:
    ...     size, like = 2, torch.tensor([3.0, 4.0], dtype=torch.float64)
    ...     def __call__(self, v): return v * self.like
    >>> frobenius_norm(Diagonal()).value
    5.0
    """
    square = trace(Squared(operator), products=products // 2, generator=generator)
    root = math.sqrt(max(square.value, 0.0))
    return Estimate(root, square.stderr / (2 * root) if root > 0 else math.sqrt(square.stderr))


def diagonal(operator: Symmetric, *, products: int = 100, generator: torch.Generator | None = None) -> Diagonal:
    r"""$A_{ii}$ as the mean of $v_i(Av)_i$ over random signs v; a diagonal matrix is met exactly. Source: bekas2007.

    >>> class Ones:
    ...     size, like = 2, torch.ones(2, dtype=torch.float64)
    ...     def __call__(self, v): return v * self.like
    >>> diagonal(Ones(), products=4).values.tolist()
    [1.0, 1.0]
    """
    at_least(2, products=products)  # one tells no error
    like, source = operator.like, generator or _own()
    total, squares = like.new_zeros(operator.size), like.new_zeros(operator.size)
    for _ in range(products):
        signs = torch.randint(0, 2, (operator.size,), generator=source, dtype=torch.int8).to(like) * 2 - 1
        entry = signs * operator(signs)
        total += entry
        squares += entry.square()
    mean = total / products
    variance = (squares / products - mean.square()).clamp_min(0) / (products - 1)
    return Diagonal(mean, variance.sqrt() * student_inflation(products))


def _sphere(count: int, size: int, like: Tensor, generator: torch.Generator | None) -> Tensor:
    rows = torch.randn(count, size, generator=generator or _own(), dtype=torch.float64)
    return rows.mul(math.sqrt(size) / rows.norm(dim=1, keepdim=True)).to(like)


def _own() -> torch.Generator:
    return torch.Generator().manual_seed(0)
