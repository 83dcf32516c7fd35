"""Does the schedule end too early, or never warm up?

The learning rate of every group is recorded during training. A schedule that counts epochs but is stepped after each batch
ends near zero early in the run; a warm-up that counts more steps than the run has never ends. Both are facts: for at least half
of the steps the learning rate was below a fiftieth of the optimizer's own. A trial shows whether that costs anything: the same
training at the optimizer's learning rate throughout, or the run continued at it. During training it is reported when the
learning rate is so small a share of its largest that float32 would round it away.
"""

import itertools
import math
from collections.abc import Iterator
from functools import partial

import torch
from torch import nn

from theodolite.core.ailment import Ailment, Finding, evidence
from theodolite.core.run import Run
from theodolite.core.subject import Subject
from theodolite.evidence.experiment import longest_trial
from theodolite.evidence.interventions import Intervention, found_by
from theodolite.evidence.start import base_lr, is_warming_up, largest_lr
from theodolite.evidence.thresholds import CRITICAL, NOTHING, WORTH
from theodolite.evidence.trial import Change, warming_up


def _made_with(subject: Subject) -> float:
    """The step that the optimizer was created with, or the largest that looks have seen."""
    groups = [] if subject.optimizer is None else subject.optimizer.param_groups
    return max([largest_lr(subject), *(base_lr(group) for group in groups)])


def share_without_step(subject: Subject) -> float:
    """The share of the run for which the step was next to nothing; not a number before two looks."""
    rates = () if subject.run is None else subject.run.rates
    if subject.optimizer is None or len(rates) <= 2 or not _made_with(subject):
        return math.nan
    steps = [b - a for (a, _), (b, _) in itertools.pairwise(rates)]
    low = [lr < NOTHING * _made_with(subject) for _, lr in rates]
    idle = [before and after for before, after in itertools.pairwise(low)]  # at least: looks do not see between them
    return sum(n for n, at_rest in zip(steps, idle, strict=True) if at_rest) / max(1, sum(steps))


def _says(subject: Subject) -> str:
    assert subject.run is not None
    lrs = [lr for _, lr in subject.run.rates]
    share, top = share_without_step(subject), _made_with(subject)
    never = max(lrs) < NOTHING * top
    how = "never rose" if never else f"fell from {max(lrs):.3g} to {lrs[-1]:.3g} early"
    part = "the whole run" if share == 1 else f"at least {share:.0%} of the run"
    return (
        f"The learning rate {how}: for {part} it was below {NOTHING:.0%} of the {top:g} that the "
        "optimizer was created with."
    )


REMEDY = (
    "make the schedule as long as the run: total_steps = epochs * len(loader) if scheduler.step() follows each batch, "
    "or call scheduler.step() once per epoch"
)


def judge(subject: Subject) -> Iterator[Finding]:
    if subject.run is not None and len(subject.run.silent.get("schedule ended", ())) == 1:  # it rises again
        yield from while_training(subject.run)
    share = share_without_step(subject)
    if share >= CRITICAL:
        yield Finding(
            severity="note",
            says=_says(subject),
            remedy=REMEDY,
            suggested={"schedule": "constant", "lr": _made_with(subject)},
            evidence=(evidence("share of the run with almost no learning rate", share),),
        )


def while_training(run: Run) -> Iterator[Finding]:
    """What the steps say: a schedule has come to nothing."""
    if counted := run.silent.get("schedule ended"):
        seen = f"The schedule has ended: the learning rate was practically 0 at {counted[0]} of {counted[-1]} steps."
        yield Finding(severity="warning", says=seen if len(counted) > 1 else f"{counted[0]}.", remedy=REMEDY)


def interventions(subject: Subject) -> Iterator[Intervention]:
    """The same training with the step that it was made with, throughout; where it still rises, after a tenth of the steps."""
    if is_warming_up(subject):
        steps, top = max(1, int(WORTH * longest_trial(subject))), _made_with(subject)
        lrs = [] if subject.run is None else subject.run.lrs
        says = (
            f"The warm-up does not end: the learning rate rose from {lrs[0]:.3g} to {lrs[-1]:.3g} over the whole run."
        )
        remedy = f"lr={top:.3g} after a warm-up over the first tenth of the steps"

        def change(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
            _constant(subject, model, optimizer)
            warming_up(steps, model, optimizer)

        found = found_by(says, remedy, {"lr": top, "warm_up": WORTH})
        yield Intervention(Change("shorter warm-up", prepare=change), found, rank=6, sign=True)
    if share_without_step(subject) >= CRITICAL:
        found = found_by(_says(subject), REMEDY, {"schedule": "constant", "lr": _made_with(subject)})
        yield Intervention(Change("no schedule", prepare=partial(_constant, subject)), found, rank=6, sign=True)
        yield Intervention(Change("more steps", from_here=True), found, rank=6, sign=True)


def _constant(subject: Subject, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    top, own = _made_with(subject), [] if subject.optimizer is None else subject.optimizer.param_groups
    most = max((base_lr(group) for group in own), default=0.0)
    lrs = [top * (base_lr(group) / most if most > 0 else 1.0) for group in own]

    def before(optimizer: torch.optim.Optimizer, *_: object) -> None:
        for group, lr in zip(optimizer.param_groups, lrs, strict=False):
            group["lr"] = lr

    optimizer.register_step_pre_hook(before)


ailment = Ailment(
    question="Does the schedule end too early, or never warm up?",
    needs={"model", "data", "loss", "optimizer", "run"},
    judge=judge,
    interventions=interventions,
    while_training=while_training,
)
