r"""Ridge regression is the same in feature and in sample space: $(\Phi\Phi^T+\lambda)^{-1}\Phi=\Phi(\Phi^T\Phi+\lambda)^{-1}$."""

import numpy as np
import torch

from theodolite.core.law import Law


def drawn(features: int, samples: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(features)
    shapes = (features, samples), (samples,), (features,)
    phi, y, new = (torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes)
    return phi, y, new


def predict(features: int, samples: int, ridge: float) -> float:
    """In sample space: the kernel of the new point times the solution of the kernel's system."""
    phi, y, new = (tensor.numpy() for tensor in drawn(features, samples))
    return float(new @ phi @ np.linalg.solve(phi.T @ phi + ridge * np.eye(samples), y))


def measure(features: int, samples: int, ridge: float, *, loss: str = "sum", penalty: str = "square") -> float:
    """In feature space, by minimizing the regularized loss with Newton's method through autograd."""
    phi, y, new = drawn(features, samples)
    scale = 1 / samples if loss == "mean" else 1.0

    def objective(theta: torch.Tensor) -> torch.Tensor:
        size = theta.square().sum() if penalty == "square" else theta.pow(4).sum()
        return 0.5 * scale * (theta @ phi - y).square().sum() + 0.5 * ridge * size

    theta = torch.full((features,), 0.1, dtype=torch.float64)
    for _ in range(1 if penalty == "square" else 30):
        gradient = torch.autograd.functional.jacobian(objective, theta)  # type: ignore[no-untyped-call]
        theta = theta - torch.linalg.solve(torch.autograd.functional.hessian(objective, theta), gradient)  # type: ignore[no-untyped-call]
    return float(theta @ new)


law = Law(
    claim="A ridge regression may be solved with as many unknowns as features or as many as samples; the prediction is the "
    "same, which is the kernel trick.",
    formula=r"(\Phi\Phi^{T}+\lambda I)^{-1}\Phi Y=\Phi(\Phi^{T}\Phi+\lambda I)^{-1}Y",
    assumes={"a loss summed over samples": {"loss": "mean"}, "a quadratic penalty": {"penalty": "quartic"}},
    source="saunders1998",
    predict=predict,
    measure=measure,
    cases=(
        {"features": 12, "samples": 5, "ridge": 0.3},
        {"features": 4, "samples": 9, "ridge": 0.7},
        {"features": 8, "samples": 8, "ridge": 0.1},
    ),
    tolerance=1e-9,  # an identity: rounding times condition numbers below 100
    quantity="prediction at a new point",
)
