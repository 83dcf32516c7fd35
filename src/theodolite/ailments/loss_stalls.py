"""Has the loss stopped high without any other explanation?

What remains when no fact and no trial has found a cause. Either the loss is not below that of ignoring the input (within three
standard errors and 2 %) after fifty steps; or the schedule reduced the learning rate and the run, continued on a copy, learns
on; or a plain copy of the training does clearly better than the run did, so something in the training loop is different; or a
kernel ridge regression with the kernel of an infinitely wide network does better on part of the same samples (a healthy run
keeps at least nine tenths of its held-out skill: of 43 healthy runs on numeric inputs the lowest kept 0.956); or counting pairs
of tokens does. A model of tokens whose outputs do not depend on their order is tried with a learned position embedding.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.ailments.classes_unbalanced import weighs_classes
from theodolite.core.ailment import Ailment, Finding, evidence
from theodolite.core.state import untouched
from theodolite.core.subject import Subject
from theodolite.evidence.batches import batches, distinct_batches, first_rows, times_drawn, validation_batches
from theodolite.evidence.constant_answers import compares_answers, constant_loss
from theodolite.evidence.drawn_outputs import members_of, quiet
from theodolite.evidence.experiment import Experiment, has_won
from theodolite.evidence.interventions import Intervention, Outcome, finding_of, found_by
from theodolite.evidence.kernel_machine import attained
from theodolite.evidence.loss_checks import trained_beside
from theodolite.evidence.start import (
    after_steps,
    ended_early,
    largest_lr,
    lr_left,
    origin_tensors,
    steps_are_known,
    steps_made,
)
from theodolite.evidence.task import Score, has_rare_classes, is_finite, majority, scores, task
from theodolite.evidence.thresholds import A_FEW, A_RUN, CRITICAL, MISSED, NOTHING, ROUNDING, SURE, WELL, WORTH
from theodolite.evidence.token_counts import token_floors
from theodolite.evidence.trial import Change, judged_constant, judged_majority, present_score, present_skill
from theodolite.io.batches import Batch


def interventions(subject: Subject) -> Iterator[Intervention]:
    """The run gone on with at its largest step, where the schedule has taken it away; places, where a model knows of none."""
    if knows_no_order(subject):
        says = "The outputs do not depend on the order of the tokens: the model is given no information on their positions."
        remedy = "add a position embedding: x = token(ids) + position(torch.arange(ids.shape[1]))"
        found = found_by(says, remedy, {"add": "places"})
        yield Intervention(Change("with places", prepare=partial(_with_places, subject)), found, rank=12, sign=True)
    if steps_made(subject) and ended_early(subject):
        yield Intervention(Change("more steps", from_here=True), _scheduled, rank=35)


def knows_no_order(subject: Subject) -> bool:
    """Whether a model of tokens answers alike wherever they stand: the same token at all places, or tokens in another order."""
    model, whole = subject.model, batches(subject)
    given = whole[0].tensors() if whole else []
    if (
        model is None
        or len(given) != 1
        or given[0].is_floating_point()
        or given[0].ndim != 2
        or given[0].shape[1] < A_FEW
    ):
        return False
    if not any(isinstance(m, nn.Embedding) for m in model.modules()):
        return False
    batch = first_rows(whole[0], A_FEW)
    with untouched(model), torch.no_grad(), quiet():
        own = members_of(subject.answer(batch))
        if len(own) != 1 or own[0].ndim < 2:
            return False
        x = batch.tensors()[0]
        asked = x[:, :1].expand_as(x) if own[0].ndim > 2 else x.flip(1)
        keywords = dict.fromkeys(batch.keywords, asked)
        told = members_of(subject.answer(Batch(() if keywords else (asked,), keywords, batch.target)))[0]
    wanted = told[:, :1].expand_as(told) if told.ndim > 2 else own[0]
    return bool((told - wanted).abs().amax() <= ROUNDING * own[0].abs().amax())


def _with_places(subject: Subject, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """The change that adds a learned vector for each place behind every table of tokens."""
    count = batches(subject)[0].tensors()[0].shape[1]
    settings = {key: v for key, v in optimizer.param_groups[0].items() if key not in ("params", "param_names")}
    for table in [m for m in model.modules() if isinstance(m, nn.Embedding)]:
        size = float(table.weight.detach().std())
        places = nn.Parameter(size * torch.randn(count, table.embedding_dim).to(table.weight))
        optimizer.add_param_group({"params": [places], **settings})

        def add(module: nn.Module, args: Any, output: Tensor, places: Tensor = places) -> Tensor:
            return output + places[: output.shape[1]] if output.ndim == 3 else output

        table.register_forward_hook(add)


def _scheduled(outcome: Outcome) -> Finding:
    lr = largest_lr(outcome.subject)
    found = finding_of(
        outcome,
        f"The schedule reduced the learning rate from {lr:.3g} to {lr * lr_left(outcome.subject):.2g} while there was "
        "more to learn.",
        f"a slower schedule: keep lr={lr:.3g} for longer, and let it reach zero only at the last step",
        {"schedule": "constant", "lr": lr},
    )
    return found if outcome.misses_much else replace(found, severity="note")  # more steps always gain something


def sign(subject: Subject) -> bool:
    """Whether the model is no better than ignoring the input."""
    score = present_score(subject)
    return score is None or not score.loss < (1 - NOTHING) * judged_constant(subject)


def judge(subject: Subject) -> Iterator[Finding]:
    if steps_made(subject) < A_RUN or not steps_are_known(subject):
        return  # a pretrained network before its first step has not stalled
    if not is_finite(subject) or has_won(subject) or (subject.optimizer is not None and trained_beside(subject)):
        return
    found = (
        [*_not_reproduced(subject)]
        or [*_at_constant(subject)]
        or [*_below_a_kernel(subject)]
        or [*_below_pairs(subject)]
    )
    yield from found


def _at_constant(subject: Subject) -> Iterator[Finding]:
    made: Experiment | None = subject.seen.get("experiment")
    tried = made is not None and not made.why_not and not made.too_short
    score, constant = present_score(subject), judged_constant(subject)
    if not _is_constant(score, constant, judged_majority(subject)):
        if not present_skill(subject) <= WORTH or not tried or not validation_batches(subject):
            return
        # what it trains on tells, too: by chance, or with other targets, the rest may be a little better
        if has_rare_classes(subject):
            return  # the shares of words fit a sample of text better than any other
        score, constant = scores(subject)[0], constant_loss(subject)
        if not _is_constant(score, constant, majority(subject)):
            return
    assert score is not None
    yield Finding(
        severity="critical",
        says=f"Nothing was learned {after_steps(subject)}: the loss is {score.loss:.3g}, and {constant:.3g} when ignoring the "
        f"input.{' No change that was tried on a copy helped.' if tried else ''}",
        remedy="look at ten samples: is what should be alike closer than what should differ?"
        if compares_answers(subject)
        else "train on one batch until its loss is zero: if it cannot, the path from input to loss is broken; if it can, "
        "look at the data",
        evidence=(
            evidence("loss", score.loss, stderr=score.stderr),
            evidence("loss when ignoring the input", constant),
        ),
    )


def _is_constant(score: Score | None, constant: float, common: float) -> bool:
    """Whether a score is no better than ignoring the input, by its loss and by its right answers."""
    if score is None or not math.isfinite(constant):
        return False
    if score.loss < constant - NOTHING * abs(constant) or score.loss + SURE * score.stderr < constant:
        return False
    # with more right answers the constant one is only the better calibrated
    return not score.accuracy > common + SURE * score.accuracy_error + NOTHING


def _not_reproduced(subject: Subject) -> Iterator[Finding]:
    made: Experiment | None = subject.seen.get("experiment")
    if made is None or made.reproduced or made.plain is None:
        return
    copy, score = made.plain.score(), present_score(subject)
    if copy is None or score is None or subject.model is None:
        return
    differs = "Something in the training loop differs from a plain step."
    remedy = "compare the loop with: optimizer.zero_grad(); loss(model(x), y).backward(); optimizer.step()"
    size, other = _size_beside_start(subject, subject.model), _size_beside_start(subject, made.plain.model)
    if size < CRITICAL < other:  # beside the start, for steps that are not made leave the weights as they were
        differs = f"The training loop shrinks the weights to {size:.2g} times their first size; the copy's are at {other:.2g}."
        remedy = (
            "leave out what shrinks them, as the copy did: a penalty that is added to the loss, or a decay in the loop"
        )
    yield Finding(
        severity="critical" if sign(subject) else "warning",
        says=f"A plain copy of this training reaches a loss of {copy.loss:.3g} in {made.plain.steps} steps on the same batches; "
        f"the run is at {score.loss:.3g} {after_steps(subject)}. {differs}",
        remedy=remedy,
        evidence=(evidence("loss of the copy", copy.loss, stderr=copy.stderr), evidence("loss of the run", score.loss)),
    )


def _size_beside_start(subject: Subject, model: nn.Module) -> float:
    """The norm of all parameters, in that of the weights before training; not a number where these are not known."""
    start, own = origin_tensors(subject), dict(model.named_parameters())
    if start is None or not own.keys() <= start.keys():
        return math.nan
    before = math.hypot(*(float(start[name].double().norm()) for name in own))
    return math.hypot(*(float(p.detach().double().norm()) for p in own.values())) / before if before else math.nan


def _below_a_kernel(subject: Subject) -> Iterator[Finding]:
    if not all(p.requires_grad for p in subject.model.parameters()):
        return  # part of it is kept as it is on purpose, which may cost what it may
    if times_drawn(subject, distinct_batches(subject)) or weighs_classes(subject):
        return  # the kernel machine learns how often each class occurs, the run on purpose not
    goes_on = subject.run is not None and _still_falls(subject)
    kept = 1 - MISSED if goes_on else WELL  # more steps would give some of it
    both = attained(subject)
    if both is None or both.kernel <= WORTH:  # where no kernel learns either, the data may not allow more
        return
    if not both.skill <= kept * both.kernel or not both.kernel - both.skill > SURE * both.stderr:
        return
    said = (
        "the network is {0:.0%} of the way from the majority class to perfect held-out accuracy; a kernel ridge regression on "
        "{1} of the same samples gets {2:.0%} of the way"
        if task(subject).kind != "numbers"
        else "the network explains {0:.0%} of the variance of the held-out targets; a kernel ridge regression on {1} of the same "
        "samples explains {2:.0%}"
    )
    yield Finding(
        severity="warning",
        says=f"{after_steps(subject).capitalize()} {said.format(both.skill, both.seen, both.kernel)}. The data allow more: "
        "something holds the run back.",
        remedy="train on one batch until its loss is zero; then change one thing at a time: batch order, lr, width",
        evidence=(
            evidence("held-out skill of the network", both.skill, stderr=both.stderr),
            evidence("held-out skill of the kernel machine", both.kernel),
        ),
    )


def _below_pairs(subject: Subject) -> Iterator[Finding]:
    """Tokens whose pairs, counted on half of the same samples, tell far more of the next one than the network does."""
    floors, score = token_floors(subject), present_score(subject)
    if floors is None or score is None or steps_made(subject) < A_RUN:
        return
    counted, own = floors.unigram - floors.bigram, judged_constant(subject) - score.loss
    if counted < NOTHING * floors.unigram or own + SURE * score.stderr > CRITICAL * counted or _still_falls(subject):
        return
    yield Finding(
        severity="warning",
        says=f"{after_steps(subject).capitalize()} the loss is {score.loss:.3g}; counting which token follows which, in half of "
        f"the same text, gives {floors.bigram:.3g}, ignoring the input gives {floors.unigram:.3g}. Something holds the run back.",
        remedy="train on one batch until its loss is zero; then change one thing at a time: lr, warm-up, width",
        evidence=(
            evidence("loss", score.loss, stderr=score.stderr),
            evidence("loss when counting pairs of tokens", floors.bigram),
        ),
    )


def _still_falls(subject: Subject) -> bool:
    """Whether the loss of the probe fell by more than a fiftieth from the third quarter of the run to the last, or is unknown."""
    seen = [(m.step, m.loss) for m in subject.run.moments if math.isfinite(m.loss)] if subject.run is not None else []
    end = seen[-1][0] if seen else 0
    before, last = (
        [loss for step, loss in seen if low * end < step <= high * end] for low, high in ((0.5, 0.75), (0.75, 1.0))
    )
    if not before or not last:
        return True
    return sum(before) / len(before) - sum(last) / len(last) > NOTHING * sum(last) / len(last)


ailment = Ailment(
    question="Has the loss stopped falling too early?",
    needs={"model", "data", "loss"},
    judge=judge,
    interventions=interventions,
    sign=sign,
)
