r"""Kernel ridge regression attains the value $\frac\lambda2y^T(K+\lambda)^{-1}y$ with the weights $(K+\lambda)^{-1}y$."""

import numpy as np
import torch
from torch import Tensor

from theodolite.core.law import Law

SAMPLES = 6


def drawn() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(SAMPLES, 2, generator=generator, dtype=torch.float64)
    return torch.exp(-0.5 * torch.cdist(x, x).square()), torch.randn(SAMPLES, generator=generator, dtype=torch.float64)


def predict(ridge: float) -> float:
    K, y = (tensor.numpy() for tensor in drawn())
    return float(0.5 * ridge * y @ np.linalg.solve(K + ridge * np.eye(SAMPLES), y))


def measure(ridge: float, *, loss: str = "sum", penalty: str = "kernel") -> float:
    """The least value found by conjugate gradients on the objective, from autograd's gradients."""
    K, y = drawn()
    scale = 1 / SAMPLES if loss == "mean" else 1.0
    norm = K if penalty == "kernel" else torch.eye(SAMPLES, dtype=torch.float64)

    def objective(a: Tensor) -> Tensor:
        return 0.5 * scale * (K @ a - y).square().sum() + 0.5 * ridge * a @ norm @ a

    a = torch.zeros(SAMPLES, dtype=torch.float64)

    def gradient(a: Tensor) -> Tensor:
        return torch.autograd.functional.jacobian(objective, a)  # type: ignore[no-untyped-call]

    residual = direction = -gradient(a)
    for _ in range(4 * SAMPLES):
        if residual.norm() < 1e-13:
            break
        curved = gradient(a + direction) - gradient(a)
        step = residual @ residual / (direction @ curved)
        a = a + step * direction
        new = residual - step * curved
        direction = new + (new @ new) / (residual @ residual) * direction
        residual = new
    return float(objective(a))


law = Law(
    claim="The regularized least squares problem over a kernel's space has one solution as a function, and its least value "
    "is half the ridge times the targets' form in the inverse of kernel plus ridge.",
    formula=r"\min_f\;\frac{1}{2}\sum_i(f(x_i)-y_i)^2+\frac{\lambda}{2}\|f\|_H^2=\frac{\lambda}{2}y^{T}(K+\lambda I)^{-1}y",
    assumes={
        "a loss summed over samples": {"loss": "mean"},
        "a penalty on the norm of the kernel's space": {"penalty": "weights"},
    },
    source="saunders1998; rasmussen2006, section 6.2",
    predict=predict,
    measure=measure,
    cases=({"ridge": 0.05}, {"ridge": 0.5}, {"ridge": 5.0}),
    tolerance=1e-7,  # conjugate gradients stop at 1e-13 of the gradient; the value errs by its square over 1e-4
    quantity="least value of the objective",
    along="ridge",
)
