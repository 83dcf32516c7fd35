r"""At initialization a unit bends in an interval as often as if all gates in front were frozen fair coins."""

from functools import cache

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.measure.experiments import LineEnsemble, line_counts
from theodolite.theory.regions import frozen_gate_breakpoints

NETS = 800


@cache
def predict(widths: tuple[int, ...], bias_variance: float) -> float:
    return frozen_gate_breakpoints(widths, bias_variance=bias_variance, low=-1.0, high=1.0, draws=10_000).value


def measure(
    widths: tuple[int, ...],
    bias_variance: float,
    *,
    generator: torch.Generator,
    weight_variance: float = 2.0,
    mean: float = 0.0,
    biases: float = 1.0,
) -> Tensor:
    one = torch.ones(1, dtype=torch.float64)
    ensemble = LineEnsemble(widths, bias_variance=biases**2 * bias_variance, weight_variance=weight_variance, mean=mean)
    return line_counts(ensemble, -one, one, nets=NETS, generator=generator)[0].double() - 1


law = Law(
    claim="The mean number of breakpoints of a random ReLU network in an interval is the sum over its units of the chance "
    "that the unit's zero lies there when every gate in front is a frozen fair coin: exact at any depth and width.",
    formula=r"E\,\#=\sum_{\text{units}}P\{\text{zero of the unit with Bernoulli}(\tfrac12)\text{ gates}\in I\}",
    assumes={
        "weights of variance 2 over fan-in": {"weight_variance": 1.57},
        "symmetric weights": {"mean": 0.32},
        "biases of the stated scale": {"biases": 0.88},
    },
    source="hanin2019",
    predict=predict,
    measure=measure,
    cases=(
        {"widths": (30,), "bias_variance": 1.0},
        {"widths": (8, 8, 8), "bias_variance": 0.25},
        {"widths": (12, 12), "bias_variance": 0.5},
    ),
    full=({"widths": (16,) * 6, "bias_variance": 0.25},),
    tolerance=0.02,  # exact; the prediction's own 10,000 draws know it to 0.17 %, 6400 networks to 0.3 %
    quantity="breakpoints in [-1, 1]",
)
