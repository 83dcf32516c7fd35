r"""A Gaussian unit has as many zeros along a path as the features' direction has length, over $\pi$ (Kac and Rice)."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.measure.regions import network_line_counts
from theodolite.theory.regions import curve_zeros

NETS = 5000


def knots(bends: int) -> list[float]:
    """Where the hidden units bend, inside (0, 1)."""
    return [(k + 1) / (bends + 1) for k in range(bends)]


def predict(bends: int) -> float:
    places = [0.0, *knots(bends), 1.0]
    return curve_zeros([[1.0, *(4 * max(t - k, 0.0) * (-1) ** i for i, k in enumerate(knots(bends)))] for t in places])


def measure(bends: int, *, generator: torch.Generator, mean: float = 0.0) -> Tensor:
    sign = torch.tensor([(-1.0) ** k for k in range(bends)], dtype=torch.float64)
    first = torch.full((NETS, bends, 1), 4.0, dtype=torch.float64)
    bias = -4 * torch.tensor(knots(bends), dtype=torch.float64).expand(NETS, bends)
    second = (mean + torch.randn(NETS, 1, bends, generator=generator, dtype=torch.float64)) * sign
    shift = mean + torch.randn(NETS, 1, generator=generator, dtype=torch.float64)
    last = torch.ones(NETS, 1, 1, dtype=torch.float64)
    zero, one = torch.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    regions, _ = network_line_counts([first, second, last], [bias, shift, None], start=zero, end=one)
    return regions.double() - 1 - bends


law = Law(
    claim="The zeros of g.h(t), g standard Gaussian, number on average the length of h/|h| on the sphere over pi: a great "
    "circle orthogonal to a random g is met by a curve in proportion to its length.",
    formula=r"E\,\#\{t:\ g\cdot h(t)=0\}=\frac1\pi\int\Big|\frac{d}{dt}\frac{h(t)}{|h(t)|}\Big|dt",
    assumes={"centered Gaussian weights": {"mean": 0.64}},
    source="edelman1995",
    predict=predict,
    measure=measure,
    cases=({"bends": 1}, {"bends": 3}, {"bends": 8}),
    full=({"bends": 30},),
    tolerance=0.06,  # exact; 40,000 paths of 0.35 to 0.65 zeros each know the mean to 0.7 %
    along="bends",
    quantity="zeros along the path",
)
