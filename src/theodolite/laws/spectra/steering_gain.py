r"""A random direction passes a layer with gain $\|W\|_F/\sqrt d$, whatever the decay of its singular values."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.theory.spectra import random_direction_gain, steering_gain_bounds


def singular_values(exponent: float, outputs: int) -> list[float]:
    return [k ** (-exponent / 2) for k in range(1, outputs + 1)]


def predict(exponent: float, inputs: int, outputs: int) -> float:
    values = singular_values(exponent, outputs)
    low, high = steering_gain_bounds(values, inputs)
    gain = random_direction_gain(values, inputs)
    assert low <= gain <= high
    return gain**2


def measure(exponent: float, inputs: int, outputs: int, *, generator: torch.Generator, aligned: float = 0.0) -> Tensor:
    values = torch.tensor(singular_values(exponent, outputs), dtype=torch.float64)
    left = torch.linalg.qr(torch.randn(inputs, outputs, generator=generator, dtype=torch.float64))[0]
    right = torch.linalg.qr(torch.randn(outputs, outputs, generator=generator, dtype=torch.float64))[0]
    weight = (left * values) @ right.T  # (inputs, outputs)
    directions = torch.randn(4000, inputs, generator=generator, dtype=torch.float64)
    directions += aligned * inputs**0.5 * left[:, 0]
    return (directions @ weight).square().sum(1) / directions.square().sum(1)


law = Law(
    claim="The mean square gain of a random direction through a layer is its squared norm over its inputs.",
    formula=r"E\,\frac{|W^\top v|^2}{|v|^2}=\frac{\|W\|_F^2}{d},\qquad\sigma_d\le\frac{|W^\top v|}{|v|}\le\sigma_1",
    assumes={"a direction chosen without regard to the weights": {"aligned": 0.08}},
    source="horn2013",
    predict=predict,
    measure=measure,
    cases=tuple({"exponent": b, "inputs": 50, "outputs": 30} for b in (0.0, 0.5, 1.0, 2.0)),
    tolerance=0.05,  # exact in mean; 3 standard errors of 24,000 draws whose spread is at most their mean are 2 %
    repeats=6,
    quantity="mean square gain",
    along="exponent",
)
