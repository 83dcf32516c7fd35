r"""Multiplicative updates are stable up to a curvature of $2/\eta$ with $\sqrt{w}$ on both sides: weights precondition."""

import torch

from theodolite.core.law import Law
from theodolite.optim import EGU
from theodolite.theory.dynamics import update_edge

WEIGHTS, STEPS, NEAR, ROUNDING = (0.2, 1.0, 3.0, 0.5), 300, 1e-6, 1e-13


def measure(spread: float, *, generator: torch.Generator, additive: bool = False) -> float:
    """theodolite's EGU near the minimum: the product of step and preconditioned curvature at which errors grow."""
    turned = 0.1 * torch.randn(4, 4, generator=generator, dtype=torch.float64)
    basis = torch.linalg.qr(torch.eye(4, dtype=torch.float64) + turned)[0]
    H = (basis * torch.tensor([1.0, spread, spread**2, spread**3], dtype=torch.float64)) @ basis.T
    goal = torch.tensor(WEIGHTS, dtype=torch.float64)
    top = float(torch.linalg.eigvalsh(H * (goal[:, None] * goal).sqrt())[-1])
    push = NEAR * torch.randn(4, generator=generator, dtype=torch.float64)
    low, high = 0.5 / top, 8.0 / top
    for _ in range(2):
        lrs = torch.linspace(low, high, 50, dtype=torch.float64)
        own = torch.nn.Parameter((goal * (1 + push)).expand(len(lrs), -1).clone())
        optimizer = torch.optim.SGD([own], lr=1.0) if additive else EGU([own], lr=1.0)
        errors = []
        for _ in range(STEPS):
            own.grad = (lrs[:, None] * ((own.detach() - goal) @ H)).clamp(-1e-2, 1e-2)  # a step of its own in each row
            optimizer.step()
            errors.append((own.detach() - goal).norm(dim=1))
        seen = torch.stack(errors)
        third, last = seen[STEPS // 2 : 3 * STEPS // 4].amax(0), seen[-STEPS // 4 :].amax(0)
        grows = (last >= third) & (last > ROUNDING)
        first = int(grows.double().argmax()) if bool(grows.any()) else len(lrs) - 1
        low, high = float(lrs[max(0, first - 1)]), float(lrs[first])
    return 0.5 * (low + high) * top


law = Law(
    claim="A weight that is multiplied moves in proportion to itself: exponentiated gradient is stable near a minimum w up to a "
    "curvature of 2 over the step, for the Hessian multiplied on both sides by the root of w.",
    formula=r"\lambda_{\max}(\sqrt{w}\,H\sqrt{w})<\frac{2}{\eta}",
    assumes={"a multiplicative update": {"additive": True}, "near the minimum": None},
    source="kivinen1997",
    predict=lambda **case: update_edge(1.0),
    measure=measure,
    cases=({"spread": 1.5}, {"spread": 2.0}, {"spread": 3.0}),
    tolerance=8e-3,  # grids to 3e-3; 300 steps tell growth from decay to about 1e-3
    repeats=3,
    quantity="largest stable preconditioned curvature times the step",
)
