"""Solving with kernel matrices that are too large to store: conjugate gradients and a pivoted Cholesky factor."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from theodolite.core.checks import at_least, not_negative, positive

PIVOTS = 64
"""Columns of a pivoted Cholesky factor that are made together."""


class Matrix(Protocol):
    """What a solver asks of a symmetric matrix; a tensor has it, and so has a `KernelMatrix`."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The numbers of rows and columns."""
        ...

    def diagonal(self) -> Tensor:
        """The diagonal."""
        ...

    def __matmul__(self, vectors: Tensor, /) -> Tensor:
        """The product with vectors."""
        ...


@dataclass(frozen=True)
class Solution:
    """A solution, the iterations it took, and its residual relative to the right side, measured at the end."""

    weights: Tensor
    iterations: int
    residual: float
    converged: bool


def pivoted_cholesky(
    column: Callable[[Tensor], Tensor], diagonal: Tensor, *, rank: int, tolerance: float = 0.0
) -> Tensor:
    r"""L of shape (n, at most ``rank``) with $LL^T\approx K$: pivots are the largest of what is left, to a factor two.

    ``column(places)`` gives the columns of K at some places, (n, count): they are asked for in blocks, so that the work is
    products of matrices. Of a block those are taken that, after the ones before them, still leave half of what any place
    outside the block can have left.

    Source: harbrecht2012, algorithm 1. Differs from the source: in blocks.

    >>> K = torch.tensor([[4.0, 2.0], [2.0, 1.0]])
    >>> pivoted_cholesky(lambda i: K[:, i], K.diagonal(), rank=2)
    tensor([[2.],
            [1.]])
    """
    left = diagonal.clone()
    least = max(1e-14 * float(diagonal.max()), tolerance * float(left.sum()) / len(left))
    found = left.new_empty(len(left), min(rank, len(left)))
    done, most = 0, 1
    while done < found.shape[1]:
        top = left.topk(min(most + 1, len(left)))
        if float(top.values[0]) <= least:
            return found[:, :done].contiguous()
        block = top.indices[: min(most, found.shape[1] - done)]
        outside = float(top.values[len(block)]) if len(block) < len(top.values) else 0.0
        new = column(block) - found[:, :done] @ found[block, :done].T
        chosen = _independent(new[block], max(least, 0.5 * outside))
        lower = torch.linalg.cholesky(new[block[chosen]][:, chosen].double())
        part = torch.linalg.solve_triangular(lower.to(new), new[:, chosen].T, upper=False).T
        found[:, done : done + len(chosen)] = part
        left = (left - part.square().sum(1)).clamp_(min=0.0)
        left[block[chosen]] = 0.0
        done += len(chosen)
        # what is not taken was in vain
        most = min(2 * most, PIVOTS) if len(chosen) == len(block) else max(1, most // 2)
    return found


def _independent(core: Tensor, least: float) -> Tensor:
    """Places of a small matrix in the order of its own pivots, as long as more than ``least`` is left; at least one."""
    rest = core.double()
    chosen: list[int] = []
    for _ in range(len(core)):
        left = rest.diagonal()
        pivot = int(left.argmax())
        if chosen and float(left[pivot]) <= least:
            break
        chosen.append(pivot)
        rest = rest - torch.outer(rest[:, pivot], rest[pivot]) / left[pivot]
    return torch.tensor(chosen, device=core.device)


def low_rank_preconditioner(factor: Tensor, *, ridge: float) -> Callable[[Tensor], Tensor]:
    r"""$(LL^T+\lambda I)^{-1}$ by the Woodbury identity; for $\lambda=0$ use a small one."""
    positive(ridge=ridge)
    inner = factor.T @ factor
    inner.diagonal().add_(ridge)
    lower = torch.linalg.cholesky(inner)

    def apply(v: Tensor) -> Tensor:
        return (v - factor @ torch.cholesky_solve(factor.T @ v, lower)) / ridge

    return apply


def conjugate_gradients(
    matrix: Matrix,
    y: Tensor,
    *,
    ridge: float = 0.0,
    preconditioner: Callable[[Tensor], Tensor] | None = None,
    tolerance: float = 1e-6,
    iterations: int = 1000,
) -> Solution:
    r"""The solution of $(K+\lambda I)a=y$ from products alone; every column of ``y`` has its own step.

    Stops when each column's residual is ``tolerance`` of its right side, or after so many ``iterations``, and says
    which; the residual that it reports is measured anew.

    >>> conjugate_gradients(torch.diag(torch.tensor([1.0, 3.0])), torch.tensor([1.0, 3.0])).weights
    tensor([1.0000, 1.0000])
    """
    not_negative(ridge=ridge, tolerance=tolerance)
    at_least(0, iterations=iterations)
    targets = y.reshape(len(y), -1)
    size = targets.norm(dim=0)
    size = torch.where(size > 0, size, 1.0)
    improve = preconditioner or (lambda v: v)
    found, rest = torch.zeros_like(targets), targets.clone()
    better = improve(rest)
    direction, energy = better, (rest * better).sum(0)
    count = 0
    while count < iterations and bool((rest.norm(dim=0) > tolerance * size).any()):
        product = matrix @ direction + ridge * direction
        curvature = (direction * product).sum(0)
        step = torch.where(curvature > 0, energy / torch.where(curvature > 0, curvature, 1.0), 0.0)
        found, rest = found + step * direction, rest - step * product
        better = improve(rest)
        new = (rest * better).sum(0)
        direction = better + torch.where(energy > 0, new / torch.where(energy > 0, energy, 1.0), 0.0) * direction
        energy = new
        count += 1
        if not bool((curvature > 0).any()):
            break
    residual = float(((targets - matrix @ found - ridge * found).norm(dim=0) / size).max()) if targets.numel() else 0.0
    return Solution(found.reshape(y.shape), count, residual, residual <= 2 * tolerance)


def ridge_by_conjugate_gradients(
    matrix: Matrix,
    y: Tensor,
    *,
    ridge: float,
    column: Callable[[Tensor], Tensor],
    rank: int = 100,
    tolerance: float = 1e-6,
) -> Solution:
    """Kernel ridge for more points than memory holds: conjugate gradients behind a pivoted Cholesky factor.

    For data of some ten thousand points and more, with a `KernelMatrix` whose tiles are made when they are needed.

    The preconditioner counts the mean of the diagonal that the factor leaves as a further ridge: network kernels end in a
    flat tail, which acts as one. Memory: ``rank`` columns, a few right sides and a few tiles. ``column(places)`` are columns
    of the matrix.
    """
    diagonal = matrix.diagonal().to(y)
    factor = pivoted_cholesky(column, diagonal, rank=rank)
    left = float((diagonal - factor.square().sum(1)).clamp(min=0.0).mean())
    preconditioner = low_rank_preconditioner(factor, ridge=ridge + left)
    return conjugate_gradients(matrix, y, ridge=ridge, preconditioner=preconditioner, tolerance=tolerance)
