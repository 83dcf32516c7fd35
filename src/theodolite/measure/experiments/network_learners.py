"""Fully connected networks trained on small problems, many side by side, with any elementwise optimizer."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.checks import at_least, each_at_least, one_of
from theodolite.measure.experiments.descent import named_activation
from theodolite.measure.experiments.sparse_learners import Optimizer

GAINS = {"tanh": 1.0, "relu": 2.0, "linear": 1.0}
Slopes = Callable[[list[Tensor], list[Tensor]], list[Tensor]]
"""What is stepped along, from weights and gradients."""


def gaussian_start(
    count: int, sizes: Sequence[int], *, activation: str, generator: torch.Generator, rotation: Tensor | None = None
) -> list[Tensor]:
    """Weights (count, in, out) and zero biases (count, 1, out) of networks with a Gaussian, so rotation-invariant, start."""
    at_least(1, count=count)
    each_at_least(1, sizes=sizes)
    one_of(GAINS, activation=activation)
    made = []
    for place, (inputs, outputs) in enumerate(pairwise(sizes)):
        weight = torch.randn(count, inputs, outputs, generator=generator, dtype=torch.float64)
        weight *= (GAINS[activation] / inputs) ** 0.5
        if rotation is not None and not place:
            weight = rotation @ weight
        made += [weight, torch.zeros(count, 1, outputs, dtype=torch.float64)]
    return made


def network_outputs(own: Sequence[Tensor], x: Tensor, activation: str) -> Tensor:
    """Outputs (count, n) of all networks at inputs (count, n, d)."""
    for place in range(0, len(own), 2):
        x = torch.baddbmm(own[place + 1], x, own[place])
        x = named_activation(activation)(x) if place + 2 < len(own) else x
    return x[..., 0]


def trained_networks(
    start: Sequence[Tensor],
    x: Tensor,
    y: Tensor,
    *,
    activation: str,
    optimizer: Optimizer,
    steps: int,
    gradient_map: Slopes | None = None,
) -> list[Tensor]:
    """Weights after full-batch steps on half the mean square of each network, from (count, k, d) and (count, k)."""
    at_least(0, steps=steps)
    own = [nn.Parameter(part.clone()) for part in start]
    stepping = optimizer(own)

    def closure() -> Any:
        loss = 0.5 * (network_outputs(own, x, activation) - y).square().mean(1).sum()
        gradients = list(torch.autograd.grad(loss, own))
        for p, g in zip(own, gradients if gradient_map is None else gradient_map(list(own), gradients), strict=True):
            p.grad = g
        return loss.detach()

    for _ in range(steps):
        stepping.step(closure)
    return [p.detach() for p in own]
