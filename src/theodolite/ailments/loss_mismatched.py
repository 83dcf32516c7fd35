"""Does the loss ask for something other than what the targets mean?

This is measured, not guessed from a name. Exact: (1) The loss does not depend on the outputs (a cross-entropy of one output is
always 0). (2) It depends on the targets but not on their order within a batch: (n, 1) outputs and (n,) targets were broadcast,
so every output is compared with every target. (3) A classification loss falls steadily as all outputs grow together, and they
are not log-probabilities: a negative log-likelihood, or one of sequences (CTC), without log-softmax. (4) Targets lie where the
loss rewards ever larger outputs: a binary cross-entropy with a class of 2 or -1. (5) Classes are treated as numbers: the loss
is lowest at the index of the class, although least squares on the inputs separates them far better as classes than as numbers.
(6) The outputs are reshaped, not transposed, to put the classes where the loss expects them. (7) The loss is highest where
outputs are right, and falls without limit as they move away, or is bounded and lowest where they say the opposite: its sign is
wrong. (8) Probabilities are made over the samples, not over the classes. (9) The loss of a flow rises with the logarithm of the
determinant that the model gives. By trial: (10) mutually exclusive classes have
a loss other than cross-entropy, and the same training with cross-entropy on a copy is clearly more accurate on other samples.
"""

from collections.abc import Iterator

from torch import Tensor

from theodolite.core.ailment import Ailment, Finding, evidence
from theodolite.core.subject import Subject
from theodolite.evidence.batches import asked_batch, batches
from theodolite.evidence.interventions import Intervention, found_by
from theodolite.evidence.layer_signals import signals
from theodolite.evidence.loss_checks import (
    agrees_with_cross_entropy,
    as_classes_and_numbers,
    class_numbers,
    cross_entropy_for,
    drawn_answers,
    entropy_loss,
    is_blind,
    is_dealt_out,
    is_linear,
    is_over_samples,
    is_past_its_range,
    is_turned_round,
    likes_the_number,
    shrinks_volumes,
)
from theodolite.evidence.task import task
from theodolite.evidence.thresholds import CRITICAL, SURE, WORTH
from theodolite.evidence.trial import Change, present_skill


def judge(subject: Subject) -> Iterator[Finding]:
    if signals(subject) is None or subject.loss is None or not isinstance(batches(subject)[0].target, Tensor):
        return
    if shrinks_volumes(subject):
        yield Finding(
            severity="critical",
            says="The loss has the sign of the volume wrong: it rises with the logarithm of the determinant that the model "
            "returns with its outputs, so a map that shrinks all inputs to a point is best.",
            remedy="loss = -(base.log_prob(z) + log_det).mean(): the density of the inputs is that of z times the volume",
        )
        return
    answers = drawn_answers(subject)
    if not answers:
        return
    shape, target = tuple(answers[0].shape), asked_batch(subject).target
    if is_blind(subject, answers):
        yield Finding(
            severity="critical",
            says=f"The loss does not depend on the outputs: it is {float(subject.loss(answers[0], target)):.3g} whatever the "
            f"outputs of shape {shape} are.",
            remedy="one output per class for F.cross_entropy, or F.binary_cross_entropy_with_logits for a single output",
            suggested={"loss": "binary_cross_entropy_with_logits"} if shape[-1] == 1 else {"loss": "cross_entropy"},
        )
    elif is_dealt_out(subject, answers):
        squeeze = len(shape) == target.ndim + 1 and shape[-1] == 1
        yield Finding(
            severity="critical",
            says=f"Every output is compared with every target: outputs of shape {shape} and targets of shape "
            f"{tuple(target.shape)} are broadcast against each other, and shuffling the targets does not change the loss.",
            remedy="loss(output.squeeze(-1), target)" if squeeze else "give outputs and targets the same shape",
            suggested={"squeeze": True},
        )
    elif task(subject).viewed:
        yield Finding(
            severity="critical" if not present_skill(subject) >= CRITICAL else "warning",
            says=f"The loss mixes classes with positions: outputs of shape {shape} are reshaped to put the classes second, which "
            "leaves every number where it was in memory. Each prediction is made of parts of several positions.",
            remedy="output.transpose(1, 2), or output.flatten(0, 1) with target.flatten(), in place of the view or reshape",
            suggested={"transpose": True},
        )
    elif is_linear(subject, answers):
        yield Finding(
            severity="critical",
            says="The loss falls without limit as all outputs grow together: it expects logarithms of probabilities and gets "
            "something else, such as the probabilities themselves.",
            remedy="output.log_softmax(-1) for F.nll_loss and F.ctc_loss; or F.cross_entropy on the outputs of the last layer",
            suggested={"loss": "cross_entropy"},
        )
    elif is_over_samples(subject, answers):
        yield Finding(
            severity="warning",
            says="The loss makes probabilities over the samples of a batch, not over the classes: raising the output for a class "
            "in all samples does not change it.",
            remedy="log_softmax(output, dim=1), or F.cross_entropy on the outputs themselves",
        )
    elif is_past_its_range(subject):
        yield Finding(
            severity="critical",
            says=f"Targets lie outside the range of the loss: they go from {float(target.min()):g} to {float(target.max()):g}, "
            "and beyond 0 to 1 the loss falls without limit as outputs grow.",
            remedy="one output per class and F.cross_entropy(output, target.long()), or targets of 0 and 1",
            suggested={"loss": "cross_entropy"},
        )
    elif is_turned_round(subject):
        yield Finding(
            severity="critical",
            says="The loss rewards wrong answers: it is highest where outputs match the targets, and falls as they move away.",
            remedy="flip the sign of the loss: -loss, without the minus it has, or 1 - agreement for one such as Dice",
        )
    else:
        yield from _as_numbers(subject, answers)


def _as_numbers(subject: Subject, answers: list[Tensor]) -> Iterator[Finding]:
    labels = class_numbers(subject)
    if labels is None or not likes_the_number(subject, answers[0]):
        return
    told = as_classes_and_numbers(subject, labels)
    if told is None or not told[0] - told[1] > max(WORTH, SURE * told[2]):
        return
    learned = present_skill(subject)
    yield Finding(
        severity="critical" if not learned > CRITICAL else "warning",
        says=f"Classes are treated as numbers: the loss pulls outputs toward the index of the class. Least squares on the inputs "
        f"gets {told[0]:.0%} right when fitted to classes, {told[1]:.0%} when fitted to numbers.",
        remedy=f"F.cross_entropy with {int(labels.max()) + 1} outputs",
        suggested={"loss": "cross_entropy"},
        evidence=(evidence("accuracy as classes", told[0], stderr=told[2]), evidence("accuracy as numbers", told[1])),
    )


def interventions(subject: Subject) -> Iterator[Intervention]:
    """The same training with cross-entropy, where classes have another loss."""
    if signals(subject) is None or not isinstance(batches(subject)[0].target, Tensor):
        return
    answers = drawn_answers(subject)
    entropy = cross_entropy_for(subject) if answers else None
    if entropy is None or agrees_with_cross_entropy(subject, answers):
        return
    loss = entropy_loss(subject, entropy)
    change = Change("cross-entropy", loss=loss, scored_by=loss)
    yield Intervention(change, _found, rank=15, sign=True, alike=False)
    yield Intervention(change.at_lr(10.0), _found, rank=45, sign=True, alike=False)


_found = found_by(
    "The loss does not suit mutually exclusive classes.", "F.cross_entropy(output, target)", {"loss": "cross_entropy"}
)


ailment = Ailment(
    question="Does the loss fit the targets?", needs={"model", "data", "loss"}, judge=judge, interventions=interventions
)
