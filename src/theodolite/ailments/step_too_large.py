r"""Is the learning rate so large that the loss does not come down, although a smaller one would work?

On a quadratic of curvature $\lambda$ gradient descent diverges above a learning rate of $2/\lambda$ (higher with momentum,
another limit with a preconditioner). This limit is not trusted here: the same training runs on copies with smaller learning
rates, from the same start, and the learning rate is too large only if a smaller one recovers what the run has lost. A run that
fits its training data does not suffer from large steps, whatever it lacks elsewhere. During training the symptom is the loss on
the probe: it doubles, or it rises while the last step gained at most a fifth of what its gradient predicted.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import nn

from theodolite.core.ailment import Ailment, Finding, figure
from theodolite.core.run import Run, RunMoment
from theodolite.core.subject import Subject
from theodolite.evidence.experiment import has_fitted
from theodolite.evidence.interventions import Intervention, Outcome, finding_of, step_ladder
from theodolite.evidence.start import decay_of, largest_lr
from theodolite.evidence.thresholds import (
    CRITICAL,
    LADDER,
    MOST,
    NOTHING,
    PART,
    RARELY,
    THOUSANDFOLD,
    WELL,
    WORST,
    WORTH,
)
from theodolite.evidence.trial import Change, Trial, gain_of, present_skill

AGAIN = 3
"""Looks in turn that must have seen a step overshoot: a single one may meet an odd batch."""
CLIP = 1.0
"""The norm at which people clip gradients."""


def interventions(subject: Subject) -> Iterator[Intervention]:
    """Smaller steps, each tried only where the one before it helped; not where the loss did come down on training data.

    A step takes off the product of learning rate and weight decay: a smaller one alone leaves that as it is.
    """
    if largest_lr(subject) and not has_fitted(subject):
        for one in step_ladder([1 / factor for factor in LADDER], _found, rank=40):
            decays = partial(_decaying_as_fast, one.change.lr)
            alone = replace(one.change, name=f"{one.change.name}, as much decay", prepare=decays)
            yield replace(one, alone=alone if decay_of(subject) else None)


def _decaying_as_fast(factor: float, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    for group in optimizer.param_groups:
        if group.get("weight_decay"):
            group["weight_decay"] /= factor


def _found(outcome: Outcome) -> Finding:
    trial = _refined(outcome)
    outcome = replace(outcome, trial=trial)
    was = largest_lr(outcome.subject)
    lr = float(f"{was * trial.change.lr:.2g}")
    learns = outcome.reference is not None and present_skill(outcome.subject, outcome.reference) > NOTHING
    effect = "a smaller one gets further in as many steps" if learns else "the loss does not come down"
    says, remedy = f"The learning rate of {was:g} is too large: {effect}.", f"lr={lr:g}"
    if not outcome.after_run and _held_by_clipping(outcome):
        found = finding_of(outcome, f"The learning rate of {was:g} is too large without clipping.", remedy, {"lr": lr})
        clip = f"torch.nn.utils.clip_grad_norm_(model.parameters(), {CLIP:g}) before each step, or {remedy}"
        return replace(found, severity="note", remedy=clip)
    return finding_of(outcome, says, remedy, {"lr": lr})


def _held_by_clipping(outcome: Outcome) -> bool:
    """Whether the same step with clipped gradients recovers most of it: before a run nobody knows whether its loop will clip."""

    def clip(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        held = [p for group in optimizer.param_groups for p in group["params"]]

        def clip_first(*_: object) -> None:
            torch.nn.utils.clip_grad_norm_(held, CLIP)

        optimizer.register_step_pre_hook(clip_first)

    arm = Trial(outcome.subject, Change("clipped", prepare=clip)).advance(outcome.trial.steps)
    return not gain_of(outcome.subject, outcome.trial.score(), arm.score()).is_worth(1 - MOST) and not arm.diverged


def _refined(outcome: Outcome) -> Trial:
    """The arm beside it, a third or three times its step, where that does better; of near equals the smaller step."""
    subject, found, plain = outcome.subject, outcome.trial, outcome.plain
    factor = found.change.lr
    others = [Change(f"lr x {other:g}", lr=other) for other in (0.3 * factor, 3 * factor) if other < WELL]
    arms = [found, *(Trial(subject, change).advance(found.steps) for change in others)]
    scored = [(arm, arm.score()) for arm in arms]
    known = [(arm, score.loss) for arm, score in scored if score is not None]
    best = min(loss for _, loss in known)
    start = plain.score()
    room = WORTH * abs((max(plain.losses[:1], default=best) if start is None else start.loss) - best)
    good = [arm for arm, loss in known if loss <= best + room]
    return min(good, key=lambda arm: arm.change.lr)


def while_training(run: Run) -> Iterator[Finding]:
    """What the looks say, at no price beyond theirs; of an optimizer that maximizes a loss that rises says nothing."""
    told = [moment for moment in run.moments if "step_loss" in moment.facts]
    if len(told) < 2 or run.events.get("maximizes"):
        return
    losses = [moment.facts["step_loss"] for moment in told]
    first, now, last = losses[0], losses[-1], told[-1]
    if not math.isfinite(now):
        finite = [value for value in losses if math.isfinite(value)]
        seen = "The loss is not finite"
        if finite:
            seen += f"; it started at {figure(first)}, and its last finite value was {figure(finite[-1])}"
        yield _live(seen, last, 0.1 * last.lr)
        return
    began, lately = (last.facts.get(name, math.nan) for name in ("first_training_loss", "last_training_loss"))
    ratio, overshot = last.facts.get("trust", math.nan), _overshot(last)
    elsewhere = lately < now / WORST and not overshot  # training has a third of it, and steps do what gradients promise
    if elsewhere or (lately < CRITICAL * began and now <= THOUSANDFOLD * first):
        return  # what rises is an old batch whose targets are no longer those of training
    lowest = min(losses)
    seen = f"The loss went from {figure(first)} to {figure(now)}"
    change, promise = last.facts.get("change", math.nan), last.facts.get("predicted", math.nan)
    step = (
        ""
        if math.isnan(ratio)
        else f"; the last step changed it by {change:+.2g}, the gradient predicted {promise:+.2g}"
    )
    whole = [moment for moment in told if moment.facts.get("thinned", 0.0) < 2]
    if first > 0 and now > THOUSANDFOLD * first:
        yield _live(f"{seen}, more than a thousandfold: the run diverges", last, 0.1 * last.lr)
    elif first > 0 and (now > 2 * first or (now > (1 + PART) * first and overshot)):
        yield _live(seen + step, last)
    elif first > 0 and now > WELL * first and len(whole) > AGAIN and all(map(_overshot, whole[-AGAIN:])):
        yield _live(f"{seen}, and steps overshot the last {AGAIN} times it was checked{step}", last)
    elif first > 0 and lowest < PART * first < now and overshot and ratio < 0:
        yield replace(_live(f"{seen} after a low of {lowest:.3g}{step}", last), severity="warning")
    else:
        yield from _spiked(last, first, now)


def _spiked(last: RunMoment, first: float, now: float) -> Iterator[Finding]:
    """Training's own losses rose to a multiple of the first one, and the run has not made up for it since."""
    began, peak = (last.facts.get(name, math.nan) for name in ("first_training_loss", "highest_training_loss"))
    if began > 0 and peak > WORST * began and now > CRITICAL * first:
        seen = f"The training loss rose from {figure(began)} to {figure(peak)} and is now {now / first:.0%} of where it started"
        found = _live(seen, last, 0.1 * last.lr)
        yield found if now > WELL * first else replace(found, severity="warning")


