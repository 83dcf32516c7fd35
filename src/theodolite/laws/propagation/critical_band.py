r"""Weight variances within $C_w^*e^{\pm1/L}$ keep a signal within a factor e over L layers, and no others do."""

import math

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.measure.experiments import Ensemble, preactivations
from theodolite.theory.propagation import critical_band

WIDTH, NETS = 24, 3000


def predict(hidden_layers: int, end: str) -> float:
    low, high = critical_band(2.0, hidden_layers=hidden_layers)
    return low if end == "low" else high


def measure(hidden_layers: int, end: str, *, generator: torch.Generator, bias_variance: float = 0.0) -> Tensor:
    """A ReLU network's mean square is a power of the weight variance: from its growth at 2 follows where it is e, or 1/e."""
    ensemble = Ensemble(
        activation=torch.relu, widths=(WIDTH,) * hidden_layers, weight_variance=2.0, bias_variance=bias_variance
    )
    layers = preactivations(ensemble, torch.ones(1, 4), nets=NETS, outputs=WIDTH, generator=generator)
    growth = float(layers[-1].square().mean()) / 2.0  # the first layer has C_w |x|^2 / n_0
    wanted = 1.0 if end == "high" else -1.0
    return torch.tensor([2.0 * math.exp((wanted - math.log(growth)) / hidden_layers)], dtype=torch.float64)


law = Law(
    claim="How near to criticality weights must be drawn is one over the depth: nearer than that a ReLU signal changes by less "
    "than a factor e.",
    formula=r"C_w^*e^{-1/L}<C_w<C_w^*e^{1/L}",
    assumes={"no biases": {"bias_variance": 0.1}},
    source="he2015; schoenholz2017",
    predict=predict,
    measure=measure,
    cases=tuple({"hidden_layers": n, "end": e} for n, e in ((4, "high"), (4, "low"), (8, "high"))),
    # a mean square scatters between networks by sqrt((1 + 5/n)^L - 1), 1.1 and 1.9: 8 x 3000 of them know it to 0.7 and 1.2 %,
    # and the variance to that over L, 0.2 %, which eight repeats put at 0.3 % at most: three errors that may lie three off
    tolerance=0.02,
    quantity="weight variance at which a signal changes by e",
)
