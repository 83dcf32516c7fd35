r"""A Gram matrix of n bounded features strays by $\sqrt{m\|G\|\log m/n}$ in norm: by order m when inputs are alike.

A bound: it is 2.9 times the deviation itself for 4 generic inputs, 3.8 times for 32, and 4.5 and 7 times for inputs that are
alike.
"""

import math

import numpy as np
import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.theory.kernels import sphere_gram

INPUTS, WIDTH, NETS = 20, 400, 24


def points(arrangement: str, samples: int) -> Tensor:
    x = torch.randn(samples, INPUTS, generator=torch.Generator().manual_seed(11), dtype=torch.float64)
    if arrangement == "alike":
        x = 0.05 * x
        x[:, 0] += 1.0
    return x / x.norm(dim=1, keepdim=True)


def predict(arrangement: str, samples: int, of: str) -> Band:
    """Matrix Bernstein for the mean: terms of norm at most m/n, variance at most m |G| / n; and the mean itself."""
    norm = float(np.linalg.norm(sphere_gram("tanh", points(arrangement, samples).numpy()), 2))
    if of == "mean":
        return Band.around(norm, rel=0.03)  # 80,000 features know it to half a hundredth
    logarithm = math.log(2 * samples)
    return Band(high=math.sqrt(2 * samples * norm * logarithm / WIDTH) + samples * logarithm / (3 * WIDTH))


def measure(arrangement: str, samples: int, of: str, *, generator: torch.Generator, copies: int = 1) -> Tensor:
    """The norm of the difference to a Gram matrix of a hundred times as many features, or of that matrix."""
    x = points(arrangement, samples)
    weights = torch.randn(NETS, INPUTS, WIDTH // copies, generator=generator, dtype=torch.float64)
    many = torch.randn(INPUTS, 100 * WIDTH, generator=generator, dtype=torch.float64)
    features, reference = torch.tanh(x @ weights), torch.tanh(x @ many)
    grams, mean = features @ features.mT / features.shape[-1], reference @ reference.T / reference.shape[-1]
    return torch.linalg.matrix_norm(mean if of == "mean" else grams - mean, ord=2)


law = Law(
    claim="How far a random-feature Gram matrix is from its mean is set by the number of samples times the mean's norm: for "
    "inputs that are alike the norm itself grows as m, and so does the deviation.",
    formula=r"E\|\hat G-G\|\leq\sqrt{\frac{2m\|G\|\log2m}{n}}+\frac{m\log2m}{3n}",
    assumes={"independent features": {"copies": 20}},
    source="tropp2015, Theorem 1.6.1",
    predict=predict,
    measure=measure,
    cases=(
        *({"arrangement": a, "samples": m, "of": "deviation"} for a in ("generic", "alike") for m in (4, 32)),
        *({"arrangement": a, "samples": 32, "of": "mean"} for a in ("generic", "alike")),
    ),
    repeats=2,
    resolution=2.8,
    quantity="norm of the Gram matrix or of its deviation",
    erratum="Lecture notes give sqrt(m/n) for all inputs, from a variance of order m/n that needs a mean of bounded norm.",
    refuted=lambda arrangement, samples, of: Band(high=math.sqrt(samples / WIDTH) if of == "deviation" else math.inf),
)
