r"""The chance that the tangent kernel exceeds its mean by k standard deviations is at most $1/(1+k^2)$, with exact moments.

A bound, met only by numbers that take two values: the chance itself is 2.7 to 3.5 times smaller.
"""

import math

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import Ensemble, tangent_kernels
from theodolite.theory.kernels import chebyshev_tail, relu_ntk_mean, relu_ntk_second_moment

NETS = 1500
WIDTHS = (16, 16)


def predict(threshold: float) -> Band:
    mean, spread = relu_ntk_mean(len(WIDTHS), 1.0), math.sqrt(relu_ntk_second_moment(WIDTHS) - 1)
    return Band(high=chebyshev_tail((threshold / mean - 1) / spread))


def measure(
    threshold: float, *, generator: torch.Generator, weight_variance: float = 2.0, bias_variance: float = 0.0
) -> Tensor:
    ensemble = Ensemble(torch.relu, WIDTHS, weight_variance=weight_variance, bias_variance=bias_variance)
    kernels = tangent_kernels(ensemble, torch.ones(1, 1), nets=NETS, weight_rate=2.0, generator=generator)
    return (kernels.sum((1, 2))[:, 0, 0] >= threshold).double()


law = Law(
    claim="With its exact mean and variance Chebyshev's one-sided inequality bounds the tail of the tangent kernel, and a "
    "union over samples its trace and largest eigenvalue.",
    formula=r"P\{\Theta\geq(1+k\sqrt{V})\,E\,\Theta\}\leq\frac{1}{1+k^2},\quad V=\frac{E\,\Theta^2}{(E\,\Theta)^2}-1",
    assumes={"weights of variance 2 over fan-in": {"weight_variance": 4.0}, "no biases": {"bias_variance": 2.0}},
    source="hanin2020",
    predict=predict,
    measure=measure,
    cases=({"threshold": 6.5}, {"threshold": 8.0}, {"threshold": 10.0}),  # the mean is 6, the spread 4
    resolution=2.8,
    quantity="chance that the tangent kernel is so large",
    along="threshold",
)
