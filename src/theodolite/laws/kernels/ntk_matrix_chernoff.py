r"""The first layer's tangent kernel is a sum of bounded independent terms, so matrix Chernoff bounds its largest eigenvalue.

A bound, and never tight: for a single unit and a single sample the chance is a half and the bound $\sqrt{e/4}=0.82$, 1.65 times
as much; for two units 2.8, for six 5.5 times.
"""

import math

import torch

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.theory.kernels import matrix_chernoff_tail

INPUTS, NETS = 4, 400


def points(samples: int) -> torch.Tensor:
    x = torch.randn(samples, INPUTS, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    return x / x.norm(dim=1, keepdim=True)


def predict(threshold: float, width: int, samples: int) -> Band:
    x = points(samples)
    dots = (x @ x.T).clamp(-1, 1)
    both = 0.5 - dots.acos() / (2 * math.pi)  # the chance that a unit is on for two inputs
    mean = float(torch.linalg.eigvalsh(2 / INPUTS * dots * both)[-1])
    bound = 2 * float(torch.linalg.eigvalsh(x @ x.T)[-1]) / (INPUTS * width)
    return Band(high=matrix_chernoff_tail(threshold / mean - 1, mean=mean, bound=bound, side=samples))


def measure(threshold: float, width: int, samples: int, *, generator: torch.Generator, copies: int = 1) -> torch.Tensor:
    x, copies = points(samples), min(copies, width)
    weights = torch.randn(NETS, INPUTS, width // copies, generator=generator, dtype=torch.float64)
    gates = (x @ weights > 0).double().repeat(1, 1, copies)  # (nets, samples, width)
    kernels = 2 / (INPUTS * width) * (x @ x.T) * (gates @ gates.mT)
    return (torch.linalg.eigvalsh(kernels)[:, -1] >= threshold).double()


law = Law(
    claim="With output weights of size one each hidden unit adds a positive semidefinite matrix of bounded norm to the first "
    "layer's kernel; only such a sum, with a bound that holds surely, may be put into matrix Chernoff.",
    formula=r"P\{\lambda_{\max}\geq(1+\epsilon)\mu\}\leq m\left[\frac{e^{\epsilon}}{(1+\epsilon)^{1+\epsilon}}\right]^{\mu/R},"
    r"\quad R=\frac{2\lambda_{\max}(XX^{T})}{n_0n}",
    assumes={"independent units": {"copies": 16}},
    source="tropp2015, Theorem 5.1.1",
    predict=predict,
    measure=measure,
    cases=(
        {"threshold": 0.49, "width": 1, "samples": 1},  # the unit is on
        {"threshold": 0.49, "width": 2, "samples": 1},  # both units on: the bound is 0.68, the chance a quarter
        {"threshold": 0.41, "width": 6, "samples": 1},
        {"threshold": 0.52, "width": 256, "samples": 6},  # the mean kernel has 0.396
    ),
    resolution=1.8,
    quantity="chance that the largest eigenvalue is so large",
)
