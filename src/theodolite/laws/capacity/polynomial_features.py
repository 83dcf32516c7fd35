"""Smoothed random units learn polynomials far better than as many random ReLUs."""

import itertools
import math

import torch
from torch import Tensor

from theodolite.construct.capacity import CorrectiveFeatures, least_squares
from theodolite.core.law import Law
from theodolite.core.reading import Band

UNITS = 200


def polynomial(x: Tensor, degree: int, generator: torch.Generator) -> Tensor:
    total = torch.zeros(len(x), dtype=x.dtype)
    for power in range(degree + 1):
        for term in itertools.combinations_with_replacement(range(x.shape[1]), power):
            total += torch.randn((), generator=generator, dtype=x.dtype) * x[:, list(term)].prod(1)
    return total


def ridge_weights(phi: Tensor, y: Tensor) -> Tensor:
    """Least squares with a ridge of 1e-8, so that a unit seen by one point alone does not run away."""
    extended = torch.cat([phi, 1e-4 * torch.eye(phi.shape[1], dtype=phi.dtype)])
    return least_squares(extended, torch.cat([y, torch.zeros(phi.shape[1], dtype=y.dtype)])[:, None])[:, 0]


def measure(inputs: int, degree: int, *, generator: torch.Generator, target: str = "polynomial") -> float:
    x = torch.rand(5 * UNITS, inputs, generator=generator, dtype=torch.float64) * 2 - 1
    y = polynomial(x, degree, generator) if target == "polynomial" else x.sum(1).abs() + (x[:, 0] - x[:, 1]).abs()
    seed = int(torch.randint(2**31, (), generator=generator))
    train = 4 * UNITS
    error = []
    for order in (0, 1):
        features = CorrectiveFeatures(UNITS, order=order, subset=degree, random_state=seed).fit(x.numpy())
        phi = torch.as_tensor(features.transform(x.numpy()))
        rest = y[train:] - phi[train:] @ ridge_weights(phi[:train], y[:train])
        error.append(float(rest.square().mean()))
    return math.log10(error[0] / error[1])


law = Law(
    claim="With many more units than the polynomial has monomials the smoothed unit beats the ReLU at least tenfold in squared "
    "error, at the same number of units.",
    formula=r"\log_{10}\frac{\mathrm{mse}(\mathrm{ReLU})}{\mathrm{mse}(\mathrm{SReLU}_1)}\ge1",
    assumes={"a smooth target": {"target": "kinks"}, "units many times the monomials": None},
    source="bresler2020, Theorem 4",
    predict=lambda **case: Band(low=1.0),
    measure=measure,
    cases=({"inputs": 3, "degree": 2}, {"inputs": 4, "degree": 2}, {"inputs": 3, "degree": 3}),
    repeats=6,
    observed="the theorem bounds either error and not their ratio; tenfold is what was seen",
    quantity="powers of ten gained",
)
