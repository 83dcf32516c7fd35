r"""At a zero fixed point the squared norm dies as $1/l$ when the activation is smooth at 0, as $1/l^2$ when it is not."""

import math

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import Ensemble, conditional_chain, elementwise
from theodolite.theory import Mlp
from theodolite.theory.propagation import critical_decay, variance_trajectory

WIDTH, NETS = 1024, 6
DEPTHS = (6, 8, 11, 16, 23, 32, 45)


def predict(activation: str) -> Band:
    """Between the power that theory gives to infinite depth and the slope of the recursion over these depths."""
    trajectory = variance_trajectory(Mlp(max(DEPTHS), activation, 1.0), 1.0)
    slope = math.log(trajectory[DEPTHS[-1] - 1] / trajectory[DEPTHS[0] - 1]) / math.log(DEPTHS[-1] / DEPTHS[0])
    power = -critical_decay(activation).exponent
    return Band(min(slope, power) - 0.25, max(slope, power) + 0.25)  # a quarter of what sets the two powers apart


def measure(activation: str, weight_layers: int, *, generator: torch.Generator, instead: str | None = None) -> Tensor:
    ensemble = Ensemble(
        activation=elementwise(instead or activation), widths=(WIDTH,) * (weight_layers - 1), weight_variance=1.0
    )
    return conditional_chain(ensemble, torch.ones(1, 1), nets=NETS, generator=generator)[:, -1, 0, 0].double()


law = Law(
    claim="The critical variance map bends as K - a K^2 for tanh, which gives decay as 1/l, and as K - b K^(3/2) for ELU, "
    "whose second derivative jumps at 0, which gives 1/l^2.",
    formula=r"\frac{d\ln K^{(l)}}{d\ln l}\to-1\;(\tanh),\qquad\to-2\;(\mathrm{ELU}),\qquad "
    r"K^{(l+1)}=\langle\sigma^2\rangle_{K^{(l)}}",
    assumes={"a second derivative that jumps at 0, for 1/l^2": {"instead": "tanh"}},
    source="roberts2022, section 5.3.3",
    predict=predict,
    measure=measure,
    cases=tuple({"activation": name, "weight_layers": layers} for name in ("tanh", "elu") for layers in DEPTHS),
    quantity="squared norm per unit",
    exponent="weight_layers",
)
