r"""The critical weight variance is $1/\langle\sigma'^2\rangle$ at the fixed point that is stable, which need not be 0."""

import torch

from theodolite.core.law import Law
from theodolite.core.reading import Estimate
from theodolite.core.statistics import mean_estimate
from theodolite.measure.experiments import elementwise, perturbation_growth
from theodolite.theory import Activation
from theodolite.theory.propagation import criticality

UNITS = 60_000
NEAR_ZERO = 1e-6


def measure(activation: str, variance: float, *, generator: torch.Generator, at: float | None = None) -> Estimate:
    """One over the growth of a squared distance among signals of this variance, at a weight variance of 1."""
    growth = mean_estimate(
        perturbation_growth(
            elementwise(activation), at or variance, kind="perpendicular", units=UNITS, generator=generator
        )
    )
    return Estimate(1 / growth.value, growth.stderr / growth.value**2)


law = Law(
    claim="Differences between inputs neither grow nor fade when C_w is one over the mean squared slope at the fixed "
    "point: 0 for tanh and its like, where the slope is that at zero, but 3.56 for GELU, 14.3 for SiLU, any for ReLU.",
    formula=r"C_w=\frac{1}{\langle\sigma'^2\rangle_{K^*}},\quad\langle\sigma\sigma''\rangle_{K^*}=0,\quad "
    r" C_b=K^*-C_w\langle\sigma^2\rangle_{K^*}\geq0",
    assumes={"signals at the fixed point": {"at": 1.0}},
    source="roberts2022, chapter 5; hayou2019",
    predict=lambda activation, variance: criticality(activation).weight_variance or 0.0,
    measure=measure,
    cases=(
        {"activation": "tanh", "variance": NEAR_ZERO},
        {"activation": "erf", "variance": NEAR_ZERO},
        {"activation": "selu", "variance": NEAR_ZERO},
        {"activation": "relu", "variance": 5.0},
        {"activation": "gelu", "variance": 3.5615528128},
        {"activation": "silu", "variance": 14.320173618},
    ),
    full=({"activation": "softsign", "variance": NEAR_ZERO}, {"activation": "elu", "variance": NEAR_ZERO}),
    tolerance=0.04,  # 8 x 60000 units leave 0.4 % at most
    quantity="critical weight variance",
    erratum="Taking one over the squared slope at 0 for every activation with sigma(0) = 0 gives 4 for GELU and SiLU; there "
    "the zero fixed point is unstable, and the critical weight variances are 1.983 and 1.988.",
    refuted=lambda activation, variance: 1 / Activation(activation).slope_moment(0.0),
)
