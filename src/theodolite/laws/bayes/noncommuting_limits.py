r"""Wide first, the norm of a random deep linear network tends to 1; deep first, to 0: depth over width decides."""

import math

import torch

from theodolite.core.law import Law
from theodolite.core.reading import Estimate
from theodolite.core.statistics import mean_estimate
from theodolite.measure.experiments import product_log_norms

NETS = 250


def measure(
    weight_layers: int, ratio: float, *, generator: torch.Generator, deeper: int = 1, gated: bool = False
) -> Estimate:
    sizes = (round(weight_layers / ratio),) * (deeper * weight_layers)
    logs = mean_estimate(product_log_norms(sizes, nets=NETS, generator=generator, gated=gated))
    return Estimate(math.exp(logs.value), math.exp(logs.value) * logs.stderr)


law = Law(
    claim="The typical norm of a product of matrices tends to neither 1 nor 0 but to exp of minus half of depth over "
    "width, whichever way both grow: the limits of width and depth do not commute.",
    formula=r"e^{E\ln\|\theta\|}\to e^{-\lambda/2},\quad\lambda=\sum_l1/n_l",
    assumes={"width in proportion to depth": {"deeper": 2}, "no nonlinearity": {"gated": True}},
    source="hanin2023",
    predict=lambda weight_layers, ratio: math.exp(-ratio / 2),
    measure=measure,
    cases=(
        {"weight_layers": 4, "ratio": 0.25},
        {"weight_layers": 8, "ratio": 0.5},
        {"weight_layers": 12, "ratio": 1.0},
    ),
    full=({"weight_layers": 24, "ratio": 0.5}, {"weight_layers": 60, "ratio": 2.0}),
    tolerance=0.12,  # corrections of order ratio / width, 2 % at most here, and 8 x 250 logarithms, 1.6 %
    quantity="typical norm of the weights",
    along="ratio",
)
