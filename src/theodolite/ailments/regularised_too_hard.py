"""Do weight decay or dropout hold the network down, so that it cannot even fit its training data?

The training is tried without them, from its own start, and judged on held-out data with dropout off in both, so that what a
regularizer gains there counts for it. It is an ailment only where training without it recovers what the run has lost. The
weaker setting that is suggested has been tried too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from theodolite.core.ailment import Ailment, Finding
from theodolite.core.subject import Subject
from theodolite.evidence.experiment import Intervention, Outcome, finding_of
from theodolite.evidence.start import decay_of
from theodolite.evidence.trial import Change, Trial

WEAKER, DROPOUTS = (0.1, 0.01, 1e-3), (0.2, 0.1)
NEARLY = 0.8
"""The share of the gain of dropping the regularizer that the weaker setting must keep."""

Prepare = Callable[[nn.Module, torch.optim.Optimizer], None]


def interventions(subject: Subject) -> Iterator[Intervention]:
    """Training without weight decay, and without dropout."""
    assert subject.model is not None
    decay, drop = decay_of(subject), max((m.p for m in _dropouts(subject.model)), default=0.0)
    if decay:
        yield Intervention(Change("weight_decay 0", prepare=with_decay(0.0)), _found("weight_decay", decay), rank=20)
    if drop > max(DROPOUTS):
        yield Intervention(Change("dropout 0", prepare=with_dropout(0.0)), _found("dropout", drop), rank=21)


def _found(kind: str, value: float) -> Callable[[Outcome], Finding]:
    def finding(outcome: Outcome) -> Finding:
        option, trial = _weaker(outcome, kind, value)
        outcome = replace(outcome, trial=trial)
        what, word = ("Weight decay", "weight_decay") if kind == "weight_decay" else ("Dropout", "p")
        return finding_of(
            outcome,
            f"{what} of {value:g} keeps the network from fitting its data.",
            f"{word}={option:g}" + ("" if kind == "weight_decay" else " in nn.Dropout"),
            {kind: option},
        )

    return finding


def _weaker(outcome: Outcome, kind: str, value: float) -> tuple[float, Trial]:
    """The strongest setting that trains nearly as well as none, and its trial."""
    change = with_decay if kind == "weight_decay" else with_dropout
    without, plain = outcome.trial.score(), outcome.plain.score()
    options = [value * f for f in WEAKER] if kind == "weight_decay" else [d for d in DROPOUTS if d < value]
    for option in options:
        arm = Trial(outcome.subject, Change(f"{kind} {option:g}", prepare=change(option))).advance(outcome.trial.steps)
        score = arm.score()
        if score is None or without is None:
            continue
        if plain is None or plain.loss - score.loss > NEARLY * (plain.loss - without.loss):
            return float(f"{option:.2g}"), arm
    return 0.0, outcome.trial


def _dropouts(model: nn.Module) -> list[Any]:
    return [m for m in model.modules() if isinstance(m, nn.modules.dropout._DropoutNd)]


def with_decay(value: float) -> Prepare:
    """The change that sets the weight decay of every group that has one."""

    def change(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        for group in optimizer.param_groups:
            if group.get("weight_decay"):
                group["weight_decay"] = value

    return change


def with_dropout(value: float) -> Prepare:
    """The change that sets every dropout that is stronger."""

    def change(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        for module in _dropouts(model):
            module.p = min(module.p, value)

    return change


ailment = Ailment(
    question="Is it regularized too hard?", needs={"model", "data", "loss", "optimizer"}, interventions=interventions
)
