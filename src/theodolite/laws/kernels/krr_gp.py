r"""Kernel ridge regression is the posterior mean of a Gaussian process whose noise variance is the ridge."""

import numpy as np
import torch
from torch import Tensor

from theodolite.core.law import Law

SAMPLES, DRAWS, NOISE = 5, 4000, 0.3


def gram() -> Tensor:
    x = torch.tensor([-1.0, -0.6, 0.0, 0.5, 1.2, 0.8], dtype=torch.float64)  # the last one is new
    return torch.exp(-0.5 * (x[:, None] - x) ** 2 / 0.6**2)


def predict(what: str) -> float:
    K = gram().numpy()
    k, inverse = K[-1, :-1], np.linalg.inv(K[:-1, :-1] + NOISE * np.eye(SAMPLES))
    variance = float(K[-1, -1] - k @ inverse @ k)
    # The best predictor's error is uncorrelated with the prediction, whose variance is then that of what is explained.
    return variance if what == "mean squared error" else 1.0 - variance


def measure(what: str, *, generator: torch.Generator, ridge: float = NOISE) -> Tensor:
    """Draws of the process, regressed by the kernel on noisy values, against the truth at the new point."""
    K = gram()
    root = torch.linalg.cholesky(K + 1e-10 * torch.eye(SAMPLES + 1, dtype=torch.float64))
    f = torch.randn(DRAWS, SAMPLES + 1, generator=generator, dtype=torch.float64) @ root.T
    y = f[:, :-1] + NOISE**0.5 * torch.randn(DRAWS, SAMPLES, generator=generator, dtype=torch.float64)
    weights = torch.linalg.solve(K[:-1, :-1] + ridge * torch.eye(SAMPLES, dtype=torch.float64), y.T)
    answer = (K[-1, :-1] @ weights).squeeze()
    if what == "mean squared error":
        return (answer - f[:, -1]).square()
    return answer.square() if what == "variance of the prediction" else answer * f[:, -1]


law = Law(
    claim="Ridge regression with a kernel is Bayesian regression with that covariance and noise of variance equal to the "
    "ridge: its mean squared error over draws of the process is the posterior variance.",
    formula=r"E(f(x)-\hat f(x))^2=K_{xx}-K_{xX}(K+\lambda I)^{-1}K_{Xx}",
    assumes={"a ridge equal to the noise variance": {"ridge": 0.15}},
    source="rasmussen2006, section 2.2; williams1997",
    predict=predict,
    measure=measure,
    cases=tuple({"what": w} for w in ("mean squared error", "variance of the prediction", "covariance with the truth")),
    tolerance=0.05,  # 8 x 4000 squares of Gaussians: 0.8 %, six times that
    quantity="second moment",
)
