r"""RMSprop, Adagrad and Adadelta are stable up to a preconditioned curvature of $(2+2\beta)/\eta$, as descent to a plain one."""

import torch

from theodolite.core.law import Law
from theodolite.measure.experiments import frozen_adadelta, frozen_rmsprop, full_adagrad, largest_stable_gain
from theodolite.theory.dynamics import update_edge

CURVATURES, SCALES = (0.4, 1.0, 2.0, 3.0, 4.0), (1.0, 3.0, 0.5, 2.0, 1.5)


def measure(
    optimizer: str, momentum: float, *, generator: torch.Generator, holding: float = 1 - 1e-15, size: float = 1e-8
) -> float:
    """torch's own optimizers: the largest preconditioned curvature at which they do not grow, in steps of 1."""
    basis = torch.linalg.qr(torch.randn(5, 5, generator=generator, dtype=torch.float64))[0]
    H = (basis * torch.tensor(CURVATURES, dtype=torch.float64)) @ basis.T
    scales = torch.tensor(SCALES, dtype=torch.float64)
    top = float(torch.linalg.eigvalsh(H / (scales[:, None] * scales).sqrt())[-1])
    start = size * torch.randn(5, generator=generator, dtype=torch.float64)

    def make(own: torch.nn.Parameter, gains: torch.Tensor) -> torch.optim.Optimizer:
        if optimizer == "adagrad":
            return full_adagrad(own, gains, scales=scales)
        if optimizer == "adadelta":
            return frozen_adadelta(own, gains, scales=scales)
        return frozen_rmsprop(own, gains, scales=scales, momentum=momentum, holding=holding)

    return top * largest_stable_gain(make, H, start, bracket=(0.5 / top, 8 / top))


law = Law(
    claim="Dividing by the root of a mean (RMSprop) or sum (Adagrad) of squared gradients, or by that of a mean over a mean of "
    "squared steps (Adadelta), leaves the edge of descent as it is, for the curvature divided on both sides by the root of that "
    "divisor.",
    formula=r"\lambda_{\max}(P^{-1/2}HP^{-1/2})<\frac{2+2\beta}{\eta},\qquad P=\sqrt{v}+\epsilon",
    assumes={
        "a mean of squares that moves slowly": {"holding": 0.9, "size": 1.0},
        "a sum of squares that grows slowly": {"holding": 0.99, "size": 10.0},
    },
    source="cohen2022adaptive",
    predict=lambda optimizer, momentum: update_edge(1.0, momentum=momentum),
    measure=measure,
    cases=(
        {"optimizer": "rmsprop", "momentum": 0.0},
        {"optimizer": "rmsprop", "momentum": 0.5},
        {"optimizer": "rmsprop", "momentum": 0.9},
        {"optimizer": "adagrad", "momentum": 0.0},
        {"optimizer": "adadelta", "momentum": 0.0},
    ),
    tolerance=5e-3,  # grids to 7e-4; 400 steps tell growth from decay to about 1e-3
    repeats=2,
    quantity="largest stable preconditioned curvature times the step",
)
