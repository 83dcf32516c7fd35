r"""Weight variances within $C_w^*e^{\pm1/L}$ keep a signal within a factor e over L layers, and no others do."""

import math

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.measure.experiments import Ensemble, preactivations
from theodolite.theory.propagation import critical_band

WIDTH, NETS = 24, 500


def predict(hidden_layers: int, end: str) -> float:
    low, high = critical_band(2.0, hidden_layers=hidden_layers)
    return low if end == "low" else high


def measure(hidden_layers: int, end: str, *, generator: torch.Generator, bias_variance: float = 0.0) -> Tensor:
    """The variance at which the same draws of weights make a signal larger, or smaller, by e: by three secants."""
    seed = int(torch.randint(2**31, (), generator=generator))

    def missing(log_variance: float) -> float:
        variance = math.exp(log_variance)
        ensemble = Ensemble(torch.relu, (WIDTH,) * hidden_layers, weight_variance=variance, bias_variance=bias_variance)
        own = torch.Generator().manual_seed(seed)
        layers = preactivations(ensemble, torch.ones(1, 4), nets=NETS, outputs=WIDTH, generator=own)
        grown = math.log(float(layers[-1].square().mean()) / variance)  # the first layer has C_w |x|^2 / n_0
        return grown - (1.0 if end == "high" else -1.0)

    last, here = 0.0, 1.0  # logarithms of variances around the answer
    before, now = missing(last), missing(here)
    for _ in range(2):
        last, here, before = here, here - now * (here - last) / (now - before), now
        now = missing(here)
    return torch.tensor([math.exp(here - now * (here - last) / (now - before))], dtype=torch.float64)


law = Law(
    claim="How near to criticality weights must be drawn is one over the depth: nearer than that a ReLU signal changes by less "
    "than a factor e.",
    formula=r"C_w^*e^{-1/L}<C_w<C_w^*e^{1/L}",
    assumes={"no biases": {"bias_variance": 0.1}},
    source="he2015; schoenholz2017",
    predict=predict,
    measure=measure,
    cases=tuple({"hidden_layers": n, "end": e} for n, e in ((4, "high"), (4, "low"), (8, "high"))),
    # a mean square scatters between networks by sqrt((1 + 5/n)^L - 1), 1.1 and 1.9: 8 x 500 of them know it to 1.7 and 3 %,
    # and the variance to that over L, 0.4 %, which eight repeats put at 0.7 % at most: three errors that may lie three off
    tolerance=0.045,
    quantity="weight variance at which a signal changes by e",
)
