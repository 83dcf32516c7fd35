r"""In a critical tanh network the squared norm dies as one over depth, $1/K^{(l)}=2l-\frac{5}{6}\ln l+c$, not exponentially."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import Ensemble, conditional_chain
from theodolite.theory import Mlp
from theodolite.theory.propagation import variance_biases, variance_trajectory

WIDTH, NETS = 1024, 8


def predict(weight_layers: int) -> Band:
    spec = Mlp(weight_layers - 1, "tanh", 1.0)
    bias = variance_biases(spec, 1.0)[-1] / WIDTH  # -19 K / 1024 at depth 64
    # One network of depth l has relative variance 0.65 l / 1024: 20 % at depth 64, of which 8 x 8 leave 2.5 %.
    return Band.around(variance_trajectory(spec, 1.0)[-1] + bias, rel=0.02 + 0.16 * (weight_layers / 64) ** 0.5)


def measure(
    weight_layers: int, *, generator: torch.Generator, weight_variance: float = 1.0, bias_variance: float = 0.0
) -> Tensor:
    ensemble = Ensemble(
        torch.tanh, (WIDTH,) * (weight_layers - 1), weight_variance=weight_variance, bias_variance=bias_variance
    )
    return conditional_chain(ensemble, torch.ones(1, 1), nets=NETS, generator=generator)[:, -1, 0, 0].double()


law = Law(
    claim="At C_w = 1 and C_b = 0 the squared norm of a tanh network decays as 1/(2 l) with depth l, slowly approached.",
    formula=r"K^{(l+1)}=\langle\tanh^2\rangle_{K^{(l)}}+\frac{\text{bias}^{(l)}}{n},\qquad "
    r"\frac{1}{K^{(l)}}=2l-\frac{5}{6}\ln l+O(1)",
    assumes={"critical weights": {"weight_variance": 0.977}, "no biases": {"bias_variance": 0.00022}},
    source="roberts2022, section 5.3.3",
    predict=predict,
    measure=measure,
    cases=({"weight_layers": 4}, {"weight_layers": 16}, {"weight_layers": 64}),
    full=({"weight_layers": 8}, {"weight_layers": 32}),
    quantity="squared norm per unit",
    along="weight_layers",
)
