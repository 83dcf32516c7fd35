r"""The squared norm in a tanh network settles at a positive value as soon as $C_w>1$ or $C_b>0$."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import Ensemble, conditional_chain
from theodolite.theory import Mlp
from theodolite.theory.propagation import phase, variance_biases

HIDDEN, WIDTH, NETS = 30, 256, 48


def predict(weight_variance: float, bias_variance: float) -> Band:
    fixed = phase("tanh", weight_variance=weight_variance, bias_variance=bias_variance).fixed_point or 0.0
    spec = Mlp(HIDDEN, "tanh", weight_variance, bias_variance)
    bias = variance_biases(spec, fixed)[-1] / WIDTH  # of the order of 0.5 %
    return Band.around(fixed + bias, rel=0.05)  # eight standard errors of 8 x 48 networks


def measure(
    weight_variance: float, bias_variance: float, *, generator: torch.Generator, variance: float = 1.0
) -> Tensor:
    ensemble = Ensemble(torch.tanh, (WIDTH,) * HIDDEN, weight_variance=weight_variance, bias_variance=bias_variance)
    return conditional_chain(ensemble, torch.full((1, 1), variance), nets=NETS, generator=generator)[
        :, -1, 0, 0
    ].double()


law = Law(
    claim="Deep in a wide tanh network the squared norm per unit is the stable solution of K = C_b + C_w <tanh^2>_K, which "
    "is positive unless C_b = 0 and C_w <= 1.",
    formula=r"K^*=C_b+C_w\langle\tanh^2\rangle_{K^*}>0",
    assumes={"an input that is not zero": {"variance": 0.0}, "wide layers": None},
    source="poole2016, section 3.1",
    predict=predict,
    measure=measure,
    cases=(
        {"weight_variance": 1.5, "bias_variance": 0.0},
        {"weight_variance": 2.5, "bias_variance": 0.0},
        {"weight_variance": 1.5, "bias_variance": 0.05},
    ),
    quantity="squared norm per unit in layer 31",
    erratum="Lecture notes say that K* = 0 is the only fixed point of tanh. That holds for C_b = 0 and C_w <= 1 only.",
    refuted=lambda **case: Band.around(0.0, abs=0.01),
)
