r"""Eigenvalues of K/N on N points tend to those of the kernel: $1/((j-\frac12)\pi)^2$ for $\min(x,y)$, golden powers for RBF."""

import numpy as np
import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.theory.kernels import brownian_eigenvalue, gaussian_eigenvalue

POINTS = 300


def measure(kernel: str, index: int, *, measure_of: str = "stated") -> float:
    if kernel == "min(x, y)":
        x = (torch.arange(POINTS, dtype=torch.float64) + 0.5) / POINTS
        x = x if measure_of == "stated" else x**2
        weights = torch.full_like(x, 1 / POINTS)
        gram = torch.minimum(x[:, None], x)
    else:
        nodes, weight = np.polynomial.hermite_e.hermegauss(100)
        x = torch.as_tensor(nodes) * (1.0 if measure_of == "stated" else 0.7)
        weights = torch.as_tensor(weight / weight.sum())
        gram = torch.exp(-0.5 * (x[:, None] - x) ** 2)
    return float(torch.linalg.eigvalsh(_weighted(gram, weights))[-index])


def _weighted(gram: Tensor, weights: Tensor) -> Tensor:
    root = weights.sqrt()
    return root[:, None] * gram * root


law = Law(
    claim="The eigenvalues of a kernel under a measure are limits of those of its Gram matrix divided by the number of points; "
    "under a Gaussian measure those of the Gaussian kernel of unit width are odd powers of the golden ratio.",
    formula=r"\lambda_j=\frac{1}{(j-\frac{1}{2})^2\pi^2}\;(\min(x,y)),\qquad\lambda_j=\varphi^{-(2j-1)}\;(e^{-(x-y)^2/2})",
    assumes={"the measure that is stated": {"measure_of": "squeezed"}},
    source="mercer1909; rasmussen2006, section 4.3.1",
    predict=lambda kernel, index: brownian_eigenvalue(index) if kernel == "min(x, y)" else gaussian_eigenvalue(index),
    measure=measure,
    cases=tuple({"kernel": k, "index": j} for k in ("min(x, y)", "Gaussian") for j in (1, 2, 3)),
    tolerance=1e-3,  # midpoints err by (j pi / N)^2 / 12, 1e-4 at j = 3
    quantity="eigenvalue of the kernel",
)
