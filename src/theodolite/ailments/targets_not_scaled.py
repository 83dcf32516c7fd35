r"""Are regression targets so large or so far from zero that the outputs cannot reach them in time?

A network starts with outputs of about 1. Targets of mean m and standard deviation s start at a loss of $m^2+s^2$, of which only
$s^2$ is to be learned: a bounded step (Adam's) needs about $m/\mathrm{lr}$ steps to get there, and a plain one sees gradients s
times too large. Targets whose mean and standard deviation are within a factor of 5 of 1 are accepted. Otherwise the same
training on standardized targets, tried on a copy, decides; the two are compared by their share of the loss when ignoring the
input, which has no units. If the inputs are not scaled either, both may need scaling before either helps.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from theodolite.ailments.inputs_not_scaled import standardized_rows, unscaled_inputs
from theodolite.core.ailment import Ailment, Finding, figure
from theodolite.core.subject import Subject
from theodolite.evidence.batches import samples
from theodolite.evidence.interventions import Intervention, Outcome, found_by
from theodolite.evidence.kernel_machine import COLUMNS
from theodolite.evidence.task import task
from theodolite.evidence.thresholds import NOTHING
from theodolite.evidence.trial import Change, judged_constant, judged_parts
from theodolite.io.batches import Batch

LARGE = 5.0
"""Deviations beyond which targets are not scaled; means beyond the first of them too."""


def interventions(subject: Subject) -> Iterator[Intervention]:
    """Standardized targets, and inputs too where these are not scaled either."""
    sample = samples(subject)
    y = None if sample is None else sample.target
    if y is None or not y.is_floating_point() or task(subject).kind != "numbers" or not bool(torch.isfinite(y).all()):
        return
    y = y.double()
    mean, std = y.mean(0), y.std(0, correction=0)
    if std.numel() > COLUMNS:  # pixels have one unit, and some of them hardly any variance
        mean, std = y.mean(), y.std(correction=0)
    size, offset = float(std.mean()), float(mean.abs().max())
    if size == 0 or (NOTHING <= size <= LARGE and offset <= LARGE * max(1.0, size)):
        return
    width = torch.where(std > 0, std, torch.ones_like(std))

    def standardized(batch: Batch) -> Batch:
        target: Tensor = batch.target
        return replace(batch, target=((target.double() - mean) / width).to(target.dtype))

    units = _units(subject, standardized)
    if units is None:
        return
    plain = Change("targets standardized", rows=standardized, units=units)
    yield Intervention(plain, _found(float(mean.mean()), size, both=False), rank=12, sign=True)
    scales = unscaled_inputs(subject)
    if scales is not None:
        of_inputs = standardized_rows(scales)
        both = replace(plain, name="inputs and targets standardized", rows=lambda b: of_inputs(standardized(b)))
        yield Intervention(both, _found(float(mean.mean()), size, both=True), rank=14, sign=True)


def _units(subject: Subject, change: Callable[[Batch], Batch]) -> float | None:
    """What a loss on standardized targets must be multiplied with to be beside the user's: the ratio for ignoring the input."""
    own, other = judged_constant(subject), _constant(subject, change)
    return own / other if other > 0 and own > 0 else None


def _constant(subject: Subject, change: Callable[[Batch], Batch]) -> float:
    """The loss of 0, the mean of standardized targets, on the data that trials are judged by."""
    assert subject.loss is not None
    total = weight = 0.0
    with torch.no_grad():
        for part in judged_parts(subject):
            target = change(part).target
            total += float(subject.loss(torch.zeros_like(target), target)) * len(part)
            weight += len(part)
    return total / weight if weight else 0.0


def _found(mean: float, std: float, *, both: bool) -> Callable[[Outcome], Finding]:
    remedy = f"y = (y - {mean:.4g}) / {std:.4g} for training, and output * {std:.4g} + {mean:.4g} at inference"
    what = "Inputs and targets are not scaled" if both else "Targets are not scaled"
    return found_by(
        f"{what}: {'the targets' if both else 'they'} have mean {figure(mean)} and standard deviation {figure(std)}, while a "
        "network starts with outputs of about 1.",
        remedy + ("; x = (x - x_train.mean(0)) / x_train.std(0) too" if both else ""),
        {"standardize": "targets"},
        where="targets",
    )


ailment = Ailment(
    question="Are targets scaled?",
    needs={"model", "data", "loss", "optimizer"},
    interventions=interventions,
    laws=("edge-of-stability",),
)
