"""Do the inputs say anything about the targets at all?

Two independent tests must both find nothing. The first is a kernel machine with the tangent kernel of a wide network (on
counts of tokens and of neighboring pairs if the inputs are integers, on the surroundings of one pixel of each image if targets
are maps; on a few coordinates also a local kernel, because targets may vary faster than a network can follow): its
leave-one-out predictions are correlated with the targets, and with 99 permutations of them. The second is the network: the
correlation of its predictions with held-out targets, or a short training on a copy. If a share q of the labels is right, the
correlation is q times that of clean labels. The check states its power: a correlation within three standard deviations of
permuted targets cannot be seen, and if 0.2 would not be visible, nothing is reported. If both correlations are below 0.2 but
not zero, the labels are mostly noise, or the inputs lack what determines them: a warning. Permuted targets give a p-value
above 0.01 in 99 of 100 cases; related ones are called unrelated only if both the kernel and the network fail.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from theodolite.core.ailment import Ailment, Finding, Severity, evidence
from theodolite.core.state import untouched
from theodolite.core.subject import Subject
from theodolite.evidence.batches import Sample, sample_of, samples, validation_batches
from theodolite.evidence.constant_answers import constant_loss
from theodolite.evidence.kernel_machine import PERMUTATIONS, Relation, at_places, classes_in, correlations, relation_of
from theodolite.evidence.start import was_trained
from theodolite.evidence.task import scores, skill, task
from theodolite.evidence.thresholds import A_RUN, CRITICAL, FEWEST, NOTHING, PART, RARELY, SURE
from theodolite.evidence.token_counts import TokenFloors, token_floors
from theodolite.evidence.trial import AS_IT_IS, Trial, judged_constant, judged_majority


def judge(subject: Subject) -> Iterator[Finding]:
    sample = samples(subject)
    if sample is None or len(sample) < FEWEST or not all(bool(torch.isfinite(x).all()) for x in sample.inputs):
        return
    told = _own_correlation(subject)
    if told is not None and told[0] > PART:  # the network itself tells enough: no need for the other witness
        return
    if _is_index(sample):  # no two samples share anything that a kernel machine could go by
        return
    relation = subject.once("relation", lambda: relation_of(sample, PART))
    if relation is None:
        yield from _of_places(subject, sample)
        return
    if relation.visible > PART or relation.correlation >= PART:
        return
    nothing = relation.p_value * PERMUTATIONS > 1 or relation.correlation - relation.null < relation.visible
    if told is not None:
        nothing = nothing and told[0] < SURE * told[1]
        witness = f"the network's predictions {told[0]:.2f} ± {told[1]:.2f} on held-out data"
        found = _finding(relation, witness, nothing=nothing)
        # to a kernel machine users and items say nothing in any case
        yield replace(found, severity="warning") if _are_rare(sample, relation.samples) else found
        return
    learned = None if _are_rare(sample, relation.samples) else _learned_by_a_copy(subject)
    if nothing and learned is not None and learned <= 0:
        yield _finding(
            relation, "a short training on a copy learned nothing that generalizes to other samples", nothing=False
        )


def _is_index(sample: Sample) -> bool:
    """Whether inputs are numbers of rows, such as nodes of a graph, of which the model looks up the rest."""
    if len(sample.inputs) != 1 or sample.inputs[0].is_floating_point():
        return False
    x = sample.inputs[0].reshape(len(sample), -1)
    return x.shape[1] == 1 and len(torch.unique(x)) == len(x)


def _are_rare(sample: Sample, read: int) -> bool:
    """Whether inputs are whole numbers such as users and items, each of which comes up a few times among those that were read."""
    if any(x.is_floating_point() for x in sample.inputs):
        return False
    columns = [column for x in sample.inputs for column in x.reshape(len(x), -1).unbind(1)]
    return all(read < FEWEST * len(torch.unique(column)) for column in columns)


def _of_places(subject: Subject, sample: Sample) -> Iterator[Finding]:
    """Targets with many places (pixels, tokens): a trained network that does no better than ignoring the input on other data."""
    floors = token_floors(subject)
    if floors is not None and floors.bigram < (1 - RARELY) * floors.unigram:  # the token at a place tells of its target
        return
    tokens = floors is not None and floors.masked < CRITICAL and floors.own_bigram < (1 - RARELY) * floors.own_unigram
    made, (training, held) = subject.seen.get("experiment"), scores(subject)
    if not tokens and (made is None or made.cause is not None):  # only where nothing that was tried learns more
        return
    if not was_trained(subject) or training is None or held is None or task(subject).kind == "unknown":
        return
    constant = judged_constant(subject)
    own, other = (
        skill(subject, training, constant_loss(subject)),
        skill(subject, held, constant, judged_majority(subject)),
    )
    if own > PART or other > NOTHING or held.samples < FEWEST:
        return
    around = relation_of(at_places(sample))
    if around is not None and around.p_value * PERMUTATIONS <= 1 and around.correlation - around.null > around.visible:
        return  # what lies around a place of an image tells of its target: it is the network that does not learn
    if tokens and floors is not None:
        yield _of_tokens(floors)
        return
    yield Finding(
        severity="warning",
        where="targets",
        says=f"The network learns nothing that generalizes to other data: its held-out loss is {held.loss:.3g}, and "
        f"{constant:.3g} when ignoring the input. The targets may belong to other inputs.",
        remedy="look at ten samples with their targets; check that "
        "inputs and targets were shuffled, sorted or joined with the same index",
        evidence=(evidence("loss on held-out data", held.loss, stderr=held.stderr),),
    )


def _of_tokens(floors: TokenFloors) -> Finding:
    return Finding(
        severity="critical",
        where="targets",
        says=f"The inputs say nothing about the targets: knowing the token at a position lowers the loss of guessing its target "
        f"only from {floors.unigram:.3g} to {floors.bigram:.3g}, that of guessing the next input token from "
        f"{floors.own_unigram:.3g} to {floors.own_bigram:.3g}. The targets belong to other inputs.",
        remedy="look at ten samples with their targets; shuffle inputs and targets together, with one index",
        evidence=(
            evidence("loss when counting targets", floors.unigram),
            evidence("the same, given the input at their position", floors.bigram),
        ),
    )


def _own_correlation(subject: Subject) -> tuple[float, float] | None:
    """That of a trained network's answers with held-out targets, and its error; None where it cannot be told."""
    if subject.model is None or not validation_batches(subject) or not was_trained(subject):
        return None
    held_out = sample_of(validation_batches(subject))
    target = None if held_out is None else held_out.target
    if target is None or len(target) < FEWEST:
        return None
    with untouched(subject.model), torch.no_grad():
        answers = [subject.answer(batch) for batch in validation_batches(subject)]
    if not all(isinstance(answer, Tensor) and answer.ndim <= 2 for answer in answers):
        return None
    answer = torch.cat(answers).double()
    answer = answer.reshape(len(answer), -1)
    classes = classes_in(target)
    if classes is not None and answer.shape[1] > int(classes.max()):
        answer, truth = answer.softmax(1), torch.nn.functional.one_hot(classes, answer.shape[1]).double()
        there = truth.any(0)
        answer, truth = answer[:, there], truth[:, there]
    else:
        truth = (target if classes is None else classes).double().reshape(len(target), -1)
    if answer.shape != truth.shape or not bool(torch.isfinite(answer).all()):
        return None
    return float(correlations(answer, truth)), 1 / math.sqrt(len(truth))


