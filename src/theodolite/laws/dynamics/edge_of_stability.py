r"""Full-batch gradient descent drives the sharpness up to $2/\eta$ and stays there."""

import torch
from torch import Tensor

from theodolite.construct.propagation import network
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import late_sharpness
from theodolite.theory import Mlp
from theodolite.theory.dynamics import step_size_edge

NETS, LOOKS = 36, range(224, 440, 8)
SPEC = Mlp(widths=(16, 16, 16), activation="tanh", weight_variance=1.5, bias_variance=0.1)


def predict(lr: float, momentum: float) -> Band:
    edge = step_size_edge(lr, momentum=momentum)
    return Band(0.95 * edge, 1.08 * edge)  # the sharpness oscillates about the edge by 3 to 6 %


def measure(lr: float, momentum: float, *, generator: torch.Generator, batch: int = 20) -> list[float]:
    """The sharpness of several networks side by side, each averaged over the last steps."""
    nets = [network(SPEC, 1, 1, generator=generator, dtype=torch.float64) for _ in range(NETS)]
    velocity: list[Tensor] = []

    def update(slopes: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        velocity[:] = [momentum * b + g for b, g in zip(velocity, slopes, strict=True)] if velocity else slopes
        return velocity, [torch.ones_like(b) for b in velocity]

    return late_sharpness(nets, update, lr=lr, looks=LOOKS, products=(1, 1), batch=batch, generator=generator)


law = Law(
    claim="On a problem that is hard enough the largest Hessian eigenvalue grows while gradient descent trains, until it "
    "reaches the edge where the step stops being stable, and then hovers there while the loss still falls.",
    formula=r"\lambda_{\max}(\nabla^2L)\to\frac{2+2\beta}{\eta}",
    assumes={"the full batch": {"batch": 12}, "a target that takes long to learn": None},
    source="cohen2021",
    predict=predict,
    measure=measure,
    # Steps whose edges, 10 to 6.7, lie about the sharpness of the start (8.3, by 1.9 from net to net) and far below the 34 that
    # gradient flow climbs to in the time of 400 steps of 0.2: both from above and from below the edge is where training ends
    cases=tuple({"lr": lr, "momentum": 0.0} for lr in (0.2, 0.25, 0.3)),
    full=({"lr": 0.1, "momentum": 0.0},),
    repeats=1,
    quantity="sharpness late in training",
)
