"""Do the validation data come from another distribution than the training data?

A two-sample test of the inputs: for each column the difference of mean and spread between training and validation data, in
standard deviations, compared with the largest difference between random halves of the training data. Columns are the inputs
themselves; of sequences of tokens how often each token occurs in a sample, and of signals and images also how alike neighbors
are: files read at another rate, or resized by another rule, have the same mean and spread. Reported if validation differs far
more than random halves do, by at least half a standard deviation, and the network does worse there. A column that has one value
in all of the validation data differs where as many training samples would all have it less than once in a thousand draws. Each
sample counts once, unless the validation data repeat theirs: then both count as they are drawn.
"""

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from theodolite.core.ailment import Ailment, Finding, evidence
from theodolite.core.subject import Subject
from theodolite.evidence.batches import batches, repeat_themselves, sample_of, samples, validation_batches
from theodolite.evidence.constant_answers import constant_loss
from theodolite.evidence.task import scores, skill
from theodolite.evidence.thresholds import CRITICAL, FEWEST, LONG, PART, PARTS, ROUNDING, SAMPLES, SURE, WORTH
from theodolite.evidence.trial import judged_constant

REMEDY = "scale and preprocess both the same way, and split at random; if the source of the data has changed, train on newer data"
LAGS = (1, 2, 4)
"""Places between neighbors, along each axis of a signal or an image."""


def judge(subject: Subject) -> Iterator[Finding]:
    yield from differences(subject)


def differences(subject: Subject) -> tuple[Finding, ...]:
    """The finding, if there is one: what a network lacks on such data says nothing of what it has learned by heart."""
    return subject.once("validation differs", lambda: tuple(_found(subject)))


