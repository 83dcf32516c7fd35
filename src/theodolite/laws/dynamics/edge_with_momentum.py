r"""With heavy-ball momentum $\beta$ descent is stable up to a curvature of $(2+2\beta)/\eta$."""

import torch

from theodolite.core.law import Law
from theodolite.measure.experiments import largest_stable_step
from theodolite.theory.dynamics import step_size_edge

CURVATURE = 4.0


def measure(momentum: float, *, generator: torch.Generator, nesterov: bool = False) -> float:
    basis = torch.linalg.qr(torch.randn(5, 5, generator=generator, dtype=torch.float64))[0]
    H = (basis * torch.tensor([0.4, 1.0, 2.0, 3.0, CURVATURE], dtype=torch.float64)) @ basis.T
    start = torch.randn(5, generator=generator, dtype=torch.float64)
    return largest_stable_step(lambda e: e @ H, start, bracket=(0.05, 3.0), momentum=momentum, nesterov=nesterov)


law = Law(
    claim="Heavy-ball momentum lets descent cross curvatures higher by the factor 1 + beta before it becomes unstable.",
    formula=r"x_{t+1}=(1+\beta-\eta\lambda)x_t-\beta x_{t-1}\ \text{stable}\iff\eta\lambda<2+2\beta",
    assumes={"heavy-ball, not Nesterov's momentum": {"nesterov": True}},
    source="polyak1964; cohen2021",
    # the step at which this curvature is the edge
    predict=lambda momentum: step_size_edge(CURVATURE, momentum=momentum),
    measure=measure,
    cases=({"momentum": 0.0}, {"momentum": 0.5}, {"momentum": 0.9}),
    full=({"momentum": 0.95},),
    tolerance=1e-3,  # 400 steps tell growth from decay where the factor differs from 1 by about 1e-5; bisection to 2e-4
    repeats=4,
    quantity="largest stable step",
    along="momentum",
)
