"""Spectra of kernels, in closed form and from samples, and points drawn by them: determinantal point processes.

For choosing few, diverse points of a data set (landmarks, a batch to label), and for seeing how many directions a kernel has.
"""

import math

import torch
from torch import Tensor

from theodolite.core.checks import InputError, as_tensor, at_least, positive, symmetric


def brownian_eigenvalue(index: int) -> float:
    r"""$\lambda_j=1/((j-\frac12)^2\pi^2)$, the j-th eigenvalue (from 1) of $\min(x,y)$ on [0, 1]. Source: mercer1909.

    Eigenfunctions $\sqrt2\sin((j-\frac12)\pi x)$.

    >>> round(brownian_eigenvalue(1) * math.pi**2, 12)
    4.0
    """
    at_least(1, index=index)
    return 1.0 / ((index - 0.5) * math.pi) ** 2


def gaussian_eigenvalue(index: int, *, scale: float = 1.0) -> float:
    r"""The j-th eigenvalue (from 1) of $e^{-(x-y)^2/2\ell^2}$ under the standard Gaussian measure.

    $\lambda_j=\sqrt{2a/A}\,(b/A)^{j-1}$ with $a=\frac14$, $b=1/2\ell^2$, $c=\sqrt{a^2+2ab}$, $A=a+b+c$. For $\ell=1$
    $\lambda_j=\varphi^{-(2j-1)}$ with the golden ratio $\varphi$. Source: rasmussen2006, section 4.3.1.

    >>> round(gaussian_eigenvalue(1), 6), round(gaussian_eigenvalue(2), 6)
    (0.618034, 0.236068)
    """
    at_least(1, index=index)
    positive(scale=scale)
    a, b = 0.25, 0.5 / scale**2
    total = a + b + math.sqrt(a * a + 2 * a * b)
    return math.sqrt(2 * a / total) * (b / total) ** (index - 1)


def mercer_eigenvalues(kernel: Tensor) -> Tensor:
    r"""Estimates of the eigenvalues of $f\mapsto E_yk(\cdot,y)f(y)$, largest first: those of K / n for n sampled points.

    >>> mercer_eigenvalues(torch.ones(4, 4)).round(decimals=5)[0]
    tensor(1.)
    """
    kernel = as_tensor(kernel)
    symmetric(kernel=kernel)
    values: Tensor = torch.linalg.eigvalsh(kernel).flip(0)
    return values / len(kernel)


def dpp_sample(kernel: Tensor, size: int, *, generator: torch.Generator) -> Tensor:
    r"""Positions of ``size`` points drawn with probability proportional to $\det K_S$: diverse ones. A k-DPP.

    Eigenvectors are chosen by the elementary symmetric polynomials of the eigenvalues, then points one by one from
    their span. Source: kulesza2011, algorithms 1 and 2.

    >>> dpp_sample(torch.diag(torch.tensor([1.0, 0.0, 1.0])), 2, generator=torch.Generator()).tolist()
    [0, 2]
    """
    kernel = as_tensor(kernel)
    symmetric(kernel=kernel)
    values, vectors = torch.linalg.eigh(kernel.to(torch.float64).cpu())
    values = values.clamp(min=0.0)
    rank = int((values > 1e-12 * values.max()).sum()) if len(values) else 0
    if not 0 <= size <= rank:
        raise InputError(f"expected a size between 0 and the rank of the kernel, {rank}, got {size}")
    basis = vectors[:, _eigenvectors(values / values.max() if size else values, size, generator)]  # (n, size)
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
