r"""GELU and SiLU are critical at a positive fixed point, with biases: (1.983, 0.173) and (1.988, 0.555)."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.measure.experiments import Ensemble, conditional_chain, elementwise
from theodolite.theory import Mlp
from theodolite.theory.propagation import criticality, variance_trajectory

HIDDEN, WIDTH, NETS = 20, 64, 700
PUBLISHED = {"gelu": (3.5615528, 1.9830583, 0.1729224), "silu": (14.3201736, 1.9880047, 0.5551432)}


def predict(activation: str, hidden_layers: int) -> float:
    point = criticality(activation)
    assert point.weight_variance is not None and point.bias_variance is not None and point.fixed_point is not None
    spec = Mlp(hidden_layers, activation, point.weight_variance, point.bias_variance)
    return variance_trajectory(spec, point.fixed_point)[-1]


def measure(
    activation: str,
    hidden_layers: int,
    *,
    generator: torch.Generator,
    bias_variance: float | None = None,
    weight_variance: float | None = None,
) -> Tensor:
    start, weight, bias = PUBLISHED[activation]
    ensemble = Ensemble(
        elementwise(activation),
        (WIDTH,) * hidden_layers,
        weight_variance=weight if weight_variance is None else weight_variance,
        bias_variance=bias if bias_variance is None else bias_variance,
    )
    return conditional_chain(ensemble, torch.full((1, 1), start), nets=NETS, generator=generator)[:, -1, 0, 0].double()


law = Law(
    claim="At their critical variances of weights and biases GELU and SiLU networks keep the squared norm of inputs that "
    "start at the fixed point; with the ReLU recipe, without biases, they do not.",
    formula=r"\langle\sigma\sigma''\rangle_{K^*}=0:\quad K^*_{\mathrm{GELU}}=\frac{3+\sqrt{17}}{2}",
    assumes={"biases": {"bias_variance": 0.0}, "the critical weight variance": {"weight_variance": 1.0}},
    source="roberts2022, section 5.3.4; hendrycks2016",
    predict=predict,
    measure=measure,
    cases=tuple({"activation": a, "hidden_layers": n} for a, n in (("gelu", 8), ("gelu", 20), ("silu", 20))),
    # one network of 20 layers of width 64 has a relative variance of exp(98 / 64) - 1 = 3.6; 8 x 700 leave 2.5 %
    tolerance=0.2,
    quantity="squared norm in the last layer",
)
