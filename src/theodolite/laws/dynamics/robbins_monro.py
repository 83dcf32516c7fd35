r"""With steps that fall to zero but sum to infinity, noisy descent converges in mean square, by an exact recursion."""

import math

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.measure.experiments import noisy_descent
from theodolite.theory.dynamics import decaying_steps, mean_square_path

CHAINS, FIRST, START = 2500, 0.5, 1.0


def predict(exponent: float, steps: int) -> float:
    lrs = decaying_steps(FIRST, exponent, steps=steps)
    return mean_square_path(lrs, curvature=1.0, noise_variance=1.0, mean_square=START**2)[-1]


def measure(exponent: float, steps: int, *, generator: torch.Generator, memory: float = 0.0) -> Tensor:
    lrs = [FIRST / t**exponent for t in range(1, steps + 1)]
    start = torch.full((CHAINS,), START, dtype=torch.float64)
    return noisy_descent(
        lambda x: x, start, lrs=lrs, noise_variance=1.0, noise_correlation=memory, generator=generator
    ).square()


law = Law(
    claim="The mean square error obeys v' = (1 - eta lambda)^2 v + eta^2 sigma^2: it falls to zero whenever the steps do and "
    "their sum diverges, also where the sum of their squares diverges; that sum matters for almost sure convergence.",
    formula=r"v_{t+1}=(1-\eta_t\lambda)^2v_t+\eta_t^2\sigma^2\to0\iff\eta_t\to0,\ \sum\eta_t=\infty",
    assumes={"independent noise": {"memory": 0.08}},
    source="robbins1951",
    predict=predict,
    measure=measure,
    cases=({"exponent": 0.3, "steps": 300}, {"exponent": 0.5, "steps": 300}, {"exponent": 1.0, "steps": 300}),
    full=({"exponent": 0.75, "steps": 3000}, {"exponent": 0.5, "steps": 3000}),
    tolerance=0.06,  # 8 x 2500 squares of a Gaussian know their mean to 1 %, and three of these are 3 %
    quantity="mean square error",
    erratum="Adding up the noise by the triangle inequality, sum of eta_s |xi_s| exp(-lambda sum eta), gives E|xi|/lambda "
    "whatever the steps, which does not vanish; independent noise adds in squares.",
    refuted=lambda **case: 2 / math.pi,  # (E|xi| / lambda)^2
)
