r"""With Nesterov's momentum descent is stable up to a curvature of $(2+2\beta)/(1+2\beta)\eta$: less than without momentum."""

import torch

from theodolite.core.law import Law
from theodolite.measure.experiments import largest_stable_step
from theodolite.theory.dynamics import update_edge

CURVATURE = 4.0


def measure(momentum: float, *, generator: torch.Generator, nesterov: bool = True) -> float:
    basis = torch.linalg.qr(torch.randn(5, 5, generator=generator, dtype=torch.float64))[0]
    H = (basis * torch.tensor([0.4, 1.0, 2.0, 3.0, CURVATURE], dtype=torch.float64)) @ basis.T
    start = torch.randn(5, generator=generator, dtype=torch.float64)
    return largest_stable_step(lambda e: e @ H, start, bracket=(0.05, 3.0), momentum=momentum, nesterov=nesterov)


law = Law(
    claim="Nesterov's momentum, which accelerates where the loss is flat, makes the steepest direction unstable earlier: at "
    "beta = 0.9 a curvature of 1.36 over the step is too much, while plain descent allows 2 and heavy-ball momentum 3.8.",
    formula=r"\eta\lambda<\frac{2+2\beta}{1+2\beta}",
    assumes={"Nesterov's, not heavy-ball momentum": {"nesterov": False}},
    source="cohen2021",
    # the step at which this curvature is the edge
    predict=lambda momentum: update_edge(CURVATURE, momentum=momentum, kind="nesterov"),
    measure=measure,
    cases=({"momentum": 0.3}, {"momentum": 0.5}, {"momentum": 0.9}),
    full=({"momentum": 0.95},),
    tolerance=1e-3,  # 400 steps tell growth from decay where the factor differs from 1 by about 1e-5; bisection to 2e-4
    repeats=4,
    quantity="largest stable step",
    along="momentum",
)