def _overshot(moment: RunMoment) -> bool:
    """Whether the last step was bold and gained little of what the gradient promised, or did harm."""
    facts = moment.facts
    loss, promised = abs(facts.get("step_loss", 0.0)), abs(facts.get("predicted", 0.0))
    return loss > 0 and promised > RARELY * loss and facts.get("trust", math.nan) < PART


def _live(seen: str, moment: RunMoment, lr: float = math.nan) -> Finding:
    known = moment.lr > 0
    lr = float(f"{lr:.2g}") if lr == lr and known else allowed_lr([moment]) if known else math.nan
    return Finding(
        severity="critical",
        says=seen + ".",
        remedy=f"lr at most {lr:g}" if known else "a smaller lr",
        suggested={"lr": lr} if known else {},
    )


def allowed_lr(moments: Sequence[RunMoment]) -> float:
    """The largest step that the last look's own numbers allow; a third of the present one where it has none."""
    moment = moments[-1]
    facts, lr = moment.facts, moment.lr
    bounds = [0.3 * lr]
    if facts.get("sharpness", 0.0) > facts.get("edge", math.inf):
        bounds.append(0.5 * lr * facts["edge"] / facts["sharpness"])
    best = facts.get("best_factor", math.nan)
    if facts.get("predicted", 0.0) < 0 and 0 < best < 1:
        bounds.append(lr * best)
    return float(f"{min(bounds):.2g}")


ailment = Ailment(
    question="Is the learning rate too large?",
    needs={"model", "data", "loss", "optimizer"},
    interventions=interventions,
    while_training=while_training,
    laws=("edge-of-stability",),
)
