r"""On a quadratic loss the error shrinks by $\max(1-\eta\lambda_{\min},\eta\lambda_{\max}-1)$ a step."""

import torch

from theodolite.core.law import Law
from theodolite.measure.experiments import descent_path
from theodolite.theory.dynamics import descent as dynamics

CURVATURES = (0.5, 1.0, 2.0, 4.0, 10.0)
STEPS = 600


def predict(lr_times_curvature: float) -> float:
    return dynamics.quadratic_rate(min(CURVATURES), max(CURVATURES), lr=lr_times_curvature / max(CURVATURES))


def measure(lr_times_curvature: float, *, generator: torch.Generator, momentum: float = 0.0) -> float:
    """The geometric mean of the factors by which the error shrinks over the second half of the steps."""
    basis = torch.linalg.qr(torch.randn(5, 5, generator=generator, dtype=torch.float64))[0]
    H = (basis * torch.tensor(CURVATURES, dtype=torch.float64)) @ basis.T
    start = basis.sum(1) + 0.1 * torch.randn(5, generator=generator, dtype=torch.float64)
    lrs = torch.tensor([lr_times_curvature / max(CURVATURES)], dtype=torch.float64)
    path = descent_path(lambda e: e @ H, start, lrs=lrs, steps=STEPS, momentum=momentum)
    return float((path[-1].norm() / path[STEPS // 2].norm()) ** (1 / (STEPS - STEPS // 2)))


law = Law(
    claim="The slowest direction sets the rate: the flattest one for small steps, the steepest, which overshoots, beyond "
    "2/(lambda_min + lambda_max), where the rate is best.",
    formula=r"\rho=\max(1-\eta\lambda_{\min},\;\eta\lambda_{\max}-1),\qquad "
    r"\eta_{best}=\frac{2}{\lambda_{\min}+\lambda_{\max}},\;\rho_{best}=\frac{\kappa-1}{\kappa+1}",
    assumes={"no momentum": {"momentum": 0.00078}},
    source="nesterov2004, section 2.1",
    predict=predict,
    measure=measure,
    cases=tuple({"lr_times_curvature": s} for s in (0.5, 1.0, 1.9, 1.95, 1.99)),
    full=({"lr_times_curvature": 0.1},),
    tolerance=5e-4,  # at the crossing of the two ends both last: constants of order 1 over 300 steps, and 1e-4 elsewhere
    repeats=4,
    quantity="factor of the error a step",
    along="lr_times_curvature",
    erratum="The factor 1 - eta lambda_min is given for all steps below 2/lambda_max; beyond 2/(lambda_min + lambda_max) the "
    "steepest direction is the slower one: at eta lambda_max = 1.99 the error after 200 steps is 1e7 times larger.",
    refuted=lambda lr_times_curvature: 1 - lr_times_curvature * min(CURVATURES) / max(CURVATURES),
)
