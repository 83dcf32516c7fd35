"""The tangent kernel of a model of many outputs by random signs: a few gradients a sample, at some of their entries."""

import torch
from torch import Tensor, nn

from theodolite.core.checks import at_least
from theodolite.measure.functional import Inputs, count, plain_attention, rows, stateless


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
    at_least(1, projections=projections, most=most)
    net = stateless(model)
    own = list(net.parameters.values())
    total = sum(p.numel() for p in own)
    stride = -(-total // most)
    device = own[0].device
    generator = torch.Generator(device).manual_seed(seed)
    if device.type == "cuda":  # a pass is as long as it takes to start its kernels: all samples go through together
        with plain_attention():
            outputs = net(net.parameters, x)
            signs = _signs(projections, outputs[0].numel(), generator).to(outputs.dtype)
            found = torch.stack([_together(outputs, own, row, stride) for row in signs])
        return found.mul_(stride**0.5)
    one_by_one: list[Tensor] = []
    signs = torch.zeros(0)
    for index in range(count(x)):
        outputs = net(net.parameters, rows(x, slice(index, index + 1)))[0]
        if index == 0:
            signs = _signs(projections, outputs.numel(), generator).to(outputs.dtype)
        each = [_gradient(outputs, own, row.reshape(outputs.shape), stride) for row in signs]
        one_by_one.append(torch.stack(each))
    return torch.stack(one_by_one, dim=1).mul_(stride**0.5)


def _signs(projections: int, outputs: int, generator: torch.Generator) -> Tensor:
    drawn = torch.randint(0, 2, (projections, outputs), generator=generator, dtype=torch.int8, device=generator.device)
    return 2 * drawn - 1


def _gradient(outputs: Tensor, own: list[Tensor], direction: Tensor, stride: int) -> Tensor:
    """The gradient of the outputs' product with a direction, at every ``stride``-th entry of a parameter."""
    slopes = torch.autograd.grad(outputs, own, direction, retain_graph=True, allow_unused=True, materialize_grads=True)
    return torch.cat([slope.reshape(-1)[::stride] for slope in slopes]).float()


def _together(outputs: Tensor, own: list[Tensor], signs: Tensor, stride: int) -> Tensor:
    """One such gradient a sample, (samples, entries): in one pass where the model's operations can be vectorized."""
    # the signs for one sample, 0 for others
    apart = torch.diag_embed(signs.expand(len(outputs), -1).mT).permute(1, 2, 0)
    directions = apart.reshape(len(outputs), *outputs.shape)
    try:
        slopes = torch.autograd.grad(
            outputs,
            own,
            directions,
            retain_graph=True,
            allow_unused=True,
            materialize_grads=True,
            is_grads_batched=True,
        )
    except RuntimeError:
        return torch.stack([_gradient(outputs, own, direction, stride) for direction in directions])
    return torch.cat([slope.flatten(1)[:, ::stride] for slope in slopes], dim=1).float()
