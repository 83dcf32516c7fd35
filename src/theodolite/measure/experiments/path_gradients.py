"""Gradients of many random networks with respect to one input: with their weights, without any, and path by path."""

import math
from collections.abc import Sequence
from itertools import product

import torch
from torch import Tensor

from theodolite.core.checks import InputError, at_least
from theodolite.measure.experiments.ensembles import Ensemble, _drawn_layers, safe_cholesky


def drawn_gradients(
    ensemble: Ensemble, inputs: Tensor, *, nets: int, generator: torch.Generator
) -> tuple[Tensor, list[Tensor]]:
    r"""$\nabla_xz$ of one output of ``nets`` networks at B inputs, (nets, B, $n_0$), and the preactivations, by their weights."""
    at_least(1, nets=nets)
    x = inputs.expand(nets, *inputs.shape).clone().requires_grad_()
    _, found = _drawn_layers(ensemble, x, generator=generator)
    (gradient,) = torch.autograd.grad(found[-1].sum(), x)
    return gradient, [z.detach() for z in found]


def conditional_gradients(
    ensemble: Ensemble, inputs: Tensor, *, nets: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    r"""The same at B inputs, (nets, B, $n_0$), and the tangent kernels (nets, B, B), without drawing a matrix: n times
    cheaper, and exact.

    Forwards a layer is Gaussian given the one in front. Backwards, of a matrix W only what it did to the B signals is known:
    with an orthonormal basis Q of these, $WQ^\top=\sqrt{C_w/n}\,N^\top$ with the Gaussians N that were drawn, so that
    $VW=\sqrt{C_w/n}\,(VN^\top Q+RG(1-Q^\top Q))$ with fresh Gaussians G and $RR^\top=VV^\top$. Nothing is assumed of gates.
    """
    at_least(1, nets=nets)
    if ensemble.entries != "gauss" or ensemble.mean or ensemble.copies != 1 or ensemble.with_skips:
        raise InputError("expected plain Gaussian weights, got others; draw the weights with drawn_gradients instead")

    def drawn(rows: int, columns: int) -> Tensor:
        return torch.randn(nets, rows, columns, generator=generator).to(inputs.dtype)

    sent, roots, noises, slopes = [inputs.expand(nets, *inputs.shape)], [], [], []
    for width in (*ensemble.widths, 1):
        a = sent[-1]
        roots.append(safe_cholesky(a @ a.mT))
        noises.append(drawn(len(inputs), width))
        free = math.sqrt(ensemble.weight_variance / a.shape[2]) * roots[-1] @ noises[-1]
        z = (free + math.sqrt(ensemble.bias_variance) * drawn(1, width)).requires_grad_()
        out = ensemble.activation(z)
        slopes.append(torch.autograd.grad(out.sum(), z)[0])
        sent.append(out.detach())
    kernels = torch.zeros(nets, len(inputs), len(inputs), dtype=inputs.dtype)
    v = torch.ones(nets, len(inputs), 1, dtype=inputs.dtype)
    for layer in reversed(range(len(noises))):
        a, root, fan_in = sent[layer], roots[layer], sent[layer].shape[2]
        back = v @ v.mT
        kernels += back * (root @ root.mT + 1)  # of the weights and of the biases
        used_up = root.diagonal(dim1=1, dim2=2) == 0
        basis = torch.linalg.solve_triangular(root + torch.diag_embed(used_up.to(a.dtype)), a, upper=False)
        basis = basis * ~used_up[..., None]
        g = drawn(len(inputs), fan_in)
        across = g - (g @ basis.mT) @ basis
        v = (v @ noises[layer].mT) @ basis + safe_cholesky(back) @ across
        v = v * math.sqrt(ensemble.weight_variance / fan_in)
        if layer:
            v = v * slopes[layer - 1]
    return v, kernels


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