def _learned_by_a_copy(subject: Subject) -> float | None:
    """By how many standard errors a short training on a copy beats ignoring the input on samples it has not seen."""
    if subject.optimizer is None or not subject.has("loss"):
        return None
    score = Trial(subject, AS_IT_IS).advance(A_RUN).score()
    constant = judged_constant(subject)
    if score is None or not math.isfinite(constant):
        return None
    return constant - score.loss - SURE * score.stderr


def _finding(relation: Relation, witness: str, *, nothing: bool) -> Finding:
    severity: Severity = "critical" if nothing else "warning"
    of = "labels" if relation.classes else "targets"
    what = f"The inputs say {'nothing' if nothing or relation.p_value * PERMUTATIONS > 1 else 'little'} about the {of}"
    return Finding(
        severity=severity,
        where="targets",
        says=f"{what}: the predictions of a kernel machine have a correlation of {relation.correlation:.2f} with them (permuted "
        f"{of}: {relation.null:.2f} ± {relation.null_error:.2f}, p = {relation.p_value:.2g}; with {relation.samples} samples "
        f"{relation.visible:.2f} would be visible), and {witness}. Whatever a network fits beyond that, it memorizes.",
        remedy="look at ten samples with their targets; check that "
        "inputs and targets were shuffled, sorted or joined with the same index",
        evidence=(
            evidence("correlation of a kernel machine's predictions", relation.correlation, stderr=relation.null_error),
            evidence("the same with permuted targets", relation.null, stderr=relation.null_error),
            evidence("p-value of the permutations", relation.p_value),
        ),
    )


ailment = Ailment(question="Are the targets unrelated to the inputs?", needs={"model", "data", "loss"}, judge=judge)
