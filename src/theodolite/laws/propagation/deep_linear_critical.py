r"""A deep linear network multiplies the squared norm by $C_w$ in every layer, so it is critical at $C_w=1$, $C_b=0$."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.measure.experiments import Ensemble, conditional_chain, elementwise
from theodolite.theory import Mlp
from theodolite.theory.propagation import variance_trajectory

WIDTH, NETS = 64, 600


def predict(weight_variance: float, bias_variance: float, hidden_layers: int) -> float:
    return variance_trajectory(Mlp(hidden_layers, "identity", weight_variance, bias_variance), 1.0)[-1]


def squared(weight_variance: float, bias_variance: float, hidden_layers: int) -> float:
    return variance_trajectory(Mlp(hidden_layers, "identity", weight_variance**2, bias_variance), 1.0)[-1]


def measure(
    weight_variance: float,
    bias_variance: float,
    hidden_layers: int,
    *,
    generator: torch.Generator,
    activation: str = "identity",
) -> Tensor:
    ensemble = Ensemble(
        elementwise(activation), (WIDTH,) * hidden_layers, weight_variance=weight_variance, bias_variance=bias_variance
    )
    return conditional_chain(ensemble, torch.ones(1, 1), nets=NETS, generator=generator)[:, -1, 0, 0].double()


law = Law(
    claim="In a linear network the mean squared norm obeys K' = C_b + C_w K: kept for every input at (0, 1), else growing "
    "or shrinking exponentially.",
    formula=r"K^{(l)}=C_w^{l-1}K^{(1)}+C_b\frac{1-C_w^{l-1}}{1-C_w}",
    assumes={"a linear activation": {"activation": "tanh"}},
    source="roberts2022, chapter 3",
    predict=predict,
    measure=measure,
    cases=(
        {"weight_variance": 1.1, "bias_variance": 0.0, "hidden_layers": 10},
        {"weight_variance": 0.9, "bias_variance": 0.1, "hidden_layers": 10},
        {"weight_variance": 1.0, "bias_variance": 0.0, "hidden_layers": 10},
    ),
    full=({"weight_variance": 1.0, "bias_variance": 0.0, "hidden_layers": 40},),
    tolerance=0.08,  # unbiased at any width; one network has relative variance (1 + 2/64)^10 - 1, 8 x 600 leave 0.9 %
    quantity="mean squared norm",
    erratum="Lecture notes print K' = C_w^2 K. The weights' variance enters once: 1.1 over ten layers gives 2.59, not 6.73.",
    refuted=squared,
)
