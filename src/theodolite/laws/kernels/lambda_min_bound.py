r"""The smallest eigenvalue of the Gram matrix on the sphere is at least $\sum_k\sigma_k^2\lambda_{\min}((XX^T)^{\circ k})$."""

import numpy as np
import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.theory.kernels import smallest_eigenvalue_bounds


def points(samples: int, dimension: int) -> Tensor:
    """Orthogonal where there are as many as dimensions: there the bound is reached by odd activations."""
    if samples == dimension:
        return torch.eye(samples, dtype=torch.float64)
    x = torch.randn(samples, dimension, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return x / x.norm(dim=1, keepdim=True)


def predict(activation: str, samples: int, dimension: int, bound: str) -> Band:
    schur, single = smallest_eigenvalue_bounds(activation, points(samples, dimension).numpy())
    # the rule of 80 nodes, where it is reached
    return Band(low=(schur if bound == "all powers" else single) * (1 - 1e-6))


def measure(activation: str, samples: int, dimension: int, bound: str, *, norm: float = 1.0) -> float:
    """By Gauss-Hermite quadrature in the plane of each pair of inputs."""
    x = norm * points(samples, dimension)
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    g, w = torch.as_tensor(nodes), torch.as_tensor(weights / np.sqrt(2 * np.pi))
    own = x.norm(dim=1)
    cosines = ((x @ x.T) / own / own[:, None]).clamp(-1, 1)
    sigma = getattr(torch, activation)
    first = sigma(own[:, None, None, None] * g[:, None])
    second = sigma(
        own[:, None, None] * (cosines[..., None, None] * g[:, None] + (1 - cosines[..., None, None] ** 2).sqrt() * g)
    )
    gram = (first * second * w[:, None] * w).sum((2, 3))
    return float(torch.linalg.eigvalsh(0.5 * (gram + gram.T))[0])


law = Law(
    claim="Every Hadamard power of the inputs' Gram matrix is positive semidefinite, so their smallest eigenvalues, weighed by "
    "squared Hermite coefficients, add up to a lower bound of the features' smallest eigenvalue.",
    formula=r"\lambda_{\min}(G)\geq\sum_k\sigma_k^2\lambda_{\min}((XX^{T})^{\circ k})\geq\max_k\sigma_k^2(1-(m-1)\delta^k)",
    assumes={"inputs of unit norm": {"norm": 0.3}},
    source="du2019; schoenberg1942",
    predict=predict,
    measure=measure,
    cases=(
        {"activation": "tanh", "samples": 6, "dimension": 10, "bound": "all powers"},
        {"activation": "tanh", "samples": 6, "dimension": 10, "bound": "the best power"},
        {"activation": "sin", "samples": 8, "dimension": 10, "bound": "all powers"},
        {"activation": "tanh", "samples": 5, "dimension": 5, "bound": "all powers"},
    ),
    quantity="smallest eigenvalue of the Gram matrix",
)
