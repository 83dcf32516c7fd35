"""The first step of an optimizer on many random networks at once: what it changes in each layer."""

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from theodolite.core.checks import InputError

SAMPLES, INPUTS = 4, 3
LAYERS = ("input", "hidden", "output")


def _data() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(SAMPLES, INPUTS, generator=generator)
    return x / math.sqrt(INPUTS), 4 * torch.randn(SAMPLES, generator=generator)  # far from what networks begin with


def _stepped(gradient: Tensor, rule: str) -> Tensor:
    """What a rule makes of gradients: themselves, their signs, or orthogonal matrices with their singular vectors."""
    if rule == "sgd":
        return gradient
    if rule == "adam":
        return gradient.sign()
    if rule != "orthogonal":
        raise InputError(f"expected rule to be sgd, adam or orthogonal, got {rule!r}")
    u, s, v = torch.linalg.svd(gradient, full_matrices=False)
    return (u * (s > 1e-5 * s[..., :1])[..., None, :]) @ v  # (nets, in, out)


def first_step(
    width: int, *, rule: str, scales: Mapping[str, Sequence[float]], nets: int, generator: torch.Generator
) -> dict[str, tuple[Tensor, Tensor]]:
    """For each layer of networks 3-n-n-1 of tanh: the change of its outputs by its own first step, and the step itself.

    ``scales`` are exponents of the width, one a layer: ``multiplier`` of the product, ``initial`` of the weights, ``lr`` of the
    step. Changes are root mean squares (nets,), steps are (nets, in, out) and multiplied as weights are.
    """
    x, y = _data()
    sizes = (INPUTS, width, width, 1)
    n = float(width)
    weights = []
    for k in range(3):
        draw = torch.randn(nets, sizes[k], sizes[k + 1], generator=generator)
        weights.append((draw * n ** scales["initial"][k]).requires_grad_())
    times = [n**power for power in scales["multiplier"]]
    first = torch.tanh(times[0] * (x @ weights[0]))
    second = torch.tanh(times[1] * (first @ weights[1]))
    out = (times[2] * (second @ weights[2])).squeeze(-1)
    gradients = torch.autograd.grad((out - y).square().mean(1).sum(), weights)
    found = {}
    for k, given in enumerate((x.expand(nets, -1, -1), first.detach(), second.detach())):
        move = times[k] * n ** scales["lr"][k] * _stepped(gradients[k], rule)
        found[LAYERS[k]] = ((given @ move).square().mean((1, 2)).sqrt().double(), move)
    return found


def residual_step(
    depth: int, *, rule: str, power: float, lr_power: float, nets: int, generator: torch.Generator, width: int = 32
) -> tuple[Tensor, Tensor]:
    r"""Streams $x_{l+1}=x_l+L^{-\alpha}W_l\tanh x_l$: how far they go from their start, and how far one step moves their end.

    ``power`` is $\alpha$; step sizes are $L$ to ``lr_power`` and so small that the move is linear in them. Root mean squares
    (nets,).
    """
    x, y = _data()
    start = (x @ torch.randn(INPUTS, width, generator=torch.Generator().manual_seed(8))).expand(nets, -1, -1)
    scale = depth**-power
    weights = (torch.randn(depth, nets, width, width, generator=generator) / math.sqrt(width)).requires_grad_()

    def end(weights: Tensor) -> Tensor:
        z = start
        for w in weights:
            z = z + scale * (torch.tanh(z) @ w)
        return z

    last = end(weights)
    (gradient,) = torch.autograd.grad((last.mean(2) - y).square().mean(1).sum(), [weights])
    with torch.no_grad():
        move = end(weights - 1e-4 * depth**lr_power * _stepped(gradient, rule)) - last
        gone = last - start
    return tuple(v.square().mean((1, 2)).sqrt().double() for v in (gone, move))  # type: ignore[return-value]


def share_left(lr: float, decay: float, *, steps: int, size: int, coupled: bool, generator: torch.Generator) -> Tensor:
    """What is left of weights' first values when AdamW (Adam where ``coupled``) steps on gradients that are noise."""
    weight = torch.nn.Parameter(torch.randn(size, generator=generator))
    first = weight.detach().clone()
    kind = torch.optim.Adam if coupled else torch.optim.AdamW
    optimizer = kind([weight], lr=lr, weight_decay=decay)
    for _ in range(steps):
        weight.grad = torch.randn(size, generator=generator)
        optimizer.step()
    return (weight.detach() @ first / (first @ first)).double()
