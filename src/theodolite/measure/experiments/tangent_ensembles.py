"""Tangent kernels of many random networks at once, and many networks trained at once."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from theodolite.core.checks import at_least, not_negative
from theodolite.measure.experiments.ensembles import Ensemble, _drawn_layers

Forward = Callable[[Sequence[Tensor]], Tensor]


def tangent_kernels(
    ensemble: Ensemble,
    inputs: Tensor,
    *,
    nets: int,
    weight_rate: float,
    bias_rate: float = 0.0,
    generator: torch.Generator,
) -> Tensor:
    r"""$\Theta$ of each network on B inputs, split by what it comes from: (nets, layers, 2, B, B).

    Rates are ``weight_rate / fan_in`` and ``bias_rate``; the axis of two holds the share of weights and that of biases.
    One output. Weights are drawn, so the widths are exact; ``copies`` of the ensemble repeats units.

    >>> one = Ensemble(activation=torch.relu, widths=(), weight_variance=2.0)
    >>> kernel = tangent_kernels(one, torch.eye(2), nets=1, weight_rate=2.0, generator=torch.Generator())
    >>> kernel.sum((1, 2)).tolist()
    [[[1.0, 0.0], [0.0, 1.0]]]
    """
    at_least(1, nets=nets)
    not_negative(weight_rate=weight_rate, bias_rate=bias_rate)
    fed, found = _drawn_layers(ensemble, inputs.expand(nets, *inputs.shape).requires_grad_(), generator=generator)
    backward = torch.autograd.grad(found[-1].sum(), found)
    parts = []
    for a, g in zip((signal.detach() for signal in fed), backward, strict=True):
        gram = g @ g.mT
        parts.append(torch.stack([weight_rate / a.shape[-1] * (a @ a.mT) * gram, bias_rate * gram], 1))
    return torch.stack(parts, 1).detach()


def descended(
    forward: Forward, parameters: Sequence[Tensor], targets: Tensor, *, rates: Sequence[float], steps: int
) -> list[Tensor]:
    r"""Parameters after full-batch descent on $\frac{1}{2m}\sum_\alpha(z_\alpha-y_\alpha)^2$ of each network by itself.

    ``forward(parameters)`` gives (nets, m); ``rates`` holds one step size for each parameter tensor.
    """
    at_least(0, steps=steps)
    now = [p.detach().clone() for p in parameters]
    samples = targets.shape[-1]
    for _ in range(steps):
        leaves = [p.requires_grad_() for p in now]
        loss = 0.5 * (forward(leaves) - targets).square().sum() / samples
        gradients = torch.autograd.grad(loss, leaves)
        now = [p.detach() - rate * g for p, rate, g in zip(leaves, rates, gradients, strict=True)]
    return now


def linearly_descended(
    forward: Forward, parameters: Sequence[Tensor], targets: Tensor, *, rates: Sequence[float], steps: int
) -> Tensor:
    r"""Outputs (nets, m) after the same descent of the networks' linearization at ``parameters``.

    By the kernels $\Theta=\sum\eta J J^\top$ on the batch: $z'=z-\frac1m\Theta(z-y)$, exactly.
    """
    at_least(0, steps=steps)
    kernel, start = batch_kernels(forward, parameters, rates=rates)
    rest = start - targets
    for _ in range(steps):
        rest = rest - torch.einsum("nab,nb->na", kernel, rest) / targets.shape[-1]
    return rest + targets


def batch_kernels(forward: Forward, parameters: Sequence[Tensor], *, rates: Sequence[float]) -> tuple[Tensor, Tensor]:
    r"""$\Theta=\sum_\mu\eta_\mu\partial_\mu z_\alpha\partial_\mu z_\beta$ of each network (nets, m, m), and outputs (nets, m)."""
    leaves = [p.detach().clone().requires_grad_() for p in parameters]
    z = forward(leaves)
    kernel = z.new_zeros(z.shape[0], z.shape[1], z.shape[1])
    rows = [torch.autograd.grad(z[:, i].sum(), leaves, retain_graph=True) for i in range(z.shape[1])]
    for place, rate in enumerate(rates):
        J = torch.stack([row[place].flatten(1) for row in rows], 1)
        kernel += rate * (J @ J.mT)
    return kernel, z.detach()
