r"""Descent with a constant step and noisy gradients keeps a variance of $\eta\sigma^2/\lambda(2-\eta\lambda)$."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.measure.experiments import noisy_descent
from theodolite.theory.dynamics import descent as dynamics

CHAINS, STEPS = 4000, 120


def measure(
    curvature: float,
    lr: float,
    noise_variance: float,
    *,
    generator: torch.Generator,
    memory: float = 0.0,
    quartic: float = 0.0,
) -> Tensor:
    found = noisy_descent(
        lambda x: curvature * x + quartic * x**3,
        torch.zeros(CHAINS, dtype=torch.float64),
        lrs=[lr] * STEPS,
        noise_variance=noise_variance,
        noise_correlation=memory,
        generator=generator,
    )
    return found.square()


law = Law(
    claim="With a constant step SGD does not settle: along each direction it keeps a variance that grows with the step and "
    "diverges at the edge of stability.",
    formula=r"\mathrm{Var}_\infty=\frac{\eta\sigma^2}{\lambda(2-\eta\lambda)}",
    assumes={"independent noise": {"memory": 0.08}, "a quadratic loss": {"quartic": 0.0004}},
    source="robbins1951",
    predict=lambda curvature, lr, noise_variance: dynamics.noise_floor(curvature, lr=lr, noise_variance=noise_variance),
    measure=measure,
    cases=(
        {"curvature": 1.0, "lr": 0.1, "noise_variance": 1.0},
        {"curvature": 2.0, "lr": 0.5, "noise_variance": 1.0},
        {"curvature": 1.0, "lr": 1.9, "noise_variance": 0.25},
    ),
    full=({"curvature": 1.0, "lr": 0.02, "noise_variance": 1.0},),
    # exact: 8 x 4000 squares of a Gaussian know their mean to 0.8 %, three of these are 2.4 %; 0.9^240 is left of the start
    tolerance=0.05,
    quantity="stationary variance",
)
