"""The tangent kernel at a look: how far it has come from the start, and whether it still tells samples apart."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn

from theodolite.core.checks import InputError
from theodolite.core.reading import Band, Reading
from theodolite.instruments._common.drift import drift_reading
from theodolite.instruments._common.samples import spread_samples
from theodolite.measure import first_tensor, placed
from theodolite.measure.dynamics import at_state, telling_kernel, weight_travel
from theodolite.measure.kernels import empirical_ntk
from theodolite.verbs.watching.answers import GONE, answers_alike, unlike_samples
from theodolite.verbs.watching.look_context import LARGE, LookContext
from theodolite.verbs.watching.projected import projected_drift

POINTS, OUTPUTS = 8, 128
"""Samples of the probe for the tangent kernel, and outputs a sample beyond which it is too dear, as it is in a large model."""

ALIVE = "tangent kernel that separates samples, relative to the start"


def kernel_readings(context: LookContext) -> Iterator[Reading]:
    """How far the kernel moved, and what is left of it; of many outputs by projections of them."""
    model, carried = context.subject.model, context.carried
    assert model is not None
    x = _samples(context, model)
    if x is None:
        return
    if sum(p.numel() for p in model.parameters()) >= LARGE or _has_many_outputs(model, x):
        yield from projected_drift(context, x)
        return
    now = empirical_ntk(model, x).double().cpu()
    if not bool(now.isfinite().all()):
        if carried.kernel is not None and answers_alike(context.subject):  # it overflowed, and nothing is left of it
            context.facts["alive"] = 0.0
            yield _alive(0.0, len(now))
        raise InputError("expected a finite tangent kernel, got NaN or infinity in it; the weights are too large")
    telling = telling_kernel(model, x, now)
    if carried.kernel is None:
        carried.kernel, carried.telling = now, telling
        if weight_travel(model, carried.origin) > 0:
            first = at_state(model, carried.origin)
            carried.kernel = empirical_ntk(first, x).double().cpu()
            carried.telling = telling_kernel(first, x, carried.kernel)
    reading = drift_reading(now, carried.kernel)
    alive = _share_left(context, x, telling, single=len(now) == 1)
    context.facts |= {"drift": reading.measured, "alive": alive}
    yield reading
    if alive == alive:
        yield _alive(alive, len(now))


def _has_many_outputs(model: nn.Module, x: Any) -> bool:
    with torch.no_grad():
        outputs = first_tensor(model(**x) if isinstance(x, Mapping) else model(*(x if isinstance(x, tuple) else (x,))))
    return outputs[0].numel() > OUTPUTS


def _samples(context: LookContext, model: nn.Module) -> Any:
    """Some samples of the probe, as the model takes them; None where it holds none that can be taken apart."""
    samples = spread_samples(context.subject, POINTS)
    if samples is not None:
        return placed(samples.x, next(model.parameters()))
    batch = next(context.subject.batches())  # a single sample, or batches that are not plain tensors
    if not batch.inputs or len(batch) > 1:
        return None
    x: Any = batch.inputs if len(batch.inputs) > 1 else batch.inputs[0]
    return placed(x, next(model.parameters()))


def _share_left(context: LookContext, x: Any, telling: float, *, single: bool) -> float:
    """What of the kernel tells samples apart, over that at the start.

    Few samples may all be off while others are not: where nothing is left on them, the answers to the whole probe decide. Where
    there was nothing at the start, the samples are the same, or the network is dead from the start.
    """
    start, model = context.carried.telling, context.subject.model
    assert model is not None
    if start > 0 and telling > GONE * start:
        return telling / start
    alike = single or answers_alike(context.subject)
    if not start > 0:
        return 0.0 if alike and not _weights_move(model, x) else math.nan
    if alike:
        return telling / start
    others = placed(unlike_samples(context.subject, POINTS), next(model.parameters()))
    return telling_kernel(model, others, empirical_ntk(model, others).double().cpu()) / start


def _weights_move(model: nn.Module, x: Any) -> bool:
    """Whether any parameter but biases moves the answer to any of these samples."""
    biases = {name: 0.0 for name, _ in model.named_parameters() if "bias" in name.rsplit(".", 1)[-1]}
    return bool(empirical_ntk(model, x, rates=biases).diagonal().any())


def _alive(alive: float, samples: int) -> Reading:
    return Reading(
        quantity=ALIVE,
        where=f"{samples} samples",
        measured=alive,
        expected=Band(low=GONE),
        against="health",
        meaning="Dead: the network gives every sample the same answer."
        if alive < GONE
        else "Alive. It is zero if all units are off, whatever the loss.",
    )
