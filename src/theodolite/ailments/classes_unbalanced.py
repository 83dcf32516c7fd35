"""Are some classes so rare that the network ignores them?

Rare classes alone are not a fault; ignoring them is. The check runs when the majority class has at least five times as many
samples as the rarest, and the network has learned at least the class frequencies (its loss is no higher than when ignoring the
input). It compares the accuracy on the majority class with the accuracy on classes less than a fifth of its size, on held-out
data if there is any. It warns if the rare classes are mostly wrong and their accuracy is lower by three standard errors, which
happens by chance once in 700; otherwise it leaves a note. The opposite is measured, too: with equal outputs for all classes the
gradient of the loss shows the weight of each. If a class with less than half of the targets has more than 95 % of the weight,
and most of the others are predicted wrongly, the weights are at fault. Counts are exact; the error of a share is Wilson's
interval at three standard errors.
"""

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from theodolite.ailments.labels_ignored import none_counts
from theodolite.core.ailment import Ailment, Finding, evidence
from theodolite.core.state import untouched
from theodolite.core.statistics import wilson_interval
from theodolite.core.subject import Subject, once
from theodolite.evidence.batches import all_targets, asked_batch, batches, joined, samples, validation_batches
from theodolite.evidence.constant_answers import constant_loss
from theodolite.evidence.drawn_outputs import members_of, quiet, rebuilt
from theodolite.evidence.interventions import Intervention, found_by
from theodolite.evidence.kernel_machine import classes_in, is_random_order
from theodolite.evidence.start import was_trained
from theodolite.evidence.task import scores, skill, task
from theodolite.evidence.thresholds import CRITICAL, FEWEST, NOTHING, PART, RARELY, SURE
from theodolite.evidence.trial import Change, judged_constant, judged_majority, present_score
from theodolite.io.batches import Batch

REMEDY = (
    "loss weights: weight = len(y) / (classes * torch.bincount(y)); or "
    "torch.utils.data.WeightedRandomSampler(weight[y], len(y)); judge by balanced accuracy"
)
MOST_PLACES = 20
"""Classes at many places (pixels) at most: of more, such as words, rare ones are rarely right by nature."""


def judge(subject: Subject) -> Iterator[Finding]:
    targets = all_targets(subject)
    alone = _one_target(targets)
    if alone:
        # those that the loss leaves out are told of by labels-ignored; of a generator's answers the target is not one
        if not none_counts(subject, batches(subject)[0]) and _is_answered(subject):
            yield alone
        return
    turned = [*_weighted_away(subject)]
    yield from turned
    if turned:
        return
    classes = None if task(subject).kind == "numbers" else classes_in(targets)  # counts are no classes
    if classes is None:
        yield from _of_places(subject)
        return
    counts = _unbalanced(classes)
    if counts is None:
        return
    read = samples(subject)
    whole = read is None or read.target is None or len(classes) > len(read)
    if not whole and not is_random_order(classes):
        return
    common = int(counts.argmax())
    share, error = wilson_interval(int(counts[common]) / len(classes), len(classes), SURE)
    rarest = int(torch.where(counts > 0, counts, counts.max() + 1).argmin())
    said = (
        f"Class {common} has {share:.1%} ± {error:.1%} of {len(classes)} samples, class {rarest} has {int(counts[rarest])} "
        f"({float(counts[common]) / float(counts[rarest]):.0f} to 1)."
    )
    lost = _recalls(subject, counts, common)
    readings = [
        evidence("share of the majority class", share, stderr=error / SURE),
        evidence("samples of the rarest class", int(counts[rarest])),
    ]
    if lost is not None:
        commonest, rare, uncertain, balanced, part = lost
        said += (
            f" On {part} data the accuracy is {commonest:.0%} for class {common} and {rare:.0%} for the rare classes."
        )
        readings += [
            evidence("accuracy on rare classes", rare, stderr=uncertain),
            evidence("balanced accuracy", balanced),
        ]
    # nothing learned at all is another matter, unless the classes are as common as this in the training data alone
    learned = skill(subject, present_score(subject), judged_constant(subject)) > NOTHING
    learned |= judged_majority(subject) < float(counts[common]) / len(classes) / 2
    harmed = lost is not None and lost[1] < CRITICAL and lost[0] - lost[1] >= SURE * lost[2] and learned
    yield Finding(
        severity="warning" if harmed else "note",
        where=f"class {rarest}",
        says=("The network ignores the rare classes. " if harmed else "") + said,
        remedy=REMEDY,
        evidence=tuple(readings),
    )


