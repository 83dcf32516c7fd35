r"""With weights of variance $2/(1+a^2)$ over fan-in a leaky ReLU network of slope a keeps every norm, on average."""

from functools import partial

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.measure.experiments import Ensemble, preactivations
from theodolite.theory import Activation, Mlp
from theodolite.theory.propagation import criticality, variance_trajectory

WIDTH, HIDDEN, NETS = 64, 6, 100


def predict(slope: float, variance: float) -> float:
    sigma = Activation("leaky_relu", negative_slope=slope)
    return variance_trajectory(Mlp(HIDDEN, sigma, criticality(sigma).weight_variance or 0.0), variance)[-1]


def measure(
    slope: float,
    variance: float,
    *,
    generator: torch.Generator,
    weight_variance: float | None = None,
    bias_variance: float = 0.0,
) -> Tensor:
    leaky = partial(torch.nn.functional.leaky_relu, negative_slope=slope)
    own = 2 / (1 + slope**2)
    ensemble = Ensemble(leaky, (WIDTH,) * HIDDEN, weight_variance=weight_variance or own, bias_variance=bias_variance)
    inputs = torch.full((1, 4), (variance / own) ** 0.5)
    z = preactivations(ensemble, inputs, nets=NETS, outputs=WIDTH, generator=generator)[-1]
    return z.square().mean((1, 2)).double()


law = Law(
    claim="A (leaky) ReLU network without biases and with weights of variance 2 / (1 + a^2) over the fan-in keeps the mean "
    "squared norm of every input at every depth and width.",
    formula=r"C_b=0,\quad C_w=\frac{2}{1+a^2}\;\Rightarrow\;E|z^{(l)}|^2/n=E|z^{(1)}|^2/n",
    assumes={"weights of variance 2 / (1 + a^2)": {"weight_variance": 1.0}, "no biases": {"bias_variance": 0.1}},
    source="he2015",
    predict=predict,
    measure=measure,
    cases=({"slope": 0.0, "variance": 1.0}, {"slope": 0.0, "variance": 25.0}, {"slope": 0.5, "variance": 1.0}),
    full=({"slope": 0.1, "variance": 100.0},),
    tolerance=0.2,  # unbiased at any width; one network has relative variance (1 + 5/64)^6 - 1, 8 x 100 leave 2.7 %
    quantity="mean squared norm",
)
