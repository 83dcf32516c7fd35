"""The tangent kernel at a look: how far it has come from the start, and whether it still tells samples apart.

Few samples tell the kernel of a network of few outputs; of many outputs random projections of them, with their error.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.checks import InputError
from theodolite.core.reading import Band, Reading
from theodolite.core.subject import Subject
from theodolite.instruments._common.drift import drift_reading
from theodolite.instruments._common.samples import spread_samples
from theodolite.measure import first_tensor, placed, rows
from theodolite.measure.dynamics import at_state, telling_kernel, thinned_weights, weight_travel
from theodolite.measure.kernels import empirical_ntk, kernel_drift, projected_jacobians
from theodolite.verbs.watching.look_context import LARGE, Carried, LookContext

POINTS, OUTPUTS = 8, 128
"""Samples of the probe for the tangent kernel, and outputs a sample beyond which it is too dear, as it is in a large model."""

SAMPLES, PROJECTIONS, FEWER = 4, 4, 2
"""Samples and projections of many outputs: sixteen gradients a look, eight of a large model."""

GONE = 1e-9
"""A tangent kernel below this share of its start tells no samples apart."""

ROUNDED = 32.0
"""Answers that differ by so many roundings of the largest are alike."""

ALIVE = "tangent kernel that separates samples, relative to the start"


def kernel_readings(context: LookContext) -> Iterator[Reading]:
    """How far the kernel moved, and what is left of it; of many outputs by projections of them."""
    model, carried = context.model, context.carried
    x = _samples(context, model)
    if x is None:
        return
    if sum(p.numel() for p in model.parameters()) >= LARGE or _has_many_outputs(model, x):
        yield from _projected_drift(context, x)
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
    start, model = context.carried.telling, context.model
    if start > 0 and telling > GONE * start:
        return telling / start
    alike = single or answers_alike(context.subject)
    if not start > 0:
        return 0.0 if alike and not _weights_move(model, x) else math.nan
    if alike:
        return telling / start
    others = placed(_unlike_samples(context.subject, POINTS), next(model.parameters()))
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


def _projected_drift(context: LookContext, x: Any) -> Iterator[Reading]:
    """How far the kernel moved; the error is what two halves of the projections differ by."""
    model, carried = context.model, context.carried
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


def answers_alike(subject: Subject) -> bool:
    """Whether the model gives every sample of the probe the same answer, which is finite."""
    parts = [_answers(subject, batch) for batch in subject.batches()]
    if any(part.shape[1:] != parts[0].shape[1:] for part in parts):
        return False  # of sequences that differ in length it is not asked
    whole = torch.cat(parts)
    if not bool(whole.isfinite().all()):
        return False
    apart = float((whole - whole[:1]).abs().max())
    return apart <= ROUNDED * torch.finfo(whole.dtype).eps * float(whole.abs().max())


def _unlike_samples(subject: Subject, most: int) -> Any:
    """Inputs of the samples of the first batch whose answers lie farthest from the usual one."""
    batch = next(subject.batches())
    answers = _answers(subject, batch)
    far = (answers - answers.median(0).values).abs().amax(1)
    chosen = batch.picked(far.topk(min(most, len(far))).indices)
    if chosen.keywords:
        return dict(chosen.keywords)
    return chosen.inputs[0] if len(chosen.inputs) == 1 else chosen.inputs


def _answers(subject: Subject, batch: Any) -> Tensor:
    with torch.no_grad():
        return first_tensor(subject.output(batch)).detach().float().flatten(1)
