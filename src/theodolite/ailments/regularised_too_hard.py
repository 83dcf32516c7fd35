"""Is weight decay or dropout so strong that the network cannot even fit its training data?

The training is tried without it, from the same start, and both are judged on held-out data with dropout off, so whatever
regularization gains there counts in its favor. It is reported only if training without it recovers what the run has lost. The
weaker setting that is suggested has been tried too. If nothing was learned, and two passes of one input through dropout differ
more than two inputs do, dropout of more than one half drowns the signal: that is a fact and needs no trial.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import nn

from theodolite.core.ailment import Ailment, Finding, evidence
from theodolite.core.state import untouched
from theodolite.core.subject import Subject
from theodolite.evidence.batches import batches, first_rows
from theodolite.evidence.drawn_outputs import members_of
from theodolite.evidence.interventions import Intervention, Outcome, finding_of
from theodolite.evidence.start import decay_of, largest_lr, steps_made, was_trained
from theodolite.evidence.task import is_finite, task
from theodolite.evidence.thresholds import A_FEW, LADDER, MOST, PARTS, ROWS, WORTH
from theodolite.evidence.trial import Change, Trial, present_skill

DROPOUTS = (0.2, 0.1)
"""Dropouts that are tried in turn where none at all helps."""

USUAL = nn.Dropout().p
"""Dropout up to which only a signal that is weak for another reason is drowned."""

FORGETS = 5.0
"""Weights decay by a factor of e in 1 / (lr * decay) steps: a run of so many of those times is made of its last steps alone."""


def judge(subject: Subject) -> Iterator[Finding]:
    drop = max((m.p for m in _dropouts(subject.model)), default=0.0)
    if drop <= USUAL or not was_trained(subject) or not is_finite(subject):
        return
    if present_skill(subject) > WORTH or len(batches(subject)[0]) < 2:  # one sample differs from no other
        return
    noise, signal = _noise_and_signal(subject)
    if not noise > A_FEW * signal:  # a mean over four samples of a batch still has as much noise as signal
        return
    yield Finding(
        severity="critical",
        says=f"Dropout of {drop:g} drowns the signal: two passes of the same input differ {math.sqrt(noise / signal):.3g} times "
        "as much as two inputs do, and nothing was learned.",
        remedy=f"p={DROPOUTS[0]:g} in nn.Dropout",
        suggested={"dropout": DROPOUTS[0]},
        evidence=(evidence("variance from dropout, relative to that between inputs", noise / signal),),
    )


@torch.no_grad()
def _noise_and_signal(subject: Subject) -> tuple[float, float]:
    """The variance of outputs from pass to pass, and that from input to input of their mean over passes."""
    batch = first_rows(batches(subject)[0], ROWS)
    with untouched(subject.model, training=True):
        torch.manual_seed(0)
        passes = torch.stack([members_of(subject.answer(batch))[task(subject).member].double() for _ in range(PARTS)])
    noise = float(passes.var(0).mean())
    between = float(passes.mean(0).reshape(len(batch), -1).var(0).mean()) - noise / PARTS
    return noise, max(between, 1e-12 * noise)


def interventions(subject: Subject) -> Iterator[Intervention]:
    """Training without weight decay, and without dropout."""
    decay, drop = decay_of(subject), max((m.p for m in _dropouts(subject.model)), default=0.0)
    if decay:
        forgets = largest_lr(subject) * decay * steps_made(subject) > FORGETS
        change = Change("weight_decay 0", prepare=partial(with_decay, 0.0))
        yield Intervention(change, partial(_found, "weight_decay", decay), rank=20, sign=forgets)
    if drop > max(DROPOUTS):
        yield Intervention(
            Change("dropout 0", prepare=partial(with_dropout, 0.0)), partial(_found, "dropout", drop), rank=21
        )


def _found(kind: str, value: float, outcome: Outcome) -> Finding:
    option, trial = _weaker(outcome, kind, value)
    outcome = replace(outcome, trial=trial)
    what, word = ("Weight decay", "weight_decay") if kind == "weight_decay" else ("Dropout", "p")
    return finding_of(
        outcome,
        f"{what} of {value:g} keeps the network from fitting its data.",
        f"{word}={option:g}" + ("" if kind == "weight_decay" else " in nn.Dropout"),
        {kind: option},
    )


def _weaker(outcome: Outcome, kind: str, value: float) -> tuple[float, Trial]:
    """The strongest setting that trains nearly as well as none, and its trial."""
    change = with_decay if kind == "weight_decay" else with_dropout
    without, plain = outcome.trial.score(), outcome.plain.score()
    options = [value / factor for factor in LADDER] if kind == "weight_decay" else [d for d in DROPOUTS if d < value]
    for option in options:
        arm = Trial(outcome.subject, Change(f"{kind} {option:g}", prepare=partial(change, option))).advance(
            outcome.trial.steps
        )
        score = arm.score()
        if score is None or without is None:
            continue
        if plain is None or plain.loss - score.loss > MOST * (plain.loss - without.loss):
            return float(f"{option:.2g}"), arm
    return 0.0, outcome.trial


def _dropouts(model: nn.Module) -> list[Any]:
    return [m for m in model.modules() if isinstance(m, nn.modules.dropout._DropoutNd)]


def with_decay(value: float, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """The change that sets the weight decay of every group that has one."""
    for group in optimizer.param_groups:
        if group.get("weight_decay"):
            group["weight_decay"] = value


def with_dropout(value: float, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """The change that sets every dropout that is stronger."""
    for module in _dropouts(model):
        module.p = min(module.p, value)


ailment = Ailment(
    question="Is it regularized too strongly?",
    needs={"model", "data", "loss", "optimizer"},
    judge=judge,
    interventions=interventions,
)
