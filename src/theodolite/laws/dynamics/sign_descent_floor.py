r"""Sign descent has no edge: at any step it ends in a cycle, at a loss of $\eta^2\sum_i\lambda_i/6$ in the mean."""

import torch

from theodolite.core.law import Law
from theodolite.theory.dynamics import sign_floor

CURVATURES = (0.5, 1.0, 4.0)


def measure(lr: float, *, generator: torch.Generator, turned: float = 0.0, sign: bool = True) -> list[float]:
    """The mean loss of the last of many steps from many starts; a gradient instead of its sign runs away."""
    H = torch.diag(torch.tensor(CURVATURES, dtype=torch.float64))
    if turned:
        basis = torch.linalg.qr(torch.randn(3, 3, generator=generator, dtype=torch.float64))[0]
        H = basis @ H @ basis.T
    x = 10 * lr * torch.randn(4000, 3, generator=generator, dtype=torch.float64)
    for _ in range(200):
        slope = x @ H
        x = (x - lr * (slope.sign() if sign else slope)).clamp(-1e6 * lr, 1e6 * lr)
    return (((x @ H) * x).sum(1) / 2).tolist()


law = Law(
    claim="A step of fixed length in every coordinate is stable at any curvature; what it cannot do is to come nearer than "
    "itself. On a quadratic along the axes sign descent ends at a loss that grows as the square of the step.",
    formula=r"E\,L_\infty=\frac{\eta^2}{6}\sum_i\lambda_i",
    assumes={"a Hessian along the axes": {"turned": 1.0}, "steps by the sign alone": {"sign": False}},
    source="balles2018",
    predict=lambda lr: sign_floor(CURVATURES, lr=lr),
    measure=measure,
    cases=({"lr": 0.1}, {"lr": 1.0}, {"lr": 10.0}),  # 2 over the largest curvature is 0.5
    tolerance=0.05,
    repeats=2,
    quantity="mean loss in the long run",
    along="lr",
)
