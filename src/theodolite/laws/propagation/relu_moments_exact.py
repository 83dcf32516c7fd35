r"""In a critical (leaky) ReLU network $E\hat K^2/K^2=(1+c/n)^L$ exactly: depth over width governs fluctuations."""

from functools import partial

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.measure.experiments import Ensemble, conditional_chain
from theodolite.theory.propagation import leaky_relu_second_moment

NETS = 8000


def predict(slope: float, width: int, hidden_layers: int) -> float:
    return leaky_relu_second_moment(slope, width=width, hidden_layers=hidden_layers)


def measure(
    slope: float,
    width: int,
    hidden_layers: int,
    *,
    generator: torch.Generator,
    copies: int = 1,
    bias_variance: float = 0.0,
) -> Tensor:
    leaky = partial(torch.nn.functional.leaky_relu, negative_slope=slope)
    ensemble = Ensemble(
        leaky, (width,) * hidden_layers, weight_variance=2 / (1 + slope**2), bias_variance=bias_variance, copies=copies
    )
    return conditional_chain(ensemble, torch.ones(1, 1), nets=NETS, generator=generator)[:, -1, 0, 0].double().square()


law = Law(
    claim="Behind L critical layers of width n the squared norm is a product of L independent factors: its relative second "
    "moment is exactly (1 + 5/n)^L for ReLU and (1 + 2/n)^L for a linear network.",
    formula=r"E\hat K^2/K^2=\left(1+\frac{1}{n}\left(\frac{6(1+a^4)}{(1+a^2)^2}-1\right)\right)^{L}",
    assumes={"units independent given the layer in front": {"copies": 2}, "no biases": {"bias_variance": 0.058}},
    source="hanin2021; roberts2022, section 5.2",
    predict=predict,
    measure=measure,
    cases=(
        {"slope": 0.0, "width": 32, "hidden_layers": 3},
        {"slope": 0.3, "width": 16, "hidden_layers": 3},
        {"slope": 1.0, "width": 8, "hidden_layers": 3},
    ),
    full=({"slope": 0.0, "width": 64, "hidden_layers": 10},),
    tolerance=0.1,  # exact law: some eight standard errors of the heavy-tailed squares of 8 x 8000 networks
    quantity="relative second moment of the squared norm",
)
