"""The tangent kernel of a model of many outputs by random signs: a few gradients a sample, at some of their entries."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from theodolite.measure.functional import Inputs, count, rows, stateless


def projected_jacobians(
    model: nn.Module, x: Inputs, *, projections: int = 4, most: int = 1 << 20, seed: int = 0
) -> Tensor:
    r"""Rows $\nabla_\theta\sum_o s_of_o(x_i)$ for random signs s, at evenly spread entries, (projections, samples, entries).

    The mean over projections of the rows' products is, in the mean over signs, the trace kernel of these entries:
    $E_s\langle s^TJ_i,s^TJ_j\rangle=\mathrm{tr}(J_iJ_j^T)$. The signs are the same at each call with the same ``seed``; entries
    beyond ``most`` are thinned and weighted. Source: hutchinson1990.

    >>> model = nn.Linear(2, 3, bias=False)
    >>> J = projected_jacobians(model, torch.tensor([[1.0, 2.0]]), projections=2)
    >>> (J @ J.mT).mean(0).item()  # tr(x.x' I_3), without error: every row of the Jacobian is x
    15.0
    """
    net = stateless(model)
    own = list(net.parameters.values())
    total = sum(p.numel() for p in own)
    stride = -(-total // most)
    device = own[0].device
    generator = torch.Generator(device).manual_seed(seed)
    found: list[list[Tensor]] = []
    for index in range(count(x)):
        outputs = net(net.parameters, rows(x, slice(index, index + 1)))[0]
        found.append([])
        for place in range(projections):
            if index == 0 and place == 0:
                size = (projections, outputs.numel())
                signs = 2 * torch.randint(0, 2, size, generator=generator, dtype=torch.int8, device=device) - 1
            seen = (outputs * signs[place].to(outputs.dtype)).sum()
            slopes = torch.autograd.grad(
                seen, own, retain_graph=place + 1 < projections, allow_unused=True, materialize_grads=True
            )
            kept = [slope.reshape(-1)[::stride] for slope in slopes]
            found[-1].append(torch.cat(kept).float() * stride**0.5)
    return torch.stack([torch.stack(sample) for sample in found]).transpose(0, 1).contiguous()
