r"""With noise proportional to the Hessian every direction across a valley fluctuates alike: $\alpha\gamma/(2-\gamma h)$."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.measure.experiments import noisy_descent
from theodolite.theory.dynamics import batch_noise as stochastic

CHAINS = 4000
LR, NOISE = 0.05, 0.3


def measure(curvature: float, *, generator: torch.Generator, noise: str = "of the Hessian") -> Tensor:
    """Squares at the end of chains on L = curvature x^2 / 2."""
    variance = NOISE * (curvature if noise == "of the Hessian" else 1.0)
    steps = min(round(10 / (LR * curvature)), 120)  # exp(-2 gamma curvature steps) is left of the start
    start = torch.zeros(CHAINS, dtype=torch.float64)
    return noisy_descent(
        lambda x: curvature * x, start, lrs=[LR] * steps, noise_variance=variance, generator=generator
    ).square()


law = Law(
    claim="Where the noise of gradients is proportional to the Hessian, steep and flat directions fluctuate by the same amount "
    "to first order in the step.",
    formula=r"\langle\bar\theta_i^2\rangle=\frac{\alpha\gamma}{2-\gamma h_i},\qquad "
    r"L=\tfrac12\sum h_i\bar\theta_i^2,\;C=\alpha\nabla^2L",
    assumes={"noise proportional to the Hessian": {"noise": "constant"}},
    source="wei2019",
    predict=lambda curvature: stochastic.valley_fluctuation(curvature, lr=LR, noise_to_curvature=NOISE),
    measure=measure,
    cases=({"curvature": 1.0}, {"curvature": 4.0}, {"curvature": 12.0}),
    full=({"curvature": 24.0},),
    tolerance=0.05,  # 8 x 4000 squares of a Gaussian know their mean to 0.8 %, three of these are 2.4 %
    quantity="mean square across the valley",
    along="curvature",
    erratum="The value alpha gamma / 4 forgets that the Hessian of lambda x^2 is 2 lambda.",
    refuted=lambda **case: NOISE * LR / 4,
)
