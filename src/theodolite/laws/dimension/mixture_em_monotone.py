r"""Each step of expectation maximization for a Gaussian mixture raises the likelihood, or leaves it."""

from itertools import pairwise

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.core.reading import Band


def measure(components: int, *, generator: torch.Generator, temper: float = 1.0) -> float:
    """The largest fall of the mean log-likelihood in 25 steps from blurred true classes; 0 where it never falls."""
    centers = 3 * torch.randn(components, 1, 3, generator=generator, dtype=torch.float64)
    x = (centers + torch.randn(components, 80, 3, generator=generator, dtype=torch.float64)).flatten(0, 1)
    shares = torch.eye(components, dtype=torch.float64).repeat_interleave(80, dim=0)
    shares = 0.8 * shares + 0.2 / components
    heights = []
    for _ in range(25):
        logs = _log_densities(x, shares)
        total = logs.logsumexp(1, keepdim=True)
        heights.append(float(total.mean()))
        shares = torch.softmax(temper * logs, dim=1)
    return max(0.0, *(before - after for before, after in pairwise(heights)))


def _log_densities(x: Tensor, shares: Tensor) -> Tensor:
    """The M step from these shares, then log of weight times density of each component, (n, k)."""
    mass = shares.sum(0)
    means = (shares.T @ x) / mass[:, None]
    apart = x[:, None] - means  # (n, k, d)
    covariances = torch.einsum("nk,nka,nkb->kab", shares, apart, apart) / mass[:, None, None]
    factors = torch.linalg.cholesky(covariances)
    solved = torch.linalg.solve_triangular(factors, apart.permute(1, 2, 0), upper=False)
    logdet = factors.diagonal(dim1=1, dim2=2).log().sum(1)
    return (mass / len(x)).log() - logdet - 0.5 * solved.square().sum(1).T


law = Law(
    claim="Expectation maximization never lowers the likelihood of a Gaussian mixture.",
    formula=r"\ell(\theta_{t+1})\ge\ell(\theta_t)",
    assumes={"shares are the posterior probabilities": {"temper": 0.38}},
    source="dempster1977",
    predict=lambda **case: Band.around(0.0, abs=1e-10),  # rounding of a mean of logarithms
    measure=measure,
    cases=({"components": 2}, {"components": 3}, {"components": 4}),
    repeats=12,
    quantity="largest fall of the mean log-likelihood in a step",
)
