r"""Two nearly equal inputs part by $\chi_\perp=C_w\langle\sigma'^2\rangle$ in squared distance, layer by layer."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.measure.experiments import elementwise, perturbation_growth
from theodolite.theory.propagation import signal_maps as propagation

UNITS = 40_000
C_W = 1.5


def measure(activation: str, variance: float, *, generator: torch.Generator, perturbation: float = 1e-3) -> Tensor:
    return C_W * perturbation_growth(
        elementwise(activation),
        variance,
        kind="perpendicular",
        perturbation=perturbation,
        units=UNITS,
        generator=generator,
    )


law = Law(
    claim="The squared distance of two nearly equal inputs of the same norm grows by chi_perpendicular in each layer; "
    "above 1 the network is chaotic.",
    formula=r"\chi_\perp=C_w\langle\sigma'^2\rangle_K",
    assumes={"nearly equal inputs": {"perturbation": 0.241}},
    source="poole2016; schoenholz2017",
    predict=lambda activation, variance: propagation.chi_perpendicular(activation, variance, weight_variance=C_W),
    measure=measure,
    cases=(
        {"activation": "relu", "variance": 1.0},
        {"activation": "tanh", "variance": 1.0},
        {"activation": "gelu", "variance": 1.0},
        {"activation": "elu", "variance": 1.0},
        {"activation": "sin", "variance": 2.0},
    ),
    full=({"activation": "silu", "variance": 14.32}, {"activation": "softsign", "variance": 0.5}),
    tolerance=0.03,  # 8 x 40000 units leave about 0.3 to 0.4 %
    quantity="growth of a squared distance",
)
