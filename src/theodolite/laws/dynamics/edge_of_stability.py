r"""Full-batch gradient descent drives the sharpness up to $2/\eta$ and stays there."""

import torch
from torch import Tensor

from theodolite.construct.propagation import network
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.theory import Mlp
from theodolite.theory.dynamics import step_size_edge

NETS, STEPS, LAST = 36, 440, 220
SPEC = Mlp(widths=(16, 16, 16), activation="tanh", weight_variance=1.5, bias_variance=0.1)


def predict(lr: float, momentum: float) -> Band:
    edge = step_size_edge(lr, momentum=momentum)
    return Band(0.95 * edge, 1.08 * edge)  # the sharpness oscillates about the edge by 3 to 6 %


def measure(lr: float, momentum: float, *, generator: torch.Generator, batch: int = 20) -> list[float]:
    """The sharpness of several networks side by side, each averaged over the last steps."""
    x = torch.linspace(-1, 1, 20, dtype=torch.float64)[:, None]
    y = 8 * x**4 - 8 * x**2 + 1  # a Chebyshev polynomial
    nets = [network(SPEC, 1, 1, generator=generator, dtype=torch.float64) for _ in range(NETS)]
    own = [torch.stack([p.detach() for p in same]) for same in zip(*(net.parameters() for net in nets), strict=True)]
    velocity = [torch.zeros_like(p) for p in own]
    vectors = [torch.randn(p.shape, generator=generator, dtype=p.dtype) for p in own]
    seen = []
    for step in range(STEPS):
        rows = torch.arange(20) if batch == 20 else torch.randperm(20, generator=generator)[:batch]
        own = [p.detach().requires_grad_() for p in own]
        slopes = torch.autograd.grad(_loss(own, x[rows], y[rows]), own)
        velocity = [momentum * b + g for b, g in zip(velocity, slopes, strict=True)]
        if step >= STEPS - LAST and step % 8 == 0:
            sharpness, vectors = _power_step(own, vectors, x, y)
            seen.append(sharpness)
        own = [p.detach() - lr * b for p, b in zip(own, velocity, strict=True)]
    return torch.stack(seen[len(seen) // 4 :]).mean(0).tolist()  # the first looks find the eigenvector


def _power_step(own: list[Tensor], vectors: list[Tensor], x: Tensor, y: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Each network's sharpness by the Rayleigh quotient of a vector that power iteration carries along."""
    slopes = torch.autograd.grad(_loss(own, x, y), own, create_graph=True)
    images = torch.autograd.grad(slopes, own, vectors)
    size = torch.stack([v.flatten(1).square().sum(1) for v in vectors]).sum(0)
    along = torch.stack([(v * h).flatten(1).sum(1) for v, h in zip(vectors, images, strict=True)]).sum(0)
    norm = torch.stack([h.flatten(1).square().sum(1) for h in images]).sum(0).sqrt()
    return along / size, [h / norm.reshape(-1, *[1] * (h.ndim - 1)) for h in images]


def _loss(own: list[Tensor], x: Tensor, y: Tensor) -> Tensor:
    return (_outputs(own, x) - y).square().mean((1, 2)).sum() / 2


def _outputs(own: list[Tensor], x: Tensor) -> Tensor:
    """All networks at once, (nets, samples, 1)."""
    h = x.expand(len(own[0]), -1, -1)
    for place in range(0, len(own), 2):
        h = torch.baddbmm(own[place + 1][:, None], h, own[place].mT)
        h = torch.tanh(h) if place + 2 < len(own) else h
    return h


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
