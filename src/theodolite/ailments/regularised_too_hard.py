"""Do weight decay or dropout hold the network down, so that it cannot even fit its training data?

The training is tried without them, from the start, for as many steps as the run had or time allows, and the loss is read with
dropout off in both. It is an ailment only where without the regularizer the loss ends far lower than with it, and the network
underfits: its training loss stands above half of a constant answer's (after the run, or after the trial), or the whole run left
more than the trial without did, by a tenth of a constant answer's loss. A run that has won nine tenths of what there is to win
is let alone, and so is one whose trial as it is wins them: it was short. The weaker setting that is suggested has been tried
too. The trial is won by chance once in 100 (three standard errors over 8 parts of the data or more).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.ailments._common.chart import Chart, seen
from theodolite.ailments._common.patients import patient
from theodolite.ailments._common.trials import (
    GOES_BADLY,
    LONG,
    Change,
    Loss,
    TrialComparison,
    has_won,
    longer_trial,
    steps_made,
)
from theodolite.core.ailment import Ailment, Finding

UNDERFITS, LEAST = 0.5, 0.4
"""The run's training loss must be above that share of a constant answer's; what must be taken off it."""
NEARLY = 0.8
"""The share of the gain of dropping the regularizer that the weaker setting must keep."""
WEAKER = (0.1, 0.01, 1e-3)
DROPOUTS = (0.2, 0.1)


def judge(chart: Chart) -> Iterator[Finding]:
    if chart.model is None or chart.optimizer is None or not chart.finite:
        return
    decay = max((float(group.get("weight_decay", 0.0) or 0.0) for group in chart.optimizer.param_groups), default=0.0)
    drop = max((m.p for m in _dropouts(chart.model)), default=0.0)
    made = steps_made(chart)
    if not decay and drop <= max(DROPOUTS):
        return
    if made and has_won(chart):
        return
    plain = longer_trial(chart, "undropped", steps=LONG, loss=_undropped(chart))
    if plain is None or not plain.losses:
        return
    if plain.after < (GOES_BADLY.training if made else UNDERFITS) * chart.chance:  # it fits as it is, given the steps
        return
    steps = len(plain.losses) if plain.after < float("inf") else LONG
    for kind, value in (("weight_decay", decay), ("dropout", drop)):
        found = _weaker(chart, plain, steps, kind, value) if value else None
        if found is not None:
            yield _finding(kind, value, *found)
            return


def _weaker(chart: Chart, plain: Any, steps: int, kind: str, value: float) -> tuple[float, TrialComparison] | None:
    """The strongest setting that trains nearly as well as none, and its trial."""
    change = with_decay if kind == "weight_decay" else with_dropout
    loss = _undropped(chart)
    without = longer_trial(chart, f"{kind} 0", change(0.0), steps=steps, loss=loss)
    if without is None or not TrialComparison(plain, without).is_better(LEAST):
        return None
    if made_lower(chart, without):
        return None
    options = [value * f for f in WEAKER] if kind == "weight_decay" else [d for d in DROPOUTS if d < value]
    for option in options:
        tried = longer_trial(chart, f"{kind} {option:g}", change(option), steps=steps, loss=loss)
        if tried is not None and plain.after - tried.after > NEARLY * (plain.after - without.after):
            return float(f"{option:.2g}"), TrialComparison(plain, tried)
    return 0.0, TrialComparison(plain, without)


def made_lower(chart: Chart, without: Any) -> bool:
    """Whether the run itself stands near what the trial without reached, or below: then nothing holds it down."""
    if not steps_made(chart) or chart.fit is None:
        return False
    own = chart.fit.training.loss
    worth = 0.0 if own > UNDERFITS * chart.chance else GOES_BADLY.training * chart.chance
    return bool(own - worth < without.after)


def _undropped(chart: Chart) -> Loss:
    """The user's loss; where it is only read and not learnt from, with dropout off."""

    def loss(model: nn.Module, batch: Any) -> Tensor:
        if torch.is_grad_enabled():
            return chart.loss_on(model, batch)
        modes = [(m, m.training) for m in _dropouts(model)]
        for module, _ in modes:
            module.training = False
        try:
            return chart.loss_on(model, batch)
        finally:
            for module, mode in modes:
                module.training = mode

    return loss


def _dropouts(model: nn.Module) -> list[Any]:
    return [m for m in model.modules() if isinstance(m, nn.modules.dropout._DropoutNd)]


def with_decay(value: float) -> Change:
    """The change that sets the weight decay of every group that has one."""

    def change(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        for group in optimizer.param_groups:
            if group.get("weight_decay"):
                group["weight_decay"] = value

    return change


def with_dropout(value: float) -> Change:
    """The change that sets every dropout that is stronger."""

    def change(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        for module in _dropouts(model):
            module.p = min(module.p, value)

    return change


def _finding(kind: str, value: float, option: float, tried: TrialComparison) -> Finding:
    plain, other = tried.as_it_is, tried.changed
    words = kind.replace("_", " ")
    return Finding(
        severity="warning",
        says=f"A {words} of {value:g} holds the network down: {len(other.losses)} steps on a copy take the training loss from "
        f"{plain.before:.3g} to {plain.after:.3g}; with {option:g} they take it to {other.after:.3g}.",
        remedy=f"{kind}={option:g}" if kind == "weight_decay" else f"nn.Dropout({option:g})",
        suggested={kind: option},
        evidence=(
            seen("loss after trial steps, as it is", plain.after, stderr=plain.stderr, where=f"{words} {value:g}"),
            seen("loss after trial steps, changed", other.after, stderr=other.stderr, where=f"{words} {option:g}"),
        ),
    )


def _adam(lr: float, decay: float = 0.0) -> Any:
    return lambda own: torch.optim.AdamW(own, lr, weight_decay=decay)


ailment = Ailment(
    question="Is it regularized too hard?",
    needs={"model", "data", "loss", "optimizer"},
    signs=("trial", "fit"),
    judge=judge,
    examples={
        "sick": (
            lambda seed: patient(seed, lambda own: torch.optim.SGD(own, 0.1, weight_decay=0.3)),
            lambda seed: patient(seed, _adam(3e-3), lambda: nn.Dropout(0.97)),
        ),
        "healthy": (
            lambda seed: patient(seed, _adam(3e-3, 0.01)),
            lambda seed: patient(seed, _adam(3e-3, 0.01), lambda: nn.Dropout(0.5)),
        ),
    },
    explains=("loss-stalls", "trained-too-short", "rank-lost", "signal-vanishes"),
)
