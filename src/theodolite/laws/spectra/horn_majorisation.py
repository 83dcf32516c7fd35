r"""Products of the k largest singular values of XW never exceed those of X times those of W, for any shapes."""

import math

import torch

from theodolite.core.law import Law
from theodolite.core.reading import Band


def predict(shape: tuple[int, int, int]) -> Band:
    return Band(low=-1e-9)  # rounding of sums of logarithms


def measure(shape: tuple[int, int, int], *, generator: torch.Generator, cumulated: bool = True) -> float:
    n, p, q = shape
    least = []
    for _ in range(6):
        left = torch.randn(n, p, generator=generator, dtype=torch.float64)
        right = torch.randn(p, q, generator=generator, dtype=torch.float64)
        product, a, b = (torch.linalg.svdvals(matrix).log() for matrix in (left @ right, left, right))
        k = min(len(product), len(a), len(b))
        slack = a[:k] + b[:k] - product[:k]
        least.append(float((slack.cumsum(0) if cumulated else slack).min()))
    return min(least)


law = Law(
    claim="Singular values of a product are log-majorised by the products of the singular values.",
    formula=r"\prod_{i\le k}\sigma_i(XW)\le\prod_{i\le k}\sigma_i(X)\,\sigma_i(W)\quad\text{for every }k",
    assumes={"products over the largest k, not one by one": {"cumulated": False}},
    source="horn1950",
    predict=predict,
    measure=measure,
    cases=tuple({"shape": s} for s in ((30, 20, 25), (12, 40, 10), (40, 15, 40))),
    resolution=math.inf,  # a sign, up to rounding: there is nothing to scale
    quantity="least slack of the logarithms",
)
