r"""Every entry of a Fastfood image is exactly Gaussian over the draw, of variance $L|v|^2$, however short the map."""

import torch
from scipy.linalg import hadamard

from theodolite.core.law import Law

DRAWS = 100_000


def measure(length: int, moment: str, *, generator: torch.Generator, diagonal: str = "gauss") -> float:
    """Of the second entry of H G Pi H B v, for a v of two equal entries and unit length."""
    v = torch.zeros(length, dtype=torch.float64)
    v[:2] = 0.5**0.5
    signs = 2.0 * torch.randint(0, 2, (DRAWS, length), generator=generator) - 1
    h = torch.from_numpy(hadamard(length)).double()
    first = (v * signs) @ h
    order = torch.rand(DRAWS, length, generator=generator).argsort(1)
    g = torch.randn(DRAWS, length, generator=generator, dtype=torch.float64)
    if diagonal == "signs":
        g = g.sign()
    y = (first.gather(1, order) * g) @ h[1]
    square = y.square()
    return float(square.mean() if moment == "variance" else square.square().mean() / square.mean() ** 2)


law = Law(
    claim="Given the signs and the permutation, an entry of HGΠHBv is a sum of Gaussians whose variances always add up to "
    "L|v|²: each parameter moves as it would with a dense Gaussian matrix.",
    formula=r"(HG\Pi HBv)_i\sim N(0,L|v|^2)",
    assumes={"a Gaussian diagonal": {"diagonal": "signs"}},
    source="le2013",
    predict=lambda length, moment: {"variance": float(length), "kurtosis": 3.0}[moment],
    measure=measure,
    cases=(
        {"length": 4, "moment": "variance"},
        {"length": 4, "moment": "kurtosis"},
        {"length": 8, "moment": "kurtosis"},
    ),
    full=({"length": 64, "moment": "kurtosis"},),
    repeats=4,
    tolerance=0.05,  # the kurtosis of 400,000 draws errs by 0.008, its error known from 4 groups: times 3 and Student's t
    quantity="moment of an entry",
)
