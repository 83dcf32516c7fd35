"""Does the network fit its training data while its held-out predictions are no better than ignoring the input?

If labels can be learned, a network that fits them beats a constant answer on held-out data. Here the training accuracy is far
above the majority class while the held-out accuracy is at it, within three binomial standard errors (for numeric targets: the
same with losses), and a vote among the nearest neighbors of each input does no better. If the neighbors do better, the network
merely overfits. A network whose held-out accuracy is six binomial errors above the majority class is mistaken for one at chance
once in 700; if three errors exceed 0.3 nothing is reported. Numbers that the mean of their nearest
neighbors predicts better than chance are no noise either.
"""

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from theodolite.ailments.validation_differs import differences
from theodolite.core.ailment import Ailment, Finding, evidence
from theodolite.core.subject import Subject
from theodolite.evidence.batches import distinct_batches, validation_batches, validation_parts
from theodolite.evidence.constant_answers import constant_loss
from theodolite.evidence.task import majority, scores
from theodolite.evidence.thresholds import MANY, MISSED, SURE
from theodolite.evidence.trial import judged_constant
from theodolite.io.batches import Batch

NEIGHBORS = 10
"""Neighbors that vote."""


def judge(subject: Subject) -> Iterator[Finding]:
    training, held = scores(subject)
    if training is None or held is None or not math.isfinite(constant_loss(subject)):
        return
    common, near = majority(subject), math.nan
    elsewhere = majority(subject, validation_parts(subject))
    if held.accuracy == held.accuracy and common < 1 and elsewhere < 1:
        error = math.sqrt(elsewhere * (1 - elsewhere) / max(1.0, sum(held.weights)))
        fitted = training.accuracy > common + MISSED
        at_chance = held.accuracy < elsewhere + SURE * error and SURE * error < MISSED  # few samples tell nothing
        near = (
            neighbors_accuracy(distinct_batches(subject), validation_batches(subject))
            if fitted and at_chance
            else math.nan
        )
        if near > elsewhere + SURE * error:
            return
        said = (
            f"training accuracy {training.accuracy:.0%}, held-out {held.accuracy:.0%} ({held.samples} samples), "
            f"majority class {elsewhere:.0%}"
        )
    else:
        constant = constant_loss(subject)
        fitted = 0 <= training.loss < MISSED * constant  # where losses may be negative a share of one means nothing
        at_chance = held.loss > judged_constant(subject)
        if fitted and at_chance and neighbors_tell(distinct_batches(subject), validation_batches(subject)):
            return
        said = (
            f"training loss {training.loss:.3g}, held-out {held.loss:.3g} ({held.samples} samples), "
            f"ignoring the input {constant_loss(subject):.3g}"
        )
    if not fitted or not at_chance or differences(subject):
        return
    asked = "" if near != near else f" The {NEIGHBORS} nearest neighbors of each input get {near:.0%} right."
    yield Finding(
        severity="critical",
        says=f"The network has memorized its training data and learned nothing else: {said}.{asked}",
        remedy="look at the labels: are inputs and targets still in the same order (shuffled together)?",
        evidence=(
            evidence("loss on training data", training.loss, stderr=training.stderr),
            evidence("loss on held-out data", held.loss, stderr=held.stderr),
        ),
    )


def neighbors_accuracy(training: Sequence[Batch], held_out: Sequence[Batch]) -> float:
    """Held-out accuracy of a vote among nearest neighbors in the inputs; not a number where inputs are not numbers."""
    asked = _neighbors(training, held_out)
    if asked is None or asked[2].ndim > 1:
        return math.nan
    y, near, wanted = asked
    return float((y[near].mode(dim=1).values == wanted).double().mean())


def neighbors_tell(training: Sequence[Batch], held_out: Sequence[Batch]) -> bool:
    """Whether the mean of nearest neighbors' numbers is closer to held-out numbers than the mean of all, beyond chance."""
    asked = _neighbors(training, held_out)
    if asked is None or not asked[2].is_floating_point():
        return False
    y, near, wanted = asked
    closer = (wanted - y.mean(0)).square() - (wanted - y[near].mean(1)).square()
    each = closer.double().reshape(len(closer), -1).mean(1)
    return bool(each.mean() > SURE * each.std() / math.sqrt(len(each)))


def _neighbors(training: Sequence[Batch], held_out: Sequence[Batch]) -> tuple[Tensor, Tensor, Tensor] | None:
    """Training targets, of each held-out sample the nearest in them, and its own target; None where inputs are not numbers."""
    x, y = _flat(training)
    other, wanted = _flat(held_out)
    if x is None or y is None or other is None or wanted is None or x.shape[1:] != other.shape[1:]:
        return None
    if len(x) <= NEIGHBORS or y.shape[1:] != wanted.shape[1:]:
        return None
    return y, torch.cdist(other, x).topk(NEIGHBORS, largest=False).indices, wanted  # near is (held out, neighbors)


def _flat(whole: Sequence[Batch]) -> tuple[Tensor | None, Tensor | None]:
    few = [b for b in whole if len(b.tensors()) == 1 and isinstance(b.target, Tensor) and b.target.ndim in (1, 2)]
    if not few or len({b.tensors()[0].shape[1:] for b in few}) > 1 or not few[0].tensors()[0].is_floating_point():
        return None, None
    x = torch.cat([b.tensors()[0].flatten(1).float() for b in few])[:MANY]
    return x, torch.cat([b.target for b in few])[:MANY]


ailment = Ailment(question="Does it memorize noise?", needs={"model", "data", "loss", "validation"}, judge=judge)
