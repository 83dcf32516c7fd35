r"""One gate's share in a tangent kernel goes beyond its mean exactly as often as Cantelli's $1/(1+k^2)$ allows."""

import math

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.theory.kernels import chebyshev_tail

UNITS = 40_000


def predict(angle: float) -> float:
    both = 0.5 - angle / (2 * math.pi)  # the chance that a unit is on for two inputs at this angle
    return chebyshev_tail((1 - both) / math.sqrt(both * (1 - both)))  # by so many deviations the gate exceeds its mean


def measure(angle: float, *, generator: torch.Generator, shift: float = 0.0) -> Tensor:
    weights = torch.randn(UNITS, 2, generator=generator, dtype=torch.float64)
    other = math.cos(angle) * weights[:, 0] + math.sin(angle) * weights[:, 1]
    return ((weights[:, 0] > shift) & (other > shift)).double()


law = Law(
    claim="What is either there or not, such as the product of a unit's gates for two inputs, attains the one-sided form of "
    "Chebyshev's inequality: no better bound follows from mean and variance.",
    formula=r"P(X\ge EX+k\sqrt{\mathrm{Var}X})=\frac1{1+k^2},\qquad X\in\{0,1\},\quad k=\sqrt{\frac{1-p}p}",
    assumes={"units without bias": {"shift": 0.035}},
    source="cho2009; hanin2020",
    predict=predict,
    measure=measure,
    cases=({"angle": 0.5}, {"angle": 1.5}, {"angle": 2.5}),
    tolerance=0.04,  # 8 x 40,000 units know a chance of a tenth to 0.5 %: three errors, and three for where it falls
    quantity="chance that both gates are open",
    along="angle",
)
