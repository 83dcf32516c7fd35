r"""The Hessian from differences of gradients, for models whose second backward pass cannot be had.

$Hv\approx\frac{g(w+\epsilon v)-g(w-\epsilon v)}{2\epsilon}$: two gradients a product, by whatever passes the model has (fused
attention, a function that can be differentiated once). Kinks (ReLU) within a step count as curvature, in the mean as much at any
step that crosses some: the step has to be short, and gradients are taken in double precision where the model can do that.
Elsewhere the step is the one whose product along the gradient changes least from the step before. Products at twice and half the
step tell the error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.reading import SIGMAS, Estimate
from theodolite.core.state import untouched
from theodolite.io.batches import Batch
from theodolite.measure.curvature.lanczos import extreme_eigenpairs
from theodolite.measure.curvature.operators import Loss, Operator, Point, Product, operator_of, point_of

DOUBLE, STEPS = 1e-6, (3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5)
"""Lengths of a step over that of the weights: in double precision, and those of which one is chosen in single."""


def hessian_by_differences(model: nn.Module, loss: Loss, data: Any, *, names: Sequence[str] = ()) -> ByDifferences:
    r"""$\nabla^2_\theta L$ over all the data as `hessian`, from two gradients a product.

    >>> x = torch.tensor([[1.0], [3.0]])
    >>> round(hessian_by_differences(nn.Linear(1, 1, bias=False), nn.functional.mse_loss, (x, x))(torch.ones(1)).item(), 3)
    10.0
    """
    single = point_of(model, loss, names=names)
    point = _doubled(single)
    try:
        along = _gradient_over(point, data)
        return _operator(point, data, DOUBLE)
    except RuntimeError:  # an operation that has no passes in double precision
        point, along = single, _gradient_over(single, data)
    tried = [_operator(point, data, size)(along) for size in STEPS]
    changes = [float((one - other).norm()) for one, other in pairwise(tried)]
    return _operator(point, data, STEPS[1 + changes.index(min(changes))])


def sharpness_by_differences(model: nn.Module, loss: Loss, data: Any, *, most: int = 60) -> Estimate:
    """The largest eigenvalue of the Hessian from differences of gradients, with its error.

    >>> x = torch.tensor([[1.0, 0.0], [0.0, 3.0]])
    >>> found = sharpness_by_differences(nn.Linear(2, 1, bias=False), nn.functional.mse_loss, (x, x[:, :1]))
    >>> round(found.value, 2)
    9.0
    """
    operator = hessian_by_differences(model, loss, data)
    top = extreme_eigenpairs(operator, count=1, tolerance=1e-3, most=most)
    return Estimate(top.values[0], (top.errors[0] + operator.error(top.vectors[0])) / SIGMAS)


@dataclass(frozen=True)
class ByDifferences(Operator):
    """An operator whose products are taken with some step, and its like with another one."""

    again: Callable[[float], Operator] = field(kw_only=True, repr=False)

    def error(self, vector: Tensor) -> float:
        """How far the curvature along a vector is from that at twice and at half the step."""
        unit = vector.to(self.like) / vector.norm()
        found = [float(unit @ operator(unit)) for operator in (self, self.again(0.5), self.again(2.0))]
        return max(found) - min(found)


def _operator(point: Point, data: Any, step: float) -> ByDifferences:
    # nothing is kept between products
    made = operator_of(point, data, partial(_graph, step), memory=0, sample_bytes=1.0)

    def again(times: float) -> Operator:
        return _operator(point, data, times * step)

    return ByDifferences(made.shapes, made.like, made.samples, made.kept, made.product, again=again)


def _doubled(value: Any) -> Any:
    """A point, a batch or a tensor in double precision."""
    if isinstance(value, Tensor):
        return value.double().detach().requires_grad_(value.requires_grad) if value.is_floating_point() else value
    if isinstance(value, Mapping):
        return {name: _doubled(member) for name, member in value.items()}
    if isinstance(value, Point):
        return replace(value, parameters=_doubled(value.parameters), fixed=_doubled(value.fixed))
    if isinstance(value, Batch):
        return Batch(_doubled(value.inputs), _doubled(value.keywords), _doubled(value.target))
    return tuple(map(_doubled, value)) if isinstance(value, tuple) else value


def _graph(step: float, point: Point, batch: Batch) -> tuple[Product, float]:
    length = torch.stack([p.detach().norm() for p in point.parameters.values()]).norm()

    def product(vectors: Tensor) -> Tensor:
        rows = []
        for vector in vectors:
            size = step * length / vector.norm().clamp_min(torch.finfo(vector.dtype).tiny)
            ahead, behind = (_gradient(_moved(point, vector, sign * size), batch) for sign in (1.0, -1.0))
            rows.append((ahead - behind) / (2 * size))
        return torch.stack(rows)

    return product, float(len(batch))


def _moved(point: Point, vector: Tensor, size: Tensor) -> Point:
    pieces = point.split(vector[None])
    own = zip(point.parameters.items(), pieces, strict=True)
    return replace(point, parameters={name: (p.detach() + size * v[0]).requires_grad_() for (name, p), v in own})


def _gradient(point: Point, batch: Batch) -> Tensor:
    own = list(point.parameters.values())
    batch = _doubled(batch) if own[0].dtype == torch.float64 else batch
    with torch.enable_grad():
        value = point.value(point.output(batch), batch)
        slopes = torch.autograd.grad(value, own, materialize_grads=True)
    return torch.cat([slope.reshape(-1) for slope in slopes])


def _gradient_over(point: Point, data: Any) -> Tensor:
    total, count = None, 0
    with untouched(point.model):
        for batch in point.batches(data):
            found = _gradient(point, batch) * len(batch)
            total, count = found if total is None else total + found, count + len(batch)
    assert total is not None
    return total / count if bool(total.any()) else torch.ones_like(total)
