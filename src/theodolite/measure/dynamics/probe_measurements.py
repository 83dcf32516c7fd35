"""What a look at a training model costs little to know: loss and gradient on a probe, travel, and what the kernel can tell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.checks import InputError, at_least, finite_values, real_values
from theodolite.core.model_wrappers import copied_model
from theodolite.core.reading import Estimate
from theodolite.core.state import untouched
from theodolite.measure.curvature import point_of
from theodolite.measure.curvature.operators import Loss
from theodolite.measure.functional import Inputs, promoted
from theodolite.measure.kernels import empirical_ntk

SQUARED = 1e-12, 1e18
"""Lengths whose squares, and those of their smaller entries, are numbers of single precision."""


@dataclass(frozen=True)
class Slope:
    """The mean loss over all batches and its gradient, one tensor a parameter; either may fail to be finite."""

    loss: float
    parts: tuple[Tensor, ...] = field(repr=False)

    @property
    def gradient(self) -> Tensor:
        """The gradient as one vector (P,)."""
        return torch.cat([part.reshape(-1) for part in self.parts])

    @cached_property
    def norm(self) -> float:
        """The length of the gradient."""
        return _joint_length(self.parts)


def probe_slope(model: nn.Module, loss: Loss, data: Any) -> Slope:
    """Loss and gradient over all the data in evaluation mode; ``loss`` averages over its batch.

    >>> x = torch.tensor([[1.0], [3.0]])
    >>> model = nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.zeros_(model.weight)
    >>> found = probe_slope(model, nn.functional.mse_loss, (x, x))
    >>> found.loss, found.gradient.tolist()
    (5.0, [-10.0])
    """
    point = point_of(model, loss)
    own = list(point.parameters.values())
    total, samples = 0.0, 0
    sums = [torch.zeros_like(p) for p in own]
    with untouched(model), torch.enable_grad():
        for batch in point.batches(data):
            value = loss(point.output(batch), batch.target)
            slopes = torch.autograd.grad(value, own, materialize_grads=True)
            total += float(value.detach()) * len(batch)
            for held, slope in zip(sums, slopes, strict=True):
                held.add_(slope, alpha=len(batch))
            samples += len(batch)
    return Slope(total / samples, tuple(torch._foreach_div(sums, samples)))


def _joint_length(parts: Sequence[Tensor]) -> float:
    """The length of a vector that is given in parts, by few calls; in double precision where squares leave the single one.

    >>> _joint_length([torch.tensor([3.0]), torch.tensor([[0.0, 4.0]])])
    5.0
    >>> round(_joint_length([torch.tensor([3e30]), torch.tensor([4e30])]) / 1e30, 5)
    5.0
    """
    if not parts:
        return 0.0
    own = [promoted(part) for part in parts]
    length = _norm(torch._foreach_norm(own))
    if not SQUARED[0] < length < SQUARED[1]:
        length = _norm([torch.linalg.vector_norm(part, dtype=torch.float64) for part in own])
    return length


def _norm(lengths: Sequence[Tensor]) -> float:
    return float(torch.stack([length.to(lengths[0].device) for length in lengths]).double().norm())


def weight_travel(model: nn.Module, origin: Mapping[str, Tensor]) -> float:
    r"""$|\theta-\theta_0|/|\theta_0|$ over the trainable parameters: from 0 infinite, and NaN where they stayed there.

    >>> model = nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.constant_(model.weight, 3.0)
    >>> weight_travel(model, {"weight": torch.tensor([[2.0]])})
    0.5
    """
    own, starts = [], []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and parameter.is_floating_point():
            if name not in origin or origin[name].shape != parameter.shape:
                raise InputError(
                    f"expected the start of {name!r}, {tuple(parameter.shape)}, got another model's; pass this one's"
                )
            own.append(promoted(parameter.detach()))
            starts.append(promoted(origin[name].to(parameter.device)))
    moved, size = (_joint_length(torch._foreach_sub(own, starts)), _joint_length(starts)) if own else (0.0, 0.0)
    return moved / size if size > 0 else float("inf" if moved > 0 else "nan")


def thinned_weights(model: nn.Module, *, most: int = 1 << 20, state: Mapping[str, Tensor] | None = None) -> Tensor:
    """Some entries of the trainable parameters, evenly spread, on the model's device; of another ``state`` where it is told.

    >>> thinned_weights(nn.Linear(3, 1, bias=False), most=2, state={"weight": torch.tensor([[1.0, 2.0, 3.0]])}).tolist()
    [1.0, 3.0]
    """
    at_least(1, most=most)
    own = {name: p for name, p in model.named_parameters() if p.requires_grad and p.is_floating_point()}
    stride = max(1, -(-sum(p.numel() for p in own.values()) // most))
    values = own if state is None else {name: state[name] for name in own}
    parts = [promoted(v.detach()).reshape(-1)[::stride].to(own[name].device) for name, v in values.items()]
    return torch.cat(parts)


def thinned_travel(now: Tensor, origin: Tensor) -> Estimate:
    r"""$|\theta-\theta_0|/|\theta_0|$ of some entries, with its standard error: from 0 infinite, and NaN where they stayed.

    >>> thinned_travel(torch.tensor([3.0, 3.0]), torch.tensor([2.0, 2.0])).value
    0.5
    >>> thinned_travel(torch.ones(2), torch.zeros(2))
    Estimate(value=inf, stderr=0.0, scale=None)
    """
    real_values(now=now, origin=origin)
    moves, sizes = (now - origin).double().square(), origin.double().square()
    value = float((moves.sum() / sizes.sum()).sqrt())
    if not 0 < value < torch.inf:
        return Estimate(value, 0.0)
    spread = (moves - value**2 * sizes).std() / sizes.mean() / len(moves) ** 0.5
    return Estimate(value, float(spread) / (2 * value))


def trainable_vector(model: nn.Module) -> Tensor:
    """The trainable parameters as one vector, in the order of derivatives."""
    own = [p for p in model.parameters() if p.requires_grad and p.is_floating_point()]
    return torch.cat([promoted(p.detach()).reshape(-1) for p in own])


def subspace_share(gradient: Tensor, vectors: Tensor) -> float:
    """The share of a vector's squared length that lies in the span of some vectors (rows).

    >>> subspace_share(torch.tensor([3.0, 4.0]), torch.tensor([[2.0, 0.0]]))
    0.36
    """
    real_values(gradient=gradient, vectors=vectors)
    finite_values(gradient=gradient, vectors=vectors)
    rows, g = vectors.double(), gradient.double()
    if rows.ndim != 2 or g.ndim != 1 or rows.shape[1] != len(g):
        raise InputError(f"expected a vector (P,) and vectors (k, P), got {tuple(g.shape)} and {tuple(rows.shape)}")
    if not g.any():
        raise InputError("expected a gradient that is not 0, got one of norm 0; it lies in no direction")
    g = g / g.abs().max()
    lengths = rows.norm(dim=1)
    rows = rows[lengths > 0] / lengths[lengths > 0, None]
    if not len(rows):
        return 0.0
    _, sizes, directions = torch.linalg.svd(rows, full_matrices=False)  # of dependent vectors, only the span counts
    span = directions[sizes > max(rows.shape) * torch.finfo(rows.dtype).eps * sizes[0]]
    return min(1.0, float((span @ g).square().sum() / g.square().sum()))


def at_state(model: nn.Module, state: Mapping[str, Tensor]) -> nn.Module:
    """A copy of the model with other weights and buffers."""
    other = copied_model(model)
    other.load_state_dict(dict(state))
    return other


def _telling_norm(kernel: Tensor) -> float:
    r"""$\|PKP\|_F$ with the mean over samples taken out: what of a kernel tells samples apart.

    0 where every unit is dead, though an output's bias may still move all answers alike.

    >>> _telling_norm(torch.ones(3, 3))
    0.0
    """
    K = kernel.double()
    return float((K - K.mean(0) - K.mean(1, keepdim=True) + K.mean()).norm())


def telling_kernel(model: nn.Module, x: Inputs, kernel: Tensor) -> float:
    """`_telling_norm` of a kernel; of a single sample, which is not told from any, the kernel of all but the biases.

    >>> model = nn.Sequential(nn.Linear(1, 1), nn.ReLU(), nn.Linear(1, 1))
    >>> _ = nn.init.constant_(model[0].bias, -9.0)
    >>> telling_kernel(model, torch.ones(1, 1), torch.ones(1, 1))  # the unit is off: only the last bias moves the output
    0.0
    """
    real_values(x=x, kernel=kernel)
    if len(kernel) > 1:
        return _telling_norm(kernel)
    biases = {name: 0.0 for name, _ in model.named_parameters() if "bias" in name.rsplit(".", 1)[-1]}
    return float(empirical_ntk(model, x, rates=biases).double().sum())
