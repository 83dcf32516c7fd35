r"""Along a curvature $\lambda$ the error shrinks by $|1-\eta\lambda|$ a step: sharper is faster only up to $\eta\lambda=1$."""

import math

import torch
from torch import Tensor

from theodolite.core.law import Law

SAMPLES, INPUTS, RIDGE, STEPS = 60, 5, 0.02, 8


def measure(
    rank: int, lr_times_curvature: float, *, generator: torch.Generator, away: float = 1e-4, momentum: float = 0.0
) -> float:
    """The factor a step of the error along one eigenvector of the Hessian, for logistic regression near its minimum."""
    x = torch.randn(SAMPLES, INPUTS, generator=generator, dtype=torch.float64) * torch.linspace(0.6, 2.0, INPUTS)
    y = (torch.rand(SAMPLES, generator=generator, dtype=torch.float64) < torch.sigmoid(x.sum(1))).double()
    best = torch.zeros(INPUTS, dtype=torch.float64)
    for _ in range(30):  # Newton's way to the minimum
        best = best - torch.linalg.solve(_hessian(best, x), _gradient(best, x, y))
    values, vectors = torch.linalg.eigh(_hessian(best, x))
    lr = lr_times_curvature / float(values[-rank])
    w, velocity = best + away * vectors.sum(1), torch.zeros(INPUTS, dtype=torch.float64)
    along = [float((w - best) @ vectors[:, -rank])]
    for _ in range(STEPS):
        velocity = momentum * velocity + _gradient(w, x, y)
        w = w - lr * velocity
        along.append(float((w - best) @ vectors[:, -rank]))
    return float(abs(along[-1] / along[1]) ** (1 / (STEPS - 1)))


def _gradient(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return x.T @ (torch.sigmoid(x @ w) - y) / len(x) + RIDGE * w


def _hessian(w: Tensor, x: Tensor) -> Tensor:
    p = torch.sigmoid(x @ w)
    return (x.T * (p * (1 - p))) @ x / len(x) + RIDGE * torch.eye(len(w), dtype=torch.float64)


law = Law(
    claim="A large eigenvalue speeds up its own direction alone, and only while the step times it is below 1: beyond, the step "
    "overshoots, and at twice the best step nothing is learned there.",
    formula=r"\langle v_i,\theta_{t+1}-\theta_*\rangle=(1-\eta\lambda_i)\langle v_i,\theta_t-\theta_*\rangle",
    assumes={"close to a minimum": {"away": 1.0}, "no momentum": {"momentum": 0.0035}},
    source="nesterov2004, section 2.1",
    predict=lambda rank, lr_times_curvature: abs(1 - lr_times_curvature),
    measure=measure,
    cases=(
        {"rank": 1, "lr_times_curvature": 0.3},
        {"rank": 1, "lr_times_curvature": 0.7},
        {"rank": 1, "lr_times_curvature": 1.4},
        {"rank": 1, "lr_times_curvature": 1.9},
        {"rank": 3, "lr_times_curvature": 0.3},
    ),
    full=({"rank": 5, "lr_times_curvature": 0.05},),
    tolerance=0.01,  # the third derivative turns 1e-4 of the way into as much of the factor, and other directions into this one
    quantity="factor of the error along the direction a step",
    along="lr_times_curvature",
    erratum="That large curvature means fast training holds for gradient flow, e^(-eta lambda); a step that is not small turns "
    "it round beyond eta lambda = 1.",
    refuted=lambda rank, lr_times_curvature: math.exp(-lr_times_curvature),
)
