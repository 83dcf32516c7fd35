r"""Gradient descent on a quadratic converges below the step size $2/\lambda_{\max}$ and diverges above it."""

import torch

from theodolite.core.law import Law
from theodolite.theory.dynamics import step_size_edge

STEPS = 400
SPECTRUM = (0.5, 1.0, 2.0, 4.0, 10.0)


def measure(scale: float, *, generator: torch.Generator, momentum: float = 0.0, loss: str = "quadratic") -> float:
    """The smallest of many steps after which the error has grown, for a random quadratic of this spectrum."""
    random = torch.randn(5, 5, generator=generator, dtype=torch.float64)
    basis = torch.linalg.qr(random).Q
    hessian = basis @ torch.diag(scale * torch.tensor(SPECTRUM, dtype=torch.float64)) @ basis.T
    start = torch.randn(5, generator=generator, dtype=torch.float64)
    steps = torch.linspace(1.0, 4.5, 701, dtype=torch.float64).unsqueeze(1) / (scale * SPECTRUM[-1])
    error, velocity = start.expand(len(steps), 5), torch.zeros(len(steps), 5, dtype=torch.float64)
    for _ in range(STEPS):
        pull = error @ hessian
        velocity = momentum * velocity - steps * (pull.tanh() if loss == "bounded slope" else pull)
        error = (error + velocity).clamp(-1e100, 1e100)
    grown = (error.norm(dim=1) > start.norm()).nonzero()
    return float(steps[grown[0, 0] if len(grown) else -1, 0])


law = Law(
    claim="Plain gradient descent on a quadratic loss is stable exactly up to two over the largest curvature.",
    formula=r"0<\eta<\frac{2}{\lambda_{\max}}",
    assumes={"no momentum": {"momentum": 0.13}, "a quadratic loss": {"loss": "bounded slope"}},
    source="roberts2022, chapter 9; lee2019",
    predict=lambda scale: step_size_edge(scale * SPECTRUM[-1]),
    measure=measure,
    cases=({"scale": 0.1}, {"scale": 1.0}, {"scale": 10.0}),
    repeats=4,
    # Growth is seen once (1 + delta)^400 makes up for the start's share of the steepest direction: delta = log(100)/400
    # = 1.2 % for a share of a hundredth; steps lie 0.25 % apart
    tolerance=0.04,
    quantity="largest stable step",
)
