r"""A random ReLU network has at most $N/(\sqrt\pi\sigma_b)$ breakpoints per unit of length on average, whatever its depth."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import LineEnsemble, line_counts
from theodolite.theory.regions import interval_bound

NETS, BIAS = 400, 0.25


def measure(widths: tuple[int, ...], half: float, *, generator: torch.Generator, bias_variance: float = BIAS) -> Tensor:
    end = torch.full((1,), half, dtype=torch.float64)
    regions, _ = line_counts(
        LineEnsemble(widths, bias_variance=bias_variance), -end, end, nets=NETS, generator=generator
    )
    return regions.double() - 1


law = Law(
    claim="On average the breakpoints per unit of length are at most the number of units times the largest density of a "
    "bias times the mean slope: linear in the number of units, not exponential in depth.",
    formula=r"E\,\#\{\text{breakpoints in }I\}\le\frac{N\,|I|}{\sqrt{\pi}\,\sigma_b}",
    assumes={"biases as spread out as stated": {"bias_variance": 0.0004}},
    source="hanin2019",
    predict=lambda widths, half: Band(high=interval_bound(sum(widths), bias_variance=BIAS, length=2 * half)),
    measure=measure,
    cases=({"widths": (20,), "half": 0.05}, {"widths": (8, 8, 8), "half": 0.05}, {"widths": (8, 8, 8), "half": 1.0}),
    full=({"widths": (16,) * 8, "half": 0.1},),
    quantity="breakpoints in an interval",
)
