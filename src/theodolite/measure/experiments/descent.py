"""Descent as it is run: paths, the largest step that stays bounded, noisy chains, and the two-layer model on one datum."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from theodolite.core.checks import (
    InputError,
    at_least,
    finite_values,
    has_values,
    not_negative,
    one_of,
    real_values,
    within,
)

_Slope = Callable[[Tensor], Tensor]
"""The gradient at each row of a block of points, (k, d) to (k, d)."""


def descent_path(
    slope: _Slope, start: Tensor, *, lrs: Tensor, steps: int, momentum: float = 0.0, nesterov: bool = False
) -> Tensor:
    r"""Points of gradient descent from one start with several step sizes side by side, (steps + 1, k, d).

    $b'=\beta b+\nabla L$ and $x'=x-\eta b'$, or with Nesterov's momentum $x'=x-\eta(\nabla L+\beta b')$.

    >>> descent_path(lambda x: x, torch.ones(1), lrs=torch.tensor([0.5]), steps=2).flatten().tolist()
    [1.0, 0.5, 0.25]
    """
    at_least(0, steps=steps)
    real_values(lrs=lrs)
    x = start.expand(len(lrs), -1).clone()
    velocity, rate = torch.zeros_like(x), lrs.to(x)[:, None]
    path = [x]
    for _ in range(steps):
        gradient = slope(x)
        velocity = momentum * velocity + gradient
        x = x - rate * (gradient + momentum * velocity if nesterov else velocity)
        path.append(x)
    return torch.stack(path)


def largest_stable_step(
    slope: _Slope,
    start: Tensor,
    *,
    bracket: tuple[float, float],
    momentum: float = 0.0,
    nesterov: bool = False,
    steps: int = 400,
) -> float:
    """The step size at which descent from a start begins to grow, by two grids of 100 step sizes, one within the other.

    Growth is told by the largest norms over the third and the last quarter of the steps.

    >>> round(largest_stable_step(lambda x: x, torch.ones(1).double(), bracket=(0.1, 5.0)), 2)
    2.0
    """
    within(0, 1, momentum=momentum)
    has_values(start=start)
    finite_values(start=start)
    real_values(start=start)
    low, high = bracket
    at_least(4, steps=steps)
    for _ in range(2):
        grid = torch.linspace(low, high, 100, dtype=torch.float64)
        norms = descent_path(slope, start, lrs=grid, steps=steps, momentum=momentum, nesterov=nesterov).norm(dim=2)
        third, last = norms[steps // 2 : 3 * steps // 4].amax(0), norms[3 * steps // 4 :].amax(0)
        grows = ~((last < third) | (last == 0))
        first = int(grows.double().argmax()) if bool(grows.any()) else len(grid) - 1
        low, high = float(grid[max(0, first - 1)]), float(grid[first])
    return 0.5 * (low + high)


def noisy_descent(
    slope: _Slope,
    start: Tensor,
    *,
    lrs: Sequence[float],
    noise_variance: float,
    generator: torch.Generator,
    noise_correlation: float = 0.0,
) -> Tensor:
    r"""Where chains $x'=x-\eta_t(\nabla L+\xi_t)$ end, $\xi_t$ Gaussian of variance ``noise_variance``.

    With ``noise_correlation`` the noise has that correlation from step to step. Runaways are held at 1e6.
    """
    not_negative(noise_variance=noise_variance)
    within(0, 1, noise_correlation=noise_correlation)
    x = start.clone()
    xi, size = torch.randn(x.shape, generator=generator, dtype=x.dtype), math.sqrt(noise_variance)
    for lr in lrs:
        x = (x - lr * (slope(x) + size * xi)).clamp(-1e6, 1e6)
        fresh = torch.randn(x.shape, generator=generator, dtype=x.dtype)
        xi = noise_correlation * xi + math.sqrt(1 - noise_correlation**2) * fresh if noise_correlation else fresh
    return x


NAMED_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "linear": lambda z: z,
    "tanh": torch.tanh,
    "silu": torch.nn.functional.silu,
    "relu": torch.relu,
}
"""The activations that experiments are made with, by name."""


def two_layer_start(
    width: int, *, output: float, curvature: float, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    r"""Random u and v, (1, n), with $u\cdot v/\sqrt n$ and $(|u|^2+|v|^2)/n$ as asked.

    >>> u, v = two_layer_start(50, output=1.5, curvature=2.0, generator=torch.Generator().manual_seed(0))
    >>> round(float((u * v).sum()) / 50**0.5, 9), round(float((u**2 + v**2).mean()), 9)
    (1.5, 2.0)
    """
    not_negative(output=output)
    rows = torch.nn.functional.normalize(torch.randn(2, width, generator=generator, dtype=torch.float64), dim=1)
    total, cross = width * curvature, 2 * output * math.sqrt(width)
    if cross > total:
        raise InputError(
            f"expected 2 output / sqrt(width) below the curvature, got {cross / width:g} and {curvature:g}"
        )
    plus, minus = math.sqrt(total + cross) * rows[:1], math.sqrt(total - cross) * rows[1:]
    return (plus + minus) / 2, (plus - minus) / 2


def two_layer_curvature(input_weights: Tensor, output_weights: Tensor, *, activation: str = "linear") -> float:
    r"""The tangent kernel $|\nabla f|^2$ of $f=v\cdot\sigma(u)/\sqrt n$, by automatic differentiation."""
    own = input_weights.detach().requires_grad_(), output_weights.detach().requires_grad_()
    slopes = torch.autograd.grad(_two_layer(*own, activation).sum(), own)
    return float(sum(slope.square().sum() for slope in slopes))


def two_layer_path(
    input_weights: Tensor,
    output_weights: Tensor,
    *,
    lrs: Tensor,
    steps: int,
    activation: str = "linear",
    momentum: float = 0.0,
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    r"""Outputs (steps + 1, k) of $f=v\cdot\sigma(u)/\sqrt n$ under descent on $f^2/2$ for k step sizes, and where it ends."""
    at_least(0, steps=steps)
    real_values(lrs=lrs)
    k, rate = len(lrs), lrs.to(input_weights)[:, None]
    own = input_weights.detach().expand(k, -1).clone(), output_weights.detach().expand(k, -1).clone()
    velocity = torch.zeros_like(own[0]), torch.zeros_like(own[1])
    outputs = []
    for step in range(steps + 1):
        own = own[0].requires_grad_(), own[1].requires_grad_()
        f = _two_layer(*own, activation)
        outputs.append(f.detach())
        if step < steps:
            slopes = torch.autograd.grad(0.5 * f.square().sum(), own)
            velocity = momentum * velocity[0] + slopes[0], momentum * velocity[1] + slopes[1]
            own = (own[0] - rate * velocity[0]).detach(), (own[1] - rate * velocity[1]).detach()
    return torch.stack(outputs), (own[0].detach(), own[1].detach())


def _two_layer(u: Tensor, v: Tensor, activation: str) -> Tensor:
    return (v * named_activation(activation)(u)).sum(1) / math.sqrt(u.shape[1])


def named_activation(name: str) -> Callable[[Tensor], Tensor]:
    """The function of this name, among those that experiments know."""
    one_of(NAMED_ACTIVATIONS, activation=name)
    return NAMED_ACTIVATIONS[name]
