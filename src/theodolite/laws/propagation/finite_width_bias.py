r"""Finite width biases the mean squared norm by $\delta/n$, because the variance map is curved and its input fluctuates."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import Ensemble, conditional_chain, elementwise
from theodolite.theory import Mlp
from theodolite.theory.propagation import variance_biases, variance_trajectory

START = 1.5
HIDDEN = 3
WIDTH, NETS = 8, 40_000


def predict(activation: str, weight_variance: float, bias_variance: float) -> Band:
    spec = Mlp(HIDDEN, activation, weight_variance, bias_variance)
    limit, delta = variance_trajectory(spec, START)[-1], variance_biases(spec, START)[-1]
    # The next order is relative 1/n with a constant below 1; as much again is left to chance (some six errors).
    return Band.around(limit + delta / WIDTH, abs=2 / WIDTH * abs(delta) / WIDTH)


def measure(
    activation: str, weight_variance: float, bias_variance: float, *, generator: torch.Generator, copies: int = 1
) -> Tensor:
    ensemble = Ensemble(
        elementwise(activation),
        (WIDTH,) * HIDDEN,
        weight_variance=weight_variance,
        bias_variance=bias_variance,
        copies=copies,
    )
    return conditional_chain(ensemble, torch.full((1, 1), START), nets=NETS, generator=generator)[:, -1, 0, 0].double()


law = Law(
    claim="The mean squared norm of a layer of width n differs from the infinite-width value by delta over n.",
    formula=r"n(E\hat K^{(l+1)}-K^{(l+1)})\to\delta^{(l+1)}=\chi_\parallel\delta^{(l)}+\frac{1}{2}F''(K^{(l)})V^{(l)}",
    assumes={"units independent given the layer in front": {"copies": 2}},
    source="roberts2022, section 4.5",
    predict=predict,
    measure=measure,
    cases=(
        {"activation": "tanh", "weight_variance": 1.5, "bias_variance": 0.05},
        {"activation": "erf", "weight_variance": 1.2, "bias_variance": 0.1},
        {"activation": "tanh", "weight_variance": 1.0, "bias_variance": 0.0},
    ),
    quantity="mean squared norm at width 8",
)
