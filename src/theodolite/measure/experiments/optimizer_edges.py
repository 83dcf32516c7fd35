"""Where optimizers stop being stable: real ones on quadratics, many gains side by side, and trained networks at their edge."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.checks import at_least, finite_values

Maker = Callable[[torch.nn.Parameter, Tensor], torch.optim.Optimizer]
"""An optimizer of step 1 for points (k, d), made so that its gain in row k is that number times the inverse preconditioner."""

Update = Callable[[list[Tensor]], tuple[list[Tensor], list[Tensor]]]
"""From the gradients of a step to what is stepped along and the preconditioner that divides it."""


def largest_stable_gain(
    make: Maker, hessian: Tensor, start: Tensor, *, bracket: tuple[float, float], steps: int = 400
) -> float:
    """The gain at which an optimizer on the quadratic of this Hessian begins to grow, by two grids, even in the logarithm.

    Growth is told by the largest norms over the third and the last quarter of the steps, or by a thousandfold norm: gradients
    are held below 1000, so that a second moment that hardly moves is not moved by a run that has left.

    >>> make = lambda own, gains: frozen_rmsprop(own, gains, scales=torch.ones(1).double(), momentum=0.0)
    >>> round(largest_stable_gain(make, torch.eye(1).double(), torch.ones(1).double(), bracket=(1.0, 3.0)), 2)
    2.0
    """
    low, high = bracket
    finite_values(hessian=hessian, start=start)
    at_least(4, steps=steps)
    for _ in range(2):
        gains = torch.logspace(math.log10(low), math.log10(high), 44, dtype=torch.float64)
        own = torch.nn.Parameter(start.expand(len(gains), -1).clone())
        optimizer = make(own, gains[:, None])
        norms = []
        for _ in range(steps):
            own.grad = (own.detach() @ hessian).clamp(-1e3, 1e3)
            optimizer.step()
            norms.append(own.detach().norm(dim=1))
        seen = torch.stack(norms)
        third, last = seen[steps // 2 : 3 * steps // 4].amax(0), seen[3 * steps // 4 :].amax(0)
        grows = ~((last < third) | (last == 0)) | (last > 1e3 * start.norm())
        first = int(grows.double().argmax()) if bool(grows.any()) else len(gains) - 1
        low, high = float(gains[max(0, first - 1)]), float(gains[first])
    return 0.5 * (low + high)


def frozen_adam(
    own: torch.nn.Parameter,
    gains: Tensor,
    *,
    scales: Tensor,
    momentum: float,
    decay: float = 0.0,
    holding: float = 1 - 1e-15,
) -> torch.optim.Optimizer:
    """AdamW (Adam without decay) long after its start, its second moment such that the gain is that over ``scales``.

    ``holding`` is the factor of the second moment at each step: next to 1 it stays.
    """
    betas = (momentum, holding)
    optimizer: Any = torch.optim.AdamW([own], lr=1.0, betas=betas, eps=0.0, weight_decay=decay)
    square = (scales / gains).square().expand_as(own).clone()
    long = torch.tensor(1e18, dtype=torch.float64)
    optimizer.state[own] = {"step": long, "exp_avg": torch.zeros_like(own.data), "exp_avg_sq": square}
    return optimizer


def frozen_rmsprop(
    own: torch.nn.Parameter, gains: Tensor, *, scales: Tensor, momentum: float, holding: float = 1 - 1e-15
) -> torch.optim.Optimizer:
    """RMSprop with such a second moment that its gain is that over ``scales``; ``holding`` as in `frozen_adam`."""
    optimizer: Any = torch.optim.RMSprop([own], lr=1.0, alpha=holding, eps=0.0, momentum=momentum)
    square = (scales / gains).square().expand_as(own).clone()
    optimizer.state[own] = {
        "step": torch.tensor(1e9),
        "square_avg": square,
        "momentum_buffer": torch.zeros_like(own.data),
    }
    return optimizer


def full_adagrad(own: torch.nn.Parameter, gains: Tensor, *, scales: Tensor) -> torch.optim.Optimizer:
    """Adagrad with so much behind it that its gain is that over ``scales``: what small gradients add is nothing."""
    optimizer: Any = torch.optim.Adagrad([own], lr=1.0, eps=0.0)
    optimizer.state[own]["sum"] = (scales / gains).square().expand_as(own).clone()
    return optimizer


def frozen_adadelta(own: torch.nn.Parameter, gains: Tensor, *, scales: Tensor) -> torch.optim.Optimizer:
    """Adadelta whose two means of squares hardly move, such that its gain is that over ``scales``."""
    optimizer: Any = torch.optim.Adadelta([own], lr=1.0, rho=1 - 1e-15, eps=0.0)
    square = (scales / gains).square().expand_as(own).clone()
    optimizer.state[own] = {"step": torch.tensor(1e9), "square_avg": square, "acc_delta": torch.ones_like(square)}
    return optimizer


def late_sharpness(
    nets: Sequence[nn.Module],
    update: Update,
    *,
    lr: float,
    looks: Sequence[int],
    products: tuple[int, int],
    batch: int,
    generator: torch.Generator,
    plain: bool = False,
) -> list[float]:
    """The largest preconditioned Hessian eigenvalue of tanh networks 1-...-1 in training, each a mean over its last looks.

    They learn a polynomial from 20 points side by side, ``batch`` of them a step. An eigenvalue is the Rayleigh quotient of
    a vector that power iteration carries from look to look, by so many ``products`` at the first and at each later one. The
    first quarter of the ``looks``, steps counted from 0, only finds the vectors; ``plain`` leaves the preconditioner out.
    """
    x = torch.linspace(-1, 1, 20, dtype=torch.float64)[:, None]
    y = 8 * x**4 - 8 * x**2 + 1  # a Chebyshev polynomial
    own = [torch.stack([p.detach() for p in same]) for same in zip(*(net.parameters() for net in nets), strict=True)]
    vectors = [torch.randn(p.shape, generator=generator, dtype=p.dtype) for p in own]
    seen: list[Tensor] = []
    for step in range(looks[-1] + 1):
        rows = torch.arange(20) if batch == 20 else torch.randperm(20, generator=generator)[:batch]
        own = [p.detach().requires_grad_() for p in own]
        along, divisors = update(list(torch.autograd.grad(_summed_loss(own, x[rows], y[rows]), own)))
        if step in looks:
            roots = [torch.ones_like(p) if plain else p.rsqrt() for p in divisors]
            slopes = torch.autograd.grad(_summed_loss(own, x, y), own, create_graph=True)
            for _ in range(products[len(seen) > 0]):
                scaled = [v * r for v, r in zip(vectors, roots, strict=True)]
                curved = torch.autograd.grad(slopes, own, scaled, retain_graph=True)
                images = [h * r for h, r in zip(curved, roots, strict=True)]
                size, norm = (
                    torch.stack([part.flatten(1).square().sum(1) for part in parts]).sum(0)
                    for parts in (vectors, images)
                )
                along_them = torch.stack([(v * h).flatten(1).sum(1) for v, h in zip(vectors, images, strict=True)])
                quotient = along_them.sum(0) / size
                vectors = [h / norm.sqrt().reshape(-1, *[1] * (h.ndim - 1)) for h in images]
            seen.append(quotient)
        own = [p.detach() - lr * m / d for p, m, d in zip(own, along, divisors, strict=True)]
    return torch.stack(seen[len(seen) // 4 :]).mean(0).tolist()


def _summed_loss(own: list[Tensor], x: Tensor, y: Tensor) -> Tensor:
    """Half the mean square of all networks at once, added up."""
    h = x.expand(len(own[0]), -1, -1)
    for place in range(0, len(own), 2):
        h = torch.baddbmm(own[place + 1][:, None], h, own[place].mT)
        h = torch.tanh(h) if place + 2 < len(own) else h
    return (h - y).square().mean((1, 2)).sum() / 2
