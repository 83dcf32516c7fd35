r"""The Gram matrix $E\,\sigma(w\cdot x)\sigma(w\cdot x')$ on the sphere has full rank unless parities or powers are missing."""

import numpy as np
import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.theory.kernels import sphere_gram_rank


def points(arrangement: str) -> Tensor:
    """Unit vectors in three dimensions: generic ones, or pairs of opposites."""
    number = {"10 generic": 10, "3 pairs": 3, "5 pairs": 5}[arrangement]
    x = torch.randn(number, 3, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    x = x / x.norm(dim=1, keepdim=True)
    return x if "generic" in arrangement else torch.cat([x, -x])


FUNCTIONS = {"tanh": torch.tanh, "relu": torch.relu, "square": torch.square}


def predict(activation: str, arrangement: str) -> float:
    function = activation if activation != "square" else FUNCTIONS["square"]
    return float(sphere_gram_rank(function, points(arrangement).numpy()))


def measure(activation: str, arrangement: str, *, generator: torch.Generator, stretch: float = 1.0) -> float:
    """The rank of many random features, all of which vanish on the same combinations of samples."""
    x = points(arrangement)
    x[len(x) // 2 :] *= stretch
    features = FUNCTIONS[activation](x @ torch.randn(3, 3000, generator=generator, dtype=torch.float64))
    values = np.linalg.svd(features.numpy(), compute_uv=False)
    return float((values > 1e-10 * values[0]).sum())


law = Law(
    claim="Random features of unit inputs span as many dimensions as the powers of the inputs whose Hermite coefficients do "
    "not vanish: odd activations cannot tell x from -x, ReLU only on a line, and polynomials have finite rank.",
    formula=r"E\,\sigma(w\cdot x)\sigma(w\cdot x')=\sum_j\sigma_j^2(x\cdot x')^j",
    assumes={"inputs of unit norm": {"stretch": 1.5}},
    source="schoenberg1942; du2019",
    predict=predict,
    measure=measure,
    cases=(
        {"activation": "tanh", "arrangement": "10 generic"},
        {"activation": "tanh", "arrangement": "3 pairs"},
        {"activation": "relu", "arrangement": "3 pairs"},
        {"activation": "relu", "arrangement": "5 pairs"},
        {"activation": "square", "arrangement": "10 generic"},
    ),
    repeats=2,
    tolerance=0.01,  # ranks are whole numbers
    quantity="rank of the Gram matrix",
    erratum="Lecture notes: any non-polynomial activation has all its coefficients and distinct inputs suffice. Odd ones have "
    "half of them, ReLU one odd one, and inputs must not be opposite (beyond the dimension many pairs for ReLU).",
    refuted=lambda activation, arrangement: float(len(points(arrangement))),
)
