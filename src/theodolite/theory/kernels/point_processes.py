"""Spectra of kernels and points drawn by them: Mercer eigenvalues and determinantal point processes."""

from __future__ import annotations

import torch
from torch import Tensor


def mercer_eigenvalues(kernel: Tensor) -> Tensor:
    r"""Estimates of the eigenvalues of $f\mapsto E_yk(\cdot,y)f(y)$, largest first: those of K / n for n sampled points.

    >>> mercer_eigenvalues(torch.ones(4, 4)).round(decimals=5)[0]
    tensor(1.)
    """
    values: Tensor = torch.linalg.eigvalsh(kernel).flip(0)
    return values / max(len(kernel), 1)


def mercer_functions(kernel: Tensor, cross: Tensor, *, count: int) -> tuple[Tensor, Tensor]:
    r"""The largest Mercer eigenvalues, and eigenfunctions at new points, $\psi_j(x)=\sqrt n\,k(x,X)v_j/\mu_j$.

    ``cross`` is the kernel of new points (rows) with the sampled ones; $\mu_j,v_j$ are eigenpairs of K. The functions
    have mean square 1 over the sampled points, and a sign that is arbitrary. Source: rasmussen2006, section 4.3.2.
    """
    values, vectors = torch.linalg.eigh(kernel)
    values, vectors = values.flip(0)[:count], vectors.flip(1)[:, :count]
    return values / len(kernel), len(kernel) ** 0.5 * (cross @ vectors) / values


def dpp_expected_size(kernel: Tensor) -> float:
    r"""$E|S|=\sum_i\lambda_i/(1+\lambda_i)$ of the process $P(S)\propto\det K_S$.

    >>> dpp_expected_size(torch.eye(4))
    2.0
    """
    values = torch.linalg.eigvalsh(kernel).clamp(min=0.0)
    return float((values / (1 + values)).sum())


def dpp_sample(kernel: Tensor, count: int, *, generator: torch.Generator) -> Tensor:
    r"""Positions of ``count`` points drawn with probability proportional to $\det K_S$: diverse ones. A k-DPP.

    Eigenvectors are chosen by the elementary symmetric polynomials of the eigenvalues, then points one by one from
    their span. Source: kulesza2011, algorithms 1 and 2.

    >>> dpp_sample(torch.diag(torch.tensor([1.0, 0.0, 1.0])), 2, generator=torch.Generator()).tolist()
    [0, 2]
    """
    values, vectors = torch.linalg.eigh(kernel.to(torch.float64).cpu())
    values = values.clamp(min=0.0)
    rank = int((values > 1e-12 * values.max()).sum()) if len(values) else 0
    if not 0 <= count <= rank:
        raise ValueError(f"expected a size between 0 and the rank of the kernel, {rank}, got {count}")
    basis = vectors[:, _eigenvectors(values / values.max() if count else values, count, generator)]  # (n, size)
    found: list[int] = []
    while basis.shape[1]:
        weights = basis.square().sum(1).clamp(min=0.0)
        weights[found] = 0.0
        found.append(int(torch.multinomial(weights, 1, generator=generator)))
        largest = int(basis[found[-1]].abs().argmax())
        pivot = basis[:, largest].clone()
        others = torch.cat([basis[:, :largest], basis[:, largest + 1 :]], dim=1)
        others = others - pivot[:, None] * (others[found[-1]] / pivot[found[-1]])
        basis = torch.linalg.qr(others).Q if others.shape[1] else others
    return torch.tensor(sorted(found), dtype=torch.int64)


def _eigenvectors(values: Tensor, size: int, generator: torch.Generator) -> list[int]:
    """Positions of eigenvectors, a set of ``size`` with probability proportional to the product of its values."""
    n = len(values)
    logs = values.log()
    sums = torch.full((size + 1, n + 1), -torch.inf, dtype=torch.float64)  # logs of elementary symmetric polynomials
    sums[0] = 0.0
    for i in range(1, n + 1):
        sums[1:, i] = torch.logaddexp(sums[1:, i - 1], logs[i - 1] + sums[:-1, i - 1])
    chosen: list[int] = []
    left = size
    draws = torch.rand(n, generator=generator, dtype=torch.float64)
    for i in range(n, 0, -1):
        if left == 0:
            break
        share = float((logs[i - 1] + sums[left - 1, i - 1] - sums[left, i]).exp())
        if i == left or float(draws[i - 1]) < share:
            chosen.append(i - 1)
            left -= 1
    return chosen