def _weighted_away(subject: Subject) -> Iterator[Finding]:
    """A class of less than half of the targets has nearly all of the loss's pull on equal answers, and the others are lost."""
    pulls = _pulls(subject) if was_trained(subject) else None
    if pulls is None:
        return
    share, pull = pulls
    favored = int(pull.argmax())
    if 1 - float(pull[favored]) > RARELY or float(share[favored]) > CRITICAL:
        return
    answered = _answered(subject)
    if answered is None:
        return
    classes, hits, part = answered
    others = classes != favored
    if bool(others.all()) or not bool(others.any()):
        return
    found, lost = float(hits[~others].double().mean()), float(hits[others].double().mean())
    error = math.sqrt(1 / (4 * min(int(others.sum()), int((~others).sum()))))
    if lost >= CRITICAL or found - lost < SURE * error:
        return
    labels = task(subject).kind == "labels"
    yield Finding(
        severity="warning",
        where=f"class {favored}",
        says=f"The loss weights class {favored} so that the others hardly count: it has {float(share[favored]):.0%} of the "
        f"targets and {float(pull[favored]):.1%} of the weight. On {part} data the accuracy is {found:.0%} for it and "
        f"{lost:.0%} for the others.",
        remedy="pos_weight = (y == 0).sum(0) / (y == 1).sum(0), or none" if labels else f"no weights, or {REMEDY}",
        suggested={"weights": "balanced"},
        evidence=(
            evidence("share of the targets", float(share[favored])),
            evidence("share of the weight in the loss", float(pull[favored])),
            evidence("accuracy on the other classes", lost, stderr=error),
        ),
    )


def _pulls(subject: Subject) -> tuple[Tensor, Tensor] | None:
    """Of each class its share of the targets, and of the gradient that equal answers have: that of the weights in the loss."""
    meant, batch = task(subject), asked_batch(subject)
    if subject.model is None or subject.loss is None or meant.kind not in ("classes", "labels") or meant.shift:
        return None
    with untouched(subject.model), torch.no_grad(), quiet():
        answer = subject.answer(batch)
    own = members_of(answer)
    free = torch.full_like(own[meant.member], meant.threshold).requires_grad_()
    given = rebuilt(answer, [free if place == meant.member else t for place, t in enumerate(own)])
    try:
        with torch.enable_grad(), quiet():
            slope = torch.autograd.grad(subject.loss(given, batch.target), free)[0].detach().abs()
    except RuntimeError:  # the loss refuses such answers
        return None
    classes = meant.classes_of(batch.target)
    if meant.kind == "classes":
        wanted = (
            batch.target.argmax(meant.axis)
            if meant.one_hot
            else batch.target.reshape(
                [size for place, size in enumerate(slope.shape) if place != meant.axis % slope.ndim]
            ).long()
        )
        counts = meant.counts(wanted)
        slope = slope.gather(meant.axis, wanted.clamp(min=0).unsqueeze(meant.axis)).squeeze(meant.axis)[counts]
    if classes is None or slope.numel() != len(classes) or len(classes) < FEWEST or not float(slope.sum()) > 0:
        return None
    one = torch.zeros(int(classes.max()) + 1, dtype=torch.float64, device=classes.device)
    pulls = one.index_add(0, classes, slope.reshape(-1).double())
    return (torch.bincount(classes) / len(classes)).cpu(), (pulls / pulls.sum()).cpu()


def weighs_classes(subject: Subject) -> bool:
    """Whether the loss gives a sample of one class twice the weight of another's: then right answers are not all it asks for."""
    told = _pulls(subject)
    if told is None:
        return False
    share, pull = (part[told[0] > 0] for part in told)
    each = pull / share
    return bool(each.max() >= 2 * each.min())


def interventions(subject: Subject) -> Iterator[Intervention]:
    """The same training with all classes equally often, where the data that it is judged by have other shares."""
    read = samples(subject)
    classes = None if read is None or task(subject).kind == "numbers" else classes_in(read.target)
    counts = None if classes is None else _unbalanced(classes)
    if classes is None or counts is None:
        return
    common, rarest = int(counts.argmax()), int(torch.where(counts > 0, counts, counts.max() + 1).argmin())

    says = (
        f"The network ignores rare classes: class {common} has {int(counts[common])} of {len(classes)} samples, class "
        f"{rarest} has {int(counts[rarest])}, and rare classes are more frequent in the validation data."
    )
    change = Change("classes equally often", order=_evened)
    yield Intervention(change, found_by(says, REMEDY, {}, where=f"class {rarest}"), rank=18, sign=True)


def _evened(whole: Sequence[Batch]) -> Sequence[Batch]:
    """As many batches of the same size, in which each class comes up equally often."""
    (one,) = joined(whole) or [whole[0]]
    classes = classes_in(one.target)
    if classes is None:
        return whole
    weights = 1.0 / torch.bincount(classes)[classes].double().cpu()
    g = torch.Generator().manual_seed(0)
    return [one.picked(torch.multinomial(weights, len(b), replacement=True, generator=g)) for b in whole]


def _unbalanced(classes: Tensor) -> Tensor | None:
    """The samples of each class, where the rarest has far fewer than the commonest."""
    counts = torch.bincount(classes.cpu())
    present = counts[counts > 0]
    far = len(present) > 1 and float(present.min()) <= PART * float(present.max())
    return counts if far and len(classes) >= FEWEST else None


