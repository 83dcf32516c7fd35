r"""Noise across a valley drives SGD to where it is wider, by $-\frac{\alpha\gamma^2}4|\nabla\sum h_i|^2$ a step."""

import numpy as np
import torch

from theodolite.core.law import Law
from theodolite.theory.dynamics import batch_noise as stochastic

LR, NOISE, CHAINS, STEPS = 0.02, 0.3, 600, 150
AT_ZERO = (1.2, 1.6, 2.0)
SLOPES = ((0.8, 0.2), (0.4, -0.6), (-0.2, 0.8))


def predict(stretch: float) -> float:
    return stochastic.entropic_drift(stretch * np.array(SLOPES).sum(0), lr=LR, noise_to_curvature=NOISE)


def measure(
    stretch: float, *, generator: torch.Generator, noise: str = "of the Hessian", start: str = "settled"
) -> list[float]:
    """The change of the sum of curvatures a step, of each chain."""
    bars, slopes = torch.tensor(AT_ZERO, dtype=torch.float64), stretch * torch.tensor(SLOPES, dtype=torch.float64)
    floor = torch.zeros(CHAINS, 2, dtype=torch.float64)
    across = torch.randn(CHAINS, 3, generator=generator, dtype=torch.float64) * (NOISE * LR / 2) ** 0.5
    across = across * (1.0 if start == "settled" else 3.0)
    for _ in range(STEPS):
        curvatures = (bars + floor @ slopes.T).clamp(min=0.1)
        sizes = (NOISE * (curvatures if noise == "of the Hessian" else torch.full_like(curvatures, 4.0))).sqrt()
        xi = torch.randn(CHAINS, 3, generator=generator, dtype=torch.float64)
        floor, across = floor - LR * across.square() @ slopes / 2, across - LR * (curvatures * across + sizes * xi)
    return ((floor @ slopes.T).sum(1) / STEPS).tolist()


law = Law(
    claim="Where gradients are noisy across a valley and not along it, the mean square across the valley pushes the floor's "
    "parameters towards smaller curvature, by an amount of second order in the step.",
    formula=r"E\,\Delta\sum_ih_i=-\frac{\alpha\gamma^2}{4}\Big\|\sum_i\nabla h_i\Big\|^2",
    assumes={
        "noise proportional to the Hessian": {"noise": "constant"},
        "settled across the valley": {"start": "spread"},
        "no noise along the floor": None,
    },
    source="wei2019",
    predict=predict,
    measure=measure,
    cases=({"stretch": 1.0}, {"stretch": 2.0}, {"stretch": 0.5}),
    # the next order is gamma h / 2, 2 %; chains leave 1 % to the mean
    tolerance=0.08,
    quantity="change of the sum of curvatures a step",
    along="stretch",
    erratum="With alpha gamma / 4 for the mean square across the valley the force is half of what is seen.",
    refuted=lambda stretch: predict(stretch) / 2,
)
