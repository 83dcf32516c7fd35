r"""On a quadratic loss with noise C the covariance solves $H\Sigma+\Sigma H-\gamma H\Sigma H=\gamma C$."""

import numpy as np
import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.theory.dynamics import quadratic_covariance

CHAINS, STEPS = 2000, 70
HESSIAN = np.array([[2.0, 0.6, 0.0], [0.6, 1.0, 0.3], [0.0, 0.3, 0.8]])
NOISE = np.array([[1.0, -0.4, 0.2], [-0.4, 0.8, 0.0], [0.2, 0.0, 0.5]])
PROBE = np.array([1.0, 1.0, -1.0])


def measure(lr: float, *, generator: torch.Generator, memory: float = 0.0, quartic: float = 0.0) -> Tensor:
    """Squares of a component that mixes all eigendirections, at the end of many chains."""
    H, root = torch.from_numpy(HESSIAN), torch.from_numpy(np.linalg.cholesky(NOISE))
    x = torch.zeros(CHAINS, 3, dtype=torch.float64)
    xi = torch.randn(CHAINS, 3, generator=generator, dtype=torch.float64)
    for _ in range(STEPS):
        x = (x - lr * (x @ H + quartic * x**3 + xi @ root.T)).clamp(-1e6, 1e6)
        fresh = torch.randn(CHAINS, 3, generator=generator, dtype=torch.float64)
        xi = memory * xi + (1 - memory**2) ** 0.5 * fresh
    return (x @ torch.from_numpy(PROBE)).square()


law = Law(
    claim="Noise that is not aligned with the curvature leaves a covariance that a Lyapunov equation gives exactly, for every "
    "stable step.",
    formula=r"H\Sigma+\Sigma H-\gamma H\Sigma H=\gamma C",
    assumes={"independent noise": {"memory": 0.08}, "a quadratic loss": {"quartic": 0.00093}},
    source="mandt2017",
    predict=lambda lr: float(PROBE @ quadratic_covariance(HESSIAN, NOISE, lr=lr) @ PROBE),
    measure=measure,
    cases=({"lr": 0.1}, {"lr": 0.7}, {"lr": 0.85}),
    tolerance=0.06,  # 8 x 2000 squares of a Gaussian know their mean to 1.1 %, three of these are 3.4 %; the start leaves 3e-4
    quantity="stationary variance of a component",
    along="lr",
)
