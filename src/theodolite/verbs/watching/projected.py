"""The drift of the tangent kernel of a model of many outputs, by random projections of them, with its error."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.reading import Reading
from theodolite.instruments._common.drift import drift_reading
from theodolite.measure import rows
from theodolite.measure.dynamics import at_state, thinned_weights, weight_travel
from theodolite.measure.kernels import kernel_drift, projected_jacobians
from theodolite.verbs.watching.answers import GONE, answers_alike
from theodolite.verbs.watching.look_context import LARGE, Carried, LookContext

SAMPLES, PROJECTIONS, FEWER = 4, 4, 2
"""Samples and projections of outputs: sixteen gradients a look, eight of a large model."""


def projected_drift(context: LookContext, x: Any) -> Iterator[Reading]:
    """How far the kernel moved; the error is what two halves of the projections differ by."""
    model, carried = context.subject.model, context.carried
    assert model is not None
    few = rows(x, slice(0, SAMPLES))
    now = _kernels(model, few)
    if carried.projected is None:
        carried.projected = now
        if _has_moved(model, carried):
            carried.projected = _kernels(at_state(model, carried.origin), few)
    start = carried.projected
    reading = drift_reading(now.mean(0), start.mean(0))
    halves = [kernel_drift(start[part].mean(0), now[part].mean(0)) for part in (slice(0, None, 2), slice(1, None, 2))]
    at_start = float(_telling(start.mean(0)))
    alive = float(_telling(now.mean(0))) / at_start if at_start > 0 else math.nan
    if alive <= GONE and not answers_alike(context.subject):
        alive = math.nan  # these few samples are not told apart, others are
    context.facts |= {"drift": reading.measured, "alive": alive}
    yield replace(
        reading,
        stderr=abs(halves[0] - halves[1]) / 2,
        where=f"relative, Frobenius; {len(now)} random projections of the outputs, {len(now[0])} samples",
    )


def _has_moved(model: nn.Module, carried: Carried) -> bool:
    """Whether the weights are others than at the start; of a large model by those entries of them that are at hand."""
    if carried.thinned is None:
        return weight_travel(model, carried.origin) > 0
    return not torch.equal(thinned_weights(model), carried.thinned)


def _kernels(model: Any, x: Any) -> Tensor:
    """One kernel a projection."""
    large = sum(p.numel() for p in model.parameters()) >= LARGE
    J = projected_jacobians(model, x, projections=FEWER if large else PROJECTIONS)
    return torch.stack([rows @ rows.mT for rows in map(Tensor.double, J)]).cpu()  # not all in double precision at once


def _telling(kernel: Tensor) -> Tensor:
    K = kernel
    centered: Tensor = K - K.mean(0) - K.mean(1, keepdim=True) + K.mean()
    return centered.square().sum().sqrt()
