r"""A sum of n weighted inputs has a variance of order one exactly when the weights' variance is of order $1/n$."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.theory import Mlp
from theodolite.theory.propagation import first_covariance

C_W, C_B = 1.5, 0.3


def inputs(n: int) -> Tensor:
    return 1 + 0.5 * torch.cos(torch.arange(n, dtype=torch.float64))


def predict(n: int) -> float:
    x = inputs(n).tolist()
    return first_covariance(Mlp(0, "identity", C_W, C_B), x, x)[0]


def measure(n: int, *, generator: torch.Generator, scaling: bool = True, shared: bool = False) -> Tensor:
    draws = 2000
    weights = torch.randn(draws, 1 if shared else n, generator=generator, dtype=torch.float64)
    bias = torch.randn(draws, generator=generator, dtype=torch.float64)
    z: Tensor = (weights * inputs(n)).sum(1) * (C_W / n if scaling else C_W) ** 0.5 + bias * C_B**0.5
    return z.square()


law = Law(
    claim="A neuron with weights of variance C_w over its fan-in answers with variance C_b + C_w |x|^2 / n, at any width.",
    formula=r"\mathrm{Var}\,z=C_b+\frac{C_w}{n}\sum_i x_i^2",
    assumes={
        "a weight's variance shrinks like 1 over the fan-in": {"scaling": False},
        "independent weights": {"shared": True},
    },
    source="glorot2010; he2015",
    predict=predict,
    measure=measure,
    cases=({"n": 10}, {"n": 100}, {"n": 400}),
    full=({"n": 10_000},),
    tolerance=0.09,  # exact law: eight standard errors sqrt(2 / 16000) of a variance from 8 x 2000 draws
    quantity="variance of a preactivation",
    along="n",
)
