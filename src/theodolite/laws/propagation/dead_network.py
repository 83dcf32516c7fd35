r"""A ReLU network without biases answers zero to a given input with probability $1-(1-2^{-n})^L$."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.measure.experiments import Ensemble, preactivations
from theodolite.theory.propagation import dead_network_probability


def measure(
    width: int, hidden_layers: int, *, generator: torch.Generator, bias_variance: float = 0.0, mean: float = 0.0
) -> Tensor:
    ensemble = Ensemble(
        torch.relu, (width,) * hidden_layers, weight_variance=2.0, bias_variance=bias_variance, mean=mean
    )
    out = preactivations(ensemble, torch.ones(1, 3), nets=6000, generator=generator)[-1]
    return (out[:, 0, 0] == 0).double()


law = Law(
    claim="Each layer of n units is wholly switched off with probability 2^-n, and one such layer silences the network.",
    formula=r"P(\mathrm{dead})=1-(1-2^{-n})^{L}",
    assumes={"no biases": {"bias_variance": 0.5}, "weights symmetric about zero": {"mean": 0.056}},
    source="lu2020",
    predict=lambda width, hidden_layers: dead_network_probability(width=width, hidden_layers=hidden_layers),
    measure=measure,
    cases=({"width": 3, "hidden_layers": 4}, {"width": 4, "hidden_layers": 5}, {"width": 4, "hidden_layers": 16}),
    full=({"width": 6, "hidden_layers": 30},),
    tolerance=0.07,  # exact law: 8 x 6000 networks know a share of 0.28 to 0.7 %, with some nine standard errors
    quantity="share of dead networks",
)
