"""Do the validation data come from another distribution than the training data?

A two-sample test of the inputs: for each column the difference of mean and spread (and of each token's share) between training
and validation data, in standard errors, compared with the largest difference between random halves of the training data.
Reported if validation differs far more than random halves do, by at least half a standard deviation, and the network does worse
there.
"""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from theodolite.core.ailment import Ailment, Finding, evidence
from theodolite.core.subject import Subject
from theodolite.evidence.batches import sample_of, samples, validation_batches
from theodolite.evidence.constant_answers import constant_loss
from theodolite.evidence.task import scores, skill
from theodolite.evidence.thresholds import CRITICAL, FEWEST, PART, PARTS, ROUNDING, SAMPLES, SURE
from theodolite.evidence.trial import judged_constant


def judge(subject: Subject) -> Iterator[Finding]:
    own, other = samples(subject), sample_of(validation_batches(subject))
    x, v = (None, None) if own is None or other is None else (own.numbers, other.numbers)
    if x is None or v is None or x.shape[1:] != v.shape[1:] or min(len(x), len(v)) < FEWEST:
        return
    rows, held = _columns(x), _columns(v)
    if not bool(torch.isfinite(rows).all() & torch.isfinite(held).all()):
        return
    moved, column = _difference(rows, held)
    generator = torch.Generator().manual_seed(0)
    null = 0.0
    for _ in range(PARTS):
        order = torch.randperm(len(rows), generator=generator)
        cut = min(len(held), len(rows) // 2)
        null = max(null, _difference(rows[order[cut:]], rows[order[:cut]])[0])
    if moved < max(CRITICAL, SURE * null) or not _does_worse(subject):
        return
    mean, spread = float(rows[:, column].mean()), float(rows[:, column].std())
    there, width = float(held[:, column].mean()), float(held[:, column].std())
    yield Finding(
        severity="warning",
        where="validation inputs",
        says=f"The validation data differ from the training data: one column has mean {mean:.3g} and standard deviation "
        f"{spread:.3g} in training, {there:.3g} and {width:.3g} in validation ({moved:.1f} standard deviations apart; random "
        f"halves of the training data are at most {null:.2g} apart).",
        remedy="scale and preprocess both the same way, and split at random; if the source of the data has changed, train "
        "on newer data",
        evidence=(
            evidence("largest difference in standard deviations", moved),
            evidence("the same between random halves", null),
        ),
    )


def _columns(x: Tensor) -> Tensor:
    rows = x.flatten(1).double().cpu()
    return rows[:, :: max(1, rows.shape[1] // SAMPLES)]


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


def _does_worse(subject: Subject) -> bool:
    training, held = scores(subject)
    if training is None or held is None:
        return False
    here, there = skill(subject, training, constant_loss(subject)), skill(subject, held, judged_constant(subject))
    gap = held.loss - training.loss > PART * abs(constant_loss(subject))
    return not math.isnan(here) and (there < (1 - PART) * here or gap)


ailment = Ailment(
    question="Do validation data differ from training data?", needs={"model", "data", "loss", "validation"}, judge=judge
)
