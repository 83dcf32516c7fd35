r"""Multiplicative updates are stable up to a curvature of $2/\eta$ in $\sqrt w$ on both sides: weights are the preconditioner."""

import torch

from theodolite.core.law import Law
from theodolite.optim import EGU
from theodolite.theory.dynamics import update_edge

WEIGHTS, STEPS = (0.2, 1.0, 3.0, 0.5), 400


def predict(spread: float) -> float:
    return update_edge(1.0)


def measure(spread: float, *, generator: torch.Generator, far: float = 0.0) -> float:
    """theodolite's EGU near the minimum: the product of step and preconditioned curvature at which it stops coming nearer."""
    basis = torch.linalg.qr(torch.randn(4, 4, generator=generator, dtype=torch.float64))[0]
    H = (basis * torch.tensor([1.0, spread, spread**2, spread**3], dtype=torch.float64)) @ basis.T
    goal = torch.tensor(WEIGHTS, dtype=torch.float64)
    top = float(torch.linalg.eigvalsh(H * (goal[:, None] * goal).sqrt())[-1])
    push = 1e-9 * torch.randn(4, generator=generator, dtype=torch.float64) + far
    low, high = 1.0 / top, 4.0 / top
    for _ in range(10):
        lr = 0.5 * (low + high)
        own = torch.nn.Parameter(goal * push.exp())
        optimizer = EGU([own], lr=lr, foreach=False)
        errors = []
        for _ in range(STEPS):
            own.grad = H @ (own.detach() - goal)
            optimizer.step()
            errors.append(float((own.detach() - goal).norm()))
        shrinks = max(errors[3 * STEPS // 4 :]) < max(errors[STEPS // 2 : 3 * STEPS // 4])
        low, high = (lr, high) if shrinks else (low, lr)
    return 0.5 * (low + high) * top


law = Law(
    claim="A weight that is multiplied moves in proportion to itself: exponentiated gradient is stable near a minimum w up to a "
    "curvature of 2 over the step, for the Hessian multiplied on both sides by the root of w.",
    formula=r"\lambda_{\max}(\sqrt w\,H\sqrt w)<\frac2\eta",
    assumes={"near the minimum": {"far": -1.5}},
    source="kivinen1997",
    predict=predict,
    measure=measure,
    cases=({"spread": 1.5}, {"spread": 2.0}, {"spread": 3.0}),
    tolerance=8e-3,  # bisection to 3e-3; near the edge 400 steps tell growth to about 1e-3
    repeats=2,
    quantity="largest stable preconditioned curvature times the step",
)