def _is_answered(subject: Subject) -> bool:
    """Whether targets are of the kind that is answered: classes, labels, or as many numbers as there are answers."""
    if subject.model is None or task(subject).kind != "unknown":
        return True
    batch = batches(subject)[0]
    with untouched(subject.model), torch.no_grad():
        answers = members_of(subject.answer(batch))
    return any(answer.numel() == batch.target.numel() for answer in answers)


def _one_target(targets: Tensor | None) -> Finding | None:
    """Every sample has the same target: there is nothing to learn."""
    if targets is None or len(targets) < FEWEST or not targets.numel():
        return None
    if targets.is_floating_point() and targets.ndim > 1 and targets[0].numel() > 1:
        return None
    if not bool((targets == targets.flatten()[0]).all()):
        return None
    return Finding(
        severity="critical",
        where="targets",
        says=f"All {len(targets):,} targets are {float(targets.flatten()[0]):g}: there is nothing to learn, because a network "
        "that ignores its input is already perfect.",
        remedy="check how the targets are made: are they scaled, rounded or overwritten?",
        evidence=(evidence("different targets", 1),),
    )


def _of_places(subject: Subject) -> Iterator[Finding]:
    """Targets with a class at each place (pixels, tokens), of which rare ones are never answered."""
    meant = task(subject)
    if meant.kind != "classes" or not was_trained(subject):
        return
    told = [meant.classes_of(batch.target) for batch in _judged_on(subject)]
    found = [own.cpu() for own in told if own is not None]
    if len(found) < len(told) or len(torch.unique(torch.cat(found))) > MOST_PLACES:
        return
    answered = _answered(subject)
    if answered is None:
        return
    classes, hits, _ = answered
    counts = torch.bincount(classes)
    common = int(counts.argmax())
    rare = counts < PART * counts[common]
    of_rare = rare[classes]
    if not bool(of_rare.any()) or float(counts[rare].sum()) > PART * float(counts[common]):
        return
    well, lost = float(hits[classes == common].double().mean()), float(hits[of_rare].double().mean())
    if well - lost < PART:
        return
    given_up = well - lost >= CRITICAL
    yield Finding(
        severity="warning" if given_up else "note",
        where="targets",
        says=f"The network {'ignores the' if given_up else 'is worse at'} rare classes: class {common} makes up "
        f"{float(counts[common]) / len(classes):.1%} of all positions (accuracy {well:.0%}), the rare classes "
        f"{float(of_rare.double().mean()):.1%} (accuracy {lost:.0%}).",
        remedy="loss weights: weight = y.numel() / (classes * torch.bincount(y.flatten())); judge by the recall of each class",
        evidence=(evidence("accuracy on rare classes", lost), evidence("accuracy on the majority class", well)),
    )


def _recalls(subject: Subject, counts: Tensor, common: int) -> tuple[float, float, float, float, str] | None:
    """Right answers of the commonest class and of rare ones, the error of these, their mean over classes, and on which data."""
    own = scores(subject)[0]
    answered = _answered(subject)
    if answered is None or own is None or not own.loss <= (1 + NOTHING) * constant_loss(subject):
        return None
    classes, hits, part = answered
    rare = [
        c for c in torch.unique(classes).tolist() if c >= len(counts) or float(counts[c]) < PART * float(counts[common])
    ]
    of_rare, of_common = torch.isin(classes, torch.tensor(rare)), classes == common
    if not bool(of_rare.any()) or not bool(of_common.any()):
        return None
    few = hits[of_rare].double()
    share = float(few.mean())
    error = math.sqrt(max(share * (1 - share), 1 / (4 * len(few))) / len(few))
    balanced = float(torch.stack([hits[classes == c].double().mean() for c in torch.unique(classes)]).mean())
    return float(hits[of_common].double().mean()), share, error, balanced, part


def _judged_on(subject: Subject) -> Sequence[Batch]:
    return validation_batches(subject) or batches(subject)


@once("right answers")
def _answered(subject: Subject) -> tuple[Tensor, Tensor, str] | None:
    """The class of each place that counts, whether it was answered rightly, and on which data: held-out ones if there are any."""
    meant = task(subject)
    wanted, right = [], []
    if subject.model is None:
        return None
    with untouched(subject.model), torch.no_grad():
        for batch in _judged_on(subject):
            hits, own = meant.right(subject.answer(batch), batch.target), meant.classes_of(batch.target)
            if hits is None or own is None or len(hits) != len(own):
                return None
            wanted.append(own.cpu())
            right.append(hits.cpu())
    return torch.cat(wanted), torch.cat(right), "held-out" if validation_batches(subject) else "training"


ailment = Ailment(
    question="Does the network ignore rare classes?",
    needs={"model", "data", "loss"},
    judge=judge,
    interventions=interventions,
)
