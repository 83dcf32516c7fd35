r"""Scaling the input changes the next squared norm by $\chi_\parallel=\frac{1}{2}C_w\langle(\sigma^2)''\rangle$ times as much."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.measure.experiments import elementwise, perturbation_growth
from theodolite.theory.propagation import signal_maps as propagation

UNITS = 40_000
C_W = 1.5


def measure(activation: str, variance: float, *, generator: torch.Generator, kind: str = "parallel") -> Tensor:
    return C_W * perturbation_growth(elementwise(activation), variance, kind=kind, units=UNITS, generator=generator)


law = Law(
    claim="When an input is scaled a little, the change of the squared norm grows by chi_parallel in each layer; kinks "
    "count too.",
    formula=r"\chi_\parallel=\frac{C_w}{2}\langle(\sigma^2)''\rangle_K=\frac{C_w}{2K^2}\langle\sigma^2(z^2-K)\rangle_K",
    assumes={"the input is scaled, not turned": {"kind": "perpendicular"}},
    source="roberts2022, section 5.1",
    predict=lambda activation, variance: propagation.chi_parallel(activation, variance, weight_variance=C_W),
    measure=measure,
    cases=(
        {"activation": "relu", "variance": 1.0},
        {"activation": "tanh", "variance": 1.0},
        {"activation": "gelu", "variance": 1.0},
        {"activation": "hardtanh", "variance": 1.0},
        {"activation": "selu", "variance": 2.0},
    ),
    full=({"activation": "silu", "variance": 14.32}, {"activation": "softsign", "variance": 0.5}),
    tolerance=0.04,  # 8 x 40000 units leave 0.3 to 0.4 %
    quantity="growth of a change of the squared norm",
)
