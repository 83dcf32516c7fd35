"""Gradients of many random networks with respect to one input: with their weights, without any, and path by path."""

import math
from collections.abc import Sequence
from itertools import product

import torch
from torch import Tensor

from theodolite.core.checks import InputError, at_least
from theodolite.measure.experiments.ensembles import Ensemble, random_entries


def drawn_gradients(
    ensemble: Ensemble, inputs: Tensor, *, nets: int, generator: torch.Generator
) -> tuple[Tensor, list[Tensor]]:
    r"""$\nabla_xz$ of one output of ``nets`` networks at B inputs, (nets, B, $n_0$), and the preactivations, by their weights."""
    at_least(1, nets=nets)
    x = inputs.expand(nets, *inputs.shape).clone().requires_grad_()
    signal, hidden = x, []
    for width in (*ensemble.widths, 1):
        fan_in, copies = signal.shape[-1], ensemble.copies if width > 1 else 1
        size = (nets, fan_in, max(1, width // copies))
        weights = random_entries(ensemble.entries, size, like=inputs, generator=generator) + ensemble.mean
        bias = torch.randn(nets, 1, size[-1], generator=generator, dtype=inputs.dtype)
        z = signal @ (weights * math.sqrt(ensemble.weight_variance / fan_in)) + bias * math.sqrt(ensemble.bias_variance)
        z = z.repeat(1, 1, copies) if copies > 1 else z
        hidden.append(z.detach())
        signal = ensemble.activation(z)
    (gradient,) = torch.autograd.grad(z.sum(), x)
    return gradient, hidden


def conditional_gradients(ensemble: Ensemble, inputs: Tensor, *, nets: int, generator: torch.Generator) -> Tensor:
    r"""The same at one input ($n_0$), (nets, $n_0$), without drawing a matrix: n times cheaper, and exact.

    Forwards a layer is Gaussian given the one in front. Backwards, of a matrix W only $Wa=z$ is known, so that
    $v^\top W=\frac{v\cdot z}{|a|^2}a^\top+\sqrt{C_w/n}\,|v|\,g^\top(1-\frac{aa^\top}{|a|^2})$ with a fresh Gaussian g. Nothing
    is assumed of gates.
    """
    at_least(1, nets=nets)
    if ensemble.entries != "gauss" or ensemble.mean or ensemble.copies != 1 or ensemble.with_skips:
        raise InputError("expected plain Gaussian weights, got others; draw the weights with drawn_gradients instead")
    sent, seen, slopes = [inputs.expand(nets, -1)], [], []
    for width in (*ensemble.widths, 1):
        a = sent[-1]
        noise = torch.randn(nets, width, generator=generator, dtype=inputs.dtype)
        power = a.square().sum(1, keepdim=True)
        free = noise * (ensemble.weight_variance / a.shape[1] * power).sqrt()  # W a, without the bias
        bias = torch.randn(nets, width, generator=generator, dtype=inputs.dtype) * math.sqrt(ensemble.bias_variance)
        z = (free + bias).requires_grad_()
        out = ensemble.activation(z)
        slopes.append(torch.autograd.grad(out.sum(), z)[0])
        seen.append(free)
        sent.append(out.detach())
    v = torch.ones(nets, 1, dtype=inputs.dtype)
    for layer in reversed(range(len(seen))):
        a, fan_in = sent[layer], sent[layer].shape[1]
        power = a.square().sum(1, keepdim=True).clamp(min=torch.finfo(a.dtype).tiny)
        g = torch.randn(nets, fan_in, generator=generator, dtype=inputs.dtype)
        across = g - a * (g * a).sum(1, keepdim=True) / power
        scale = math.sqrt(ensemble.weight_variance / fan_in) * v.norm(dim=1, keepdim=True)
        v = a * ((v * seen[layer]).sum(1, keepdim=True) / power) + scale * across
        if layer:
            v = v * slopes[layer - 1]
    return v


def path_sum(weights: Sequence[Tensor], gates: Sequence[Tensor], x: Tensor) -> float:
    r"""$\sum_{\gamma}x_{\gamma_0}\prod_lw^{(l)}_\gamma\xi^{(l)}_\gamma$ over all paths from an input to the output, one by one.

    ``weights`` are (fan out, fan in); ``gates`` are 0 or 1 for each hidden unit.

    >>> path_sum([torch.tensor([[1.0], [2.0]]), torch.tensor([[3.0, 4.0]])], [torch.tensor([1.0, 0.0])], torch.ones(1))
    3.0
    """
    if len(x) != weights[0].shape[1]:
        raise InputError(f"expected {weights[0].shape[1]} inputs, as the first weights have columns, got {len(x)}")
    total = 0.0
    for path in product(*(range(w.shape[1]) for w in weights)):
        worth = float(x[path[0]])
        for layer, w in enumerate(weights):
            last = layer == len(weights) - 1
            to = 0 if last else path[layer + 1]
            worth *= float(w[to, path[layer]]) * (1.0 if last else float(gates[layer][to]))
        total += worth
    return total
