r"""Adam is stable up to a preconditioned curvature of $(2+2\beta_1)/(1-\beta_1)\eta$; weight decay brings the edge down."""

import torch

from theodolite.core.law import Law
from theodolite.measure.experiments import frozen_adam, largest_stable_gain
from theodolite.theory.dynamics import update_edge

CURVATURES, SCALES = (0.4, 1.0, 2.0, 3.0, 4.0), (1.0, 3.0, 0.5, 2.0, 1.5)


def measure(momentum: float, decay: float, *, generator: torch.Generator, holding: float = 1 - 1e-15) -> float:
    """torch's AdamW itself: the largest preconditioned curvature at which it does not grow, in steps of 1."""
    basis = torch.linalg.qr(torch.randn(5, 5, generator=generator, dtype=torch.float64))[0]
    H = (basis * torch.tensor(CURVATURES, dtype=torch.float64)) @ basis.T
    scales = torch.tensor(SCALES, dtype=torch.float64)
    top = float(torch.linalg.eigvalsh(H / (scales[:, None] * scales).sqrt())[-1])
    start = 1e-3 * torch.randn(5, generator=generator, dtype=torch.float64)
    gain = largest_stable_gain(
        lambda own, gains: frozen_adam(own, gains, scales=scales, momentum=momentum, decay=decay, holding=holding),
        H,
        start,
        bracket=(0.5 / top, 60 / top),
        steps=400,
    )
    return gain * top


law = Law(
    claim="Adam's steps stop being stable where the curvature, divided on both sides by the root of its preconditioner, exceeds "
    "(2 + 2 beta) / (1 - beta) over the step: with beta = 0.9 that is 38 over the step, not 2.",
    formula=r"\lambda_{\max}(P^{-1/2}HP^{-1/2})<\frac{(2-\eta\omega)(1+\beta_1)}{(1-\beta_1)\,\eta},"
    r"\qquad P=\sqrt{\hat v}+\epsilon",
    assumes={"a preconditioner that moves slowly": {"holding": 0.9}},
    source="cohen2022adaptive",
    predict=lambda momentum, decay: update_edge(1.0, momentum=momentum, kind="averaged", decay=decay),
    measure=measure,
    cases=({"momentum": 0.0, "decay": 0.0}, {"momentum": 0.9, "decay": 0.0}, {"momentum": 0.9, "decay": 0.2}),
    full=({"momentum": 0.5, "decay": 0.0}, {"momentum": 0.8, "decay": 0.5}),
    tolerance=5e-3,  # 400 steps tell growth from decay to about 1e-3 at beta = 0.9, where both are slow; grids to 1.3e-3
    repeats=2,
    quantity="largest stable preconditioned curvature times the step",
)