def _found(subject: Subject) -> Iterator[Finding]:
    other = sample_of(validation_batches(subject))
    own = sample_of(batches(subject)) if repeat_themselves(validation_batches(subject)) else samples(subject)
    if own is None or other is None or min(len(own), len(other)) < FEWEST:
        return
    x, v = own.numbers, other.numbers
    if x is None or v is None:
        tokens = _tokens(own.inputs, other.inputs)
        if tokens is None:
            return
        what, (rows, held) = "the count of one token in a sample", tokens
    elif x.shape[1:] != v.shape[1:]:
        return
    else:
        what, rows, held = "one column", _columns(x), _columns(v)
        if not bool(torch.isfinite(rows).all() & torch.isfinite(held).all()):
            return
        if x.ndim > 2:
            rows, held = (torch.cat([known, _likeness(t)], 1) for known, t in ((rows, x), (held, v)))
    apart = _difference if x is not None else _moved_counts
    moved, column = apart(rows, held)
    generator = torch.Generator().manual_seed(0)
    null = 0.0
    for _ in range(PARTS):
        order = torch.randperm(len(rows), generator=generator)
        cut = min(len(held), len(rows) // 2)
        null = max(null, apart(rows[order[cut:]], rows[order[:cut]])[0])
    still = _stands_still(rows, held) if moved < max(CRITICAL, SURE * null) and x is not None else None
    if still is not None and _does_worse(subject):
        yield _of_one_value(rows[:, still], held[0, still], len(held))
    if moved < max(CRITICAL, SURE * null) or not _does_worse(subject):
        return
    mean, spread = float(rows[:, column].mean()), float(rows[:, column].std())
    there, width = float(held[:, column].mean()), float(held[:, column].std())
    if x is not None and column >= _columns(x[:1]).shape[1]:
        what = "the correlation of neighbors in a sample"
    yield Finding(
        severity="warning",
        where="validation inputs",
        says=f"The validation data differ from the training data: {what} has mean {mean:.3g} and standard deviation "
        f"{spread:.3g} in training, {there:.3g} and {width:.3g} in validation ({moved:.1f} standard deviations apart; random "
        f"halves of the training data are at most {null:.2g} apart).",
        remedy=REMEDY,
        evidence=(
            evidence("largest difference in standard deviations", moved),
            evidence("the same between random halves", null),
        ),
    )


def _stands_still(rows: Tensor, held: Tensor) -> int | None:
    """The column with one value in all validation samples that is the rarest in training, where chance does not do that."""
    chance = ((rows == held[:1]).double().sum(0) + 1).div(len(rows) + 1).pow(len(held)) * rows.shape[1]
    stopped = (held == held[:1]).all(0) & (rows != rows[:1]).any(0)
    chance = chance.where(stopped, torch.ones_like(chance))
    return int(chance.argmin()) if float(chance.min()) < 1 / LONG else None


def _of_one_value(column: Tensor, value: Tensor, count: int) -> Finding:
    share = float((column == value).double().mean())
    return Finding(
        severity="warning",
        where="validation inputs",
        says=f"The validation data differ from the training data: one column is {float(value):.3g} in all {count} validation "
        f"samples, and in {share:.0%} of the training samples (mean {float(column.mean()):.3g}, standard deviation "
        f"{float(column.std()):.3g}). What the network reads from it in training is not there.",
        remedy=f"leave out what is not known when the network is asked; {REMEDY}",
        evidence=(evidence("share of training samples with the one value of the validation data", share),),
    )


def _columns(x: Tensor) -> Tensor:
    rows = x.flatten(1).double().cpu()
    return rows[:, :: max(1, rows.shape[1] // SAMPLES)]


def _likeness(x: Tensor) -> Tensor:
    """Of each sample the correlation of neighbors so many places apart, along each axis but that of the samples."""
    whole = x.double().cpu()
    whole = whole - whole.flatten(1).mean(1).reshape(-1, *(1 for _ in whole.shape[1:]))
    size = whole.flatten(1).square().mean(1).clamp(min=1e-300)
    found = []
    for axis in range(1, whole.ndim):
        for lag in LAGS:
            places = whole.shape[axis] - lag
            if places > lag:
                product = whole.narrow(axis, lag, places) * whole.narrow(axis, 0, places)
                found.append(product.flatten(1).mean(1) / size)
    return torch.stack(found, 1) if found else whole.new_zeros(len(whole), 0)


def _tokens(own: Sequence[Tensor], other: Sequence[Tensor]) -> tuple[Tensor, Tensor] | None:
    """How often each of the tokens that are commonest here or there occurs in a sample; None where inputs are no sequences."""
    if len(own) != 1 or own[0].is_floating_point() or own[0].ndim != 2 or other[0].ndim != 2:
        return None
    x, v = own[0].cpu(), other[0].cpu()
    if min(int(x.min()), int(v.min())) < 0:
        return None
    size = 1 + max(int(x.max()), int(v.max()))
    shares = [torch.bincount(t.flatten(), minlength=size).double() / t.numel() for t in (x, v)]
    common = torch.maximum(*shares).topk(min(SAMPLES, size)).indices
    return tuple((t[:, :, None] == common).double().mean(1) for t in (x, v))  # type: ignore[return-value]


def _difference(one: Tensor, other: Tensor) -> tuple[float, int]:
    """The largest move of a mean in standard deviations, or of a logarithm of the spread, and its column."""
    size = one.std(0).clamp(min=1e-3 * float(one.std()) + 1e-300)
    means = (other.mean(0) - one.mean(0)).abs() / size
    widths = (
        (other.std(0).clamp(min=1e-300) / size)
        .log()
        .abs()
        .where(other.std(0) > ROUNDING * size, torch.zeros_like(size))
    )
    both = torch.maximum(means, widths)
    return float(both.max()), int(both.argmax())


def _moved_counts(one: Tensor, other: Tensor) -> tuple[float, int]:
    """The largest move of a mean in standard deviations of both together: a rare token may not be here at all, or not there."""
    size = torch.cat([one, other]).std(0).clamp(min=1e-300)
    means = (other.mean(0) - one.mean(0)).abs() / size
    return float(means.max()), int(means.argmax())


def _does_worse(subject: Subject) -> bool:
    training, held = scores(subject)
    if training is None or held is None:
        return False
    here, there = skill(subject, training, constant_loss(subject)), skill(subject, held, judged_constant(subject))
    gap = held.loss - training.loss > PART * abs(constant_loss(subject))
    return not math.isnan(here) and (here - there > max(PART * here, WORTH) or gap)


ailment = Ailment(
    question="Do validation data differ from training data?", needs={"model", "data", "loss", "validation"}, judge=judge
)
