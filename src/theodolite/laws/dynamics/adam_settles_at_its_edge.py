r"""Full-batch Adam drives the preconditioned sharpness up to $(2+2\beta_1)/(1-\beta_1)\eta$ and stays there."""

import torch
from torch import Tensor

from theodolite.construct.propagation import network
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.theory import Mlp
from theodolite.theory.dynamics import update_edge

NETS, STEPS, LAST, BETAS = 24, 480, 160, (0.9, 0.99)


def predict(widths: tuple[int, ...], lr: float) -> Band:
    edge = update_edge(lr, momentum=BETAS[0], kind="averaged")
    return Band(0.9 * edge, 1.1 * edge)


def measure(
    widths: tuple[int, ...], lr: float, *, generator: torch.Generator, batch: int = 20, plain: bool = False
) -> list[float]:
    """The largest eigenvalue of some networks side by side, each the mean over the last steps."""
    x = torch.linspace(-1, 1, 20, dtype=torch.float64)[:, None]
    y = 8 * x**4 - 8 * x**2 + 1  # a Chebyshev polynomial
    spec = Mlp(widths=widths, activation="tanh", weight_variance=1.5, bias_variance=0.1)
    nets = [network(spec, 1, 1, generator=generator, dtype=torch.float64) for _ in range(NETS)]
    own = [torch.stack([p.detach() for p in same]) for same in zip(*(net.parameters() for net in nets), strict=True)]
    means, squares = ([torch.zeros_like(p) for p in own] for _ in range(2))
    vectors = [torch.randn(p.shape, generator=generator, dtype=p.dtype) for p in own]
    seen: list[Tensor] = []
    for step in range(1, STEPS + 1):
        rows = torch.arange(20) if batch == 20 else torch.randperm(20, generator=generator)[:batch]
        own = [p.detach().requires_grad_() for p in own]
        slopes = torch.autograd.grad(_loss(own, x[rows], y[rows]), own)
        means = [BETAS[0] * m + (1 - BETAS[0]) * g for m, g in zip(means, slopes, strict=True)]
        squares = [BETAS[1] * v + (1 - BETAS[1]) * g * g for v, g in zip(squares, slopes, strict=True)]
        first, second = (1 - beta**step for beta in BETAS)
        divisors = [first * ((v / second).sqrt() + 1e-8) for v in squares]
        if step > STEPS - LAST and step % 20 == 0:
            roots = [torch.ones_like(p) if plain else p.rsqrt() for p in divisors]
            sharpness, vectors = _power_steps(own, vectors, roots, (x, y), 24 if not seen else 12)
            seen.append(sharpness)
        own = [p.detach() - lr * m / d for p, m, d in zip(own, means, divisors, strict=True)]
    return torch.stack(seen[len(seen) // 4 :]).mean(0).tolist()


def _power_steps(
    own: list[Tensor], vectors: list[Tensor], roots: list[Tensor], data: tuple[Tensor, Tensor], count: int
) -> tuple[Tensor, list[Tensor]]:
    """Each network's largest eigenvalue by the Rayleigh quotient of a vector that power iteration carries along."""
    slopes = torch.autograd.grad(_loss(own, *data), own, create_graph=True)
    for _ in range(count):
        scaled = [v * r for v, r in zip(vectors, roots, strict=True)]
        products = torch.autograd.grad(slopes, own, scaled, retain_graph=True)
        images = [h * r for h, r in zip(products, roots, strict=True)]
        size = torch.stack([v.flatten(1).square().sum(1) for v in vectors]).sum(0)
        along = torch.stack([(v * h).flatten(1).sum(1) for v, h in zip(vectors, images, strict=True)]).sum(0)
        norm = torch.stack([h.flatten(1).square().sum(1) for h in images]).sum(0).sqrt()
        vectors = [h / norm.reshape(-1, *[1] * (h.ndim - 1)) for h in images]
    return along / size, vectors


def _loss(own: list[Tensor], x: Tensor, y: Tensor) -> Tensor:
    """Of all networks at once, added up."""
    h = x.expand(len(own[0]), -1, -1)
    for place in range(0, len(own), 2):
        h = torch.baddbmm(own[place + 1][:, None], h, own[place].mT)
        h = torch.tanh(h) if place + 2 < len(own) else h
    return (h - y).square().mean((1, 2)).sum() / 2


law = Law(
    claim="While full-batch Adam trains a network, the largest eigenvalue of the Hessian divided on both sides by the root of "
    "Adam's preconditioner grows until it reaches Adam's own edge, and hovers there; the plain sharpness does not settle at all.",
    formula=r"\lambda_{\max}(P_t^{-1/2}\nabla^2L\,P_t^{-1/2})\to\frac{2+2\beta_1}{(1-\beta_1)\,\eta}",
    assumes={
        "the full batch": {"batch": 19},
        "curvature as the preconditioner sees it": {"plain": True},
        "a target that takes long to learn": None,
    },
    source="cohen2022adaptive",
    predict=predict,
    measure=measure,
    cases=({"widths": (16, 16, 16), "lr": 0.006}, {"widths": (24, 24), "lr": 0.006}, {"widths": (24, 24), "lr": 0.008}),
    full=({"widths": (32, 32), "lr": 0.01},),
    repeats=1,
    quantity="preconditioned sharpness late in training",
)
