r"""With steps that fall to zero but sum to infinity, noisy descent converges in mean square, by an exact recursion."""

import math

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.measure.experiments import noisy_descent
from theodolite.theory.dynamics import decaying_steps, mean_square_path

CHAINS, FIRST, START = 2500, 0.5, 1.0


def predict(power: float, steps: int) -> float:
    lrs = decaying_steps(FIRST, power, steps=steps)
    return mean_square_path(lrs, curvature=1.0, noise=1.0, start=START**2)[-1]


def triangle(power: float, steps: int) -> float:
    return 2 / math.pi  # (E|xi| / lambda)^2


def measure(power: float, steps: int, *, generator: torch.Generator, memory: float = 0.0) -> Tensor:
    lrs = [FIRST / t**power for t in range(1, steps + 1)]
    start = torch.full((CHAINS,), START, dtype=torch.float64)
    return noisy_descent(lambda x: x, start, lrs=lrs, noise=1.0, memory=memory, generator=generator).square()


law = Law(
    claim="The mean square error obeys v' = (1 - eta lambda)^2 v + eta^2 sigma^2: it falls to zero whenever the steps do and "
    "their sum diverges, also where the sum of their squares diverges; that sum matters for almost sure convergence.",
    formula=r"v_{t+1}=(1-\eta_t\lambda)^2v_t+\eta_t^2\sigma^2\to0\iff\eta_t\to0,\ \sum\eta_t=\infty",
    assumes={"independent noise": {"memory": 0.8}},
    source="robbins1951",
    predict=predict,
    measure=measure,
    cases=({"power": 0.3, "steps": 300}, {"power": 0.5, "steps": 300}, {"power": 1.0, "steps": 300}),
    full=({"power": 0.75, "steps": 3000}, {"power": 0.5, "steps": 3000}),
    tolerance=0.06,  # 8 x 2500 squares of a Gaussian know their mean to 1 %, and three of these are 3 %
    quantity="mean square error",
    erratum="Adding up the noise by the triangle inequality, sum of eta_s |xi_s| exp(-lambda sum eta), gives E|xi|/lambda "
    "whatever the steps, which does not vanish; independent noise adds in squares.",
    refuted=triangle,
)
