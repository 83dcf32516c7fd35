"""Has the loss stopped high: its schedule took the step away, nothing was learnt, or far less than a kernel machine learns?

A schedule has taken the step away where it is below a twentieth of its largest, and the run, taken up again on a copy with the
largest step, brings the loss clearly down on training and held-out data. Else: the best constant answer is found by descent on
that answer alone; the loss is at it where it is not below by more than three standard errors and a fiftieth. That is said only
of a run that has been made and where further steps on a copy do not bring the loss down either. Last: a ridge regression with
the kernel of an infinitely wide network, on some of the same samples, sets a standard that needs no trial. A run that keeps at
most nine tenths of its held-out skill, by three standard errors, stands too high; of 43 healthy runs with numbers as inputs the
lowest kept 0.956. Every ailment that explains it is shown in its place. A run that has come six standard errors and a fiftieth
below a constant answer is called stalled once in 700.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from theodolite.ailments._common.attainable import attained
from theodolite.ailments._common.chart import Chart, seen
from theodolite.ailments._common.patients import batches_of, clouds, network, patient, trained
from theodolite.ailments._common.trials import (
    SHORT,
    SURE,
    gone_on,
    has_won,
    longer_trial,
    run_in_words,
    step_left,
    steps_made,
)
from theodolite.core.ailment import Ailment, Finding

FEWEST = 50
"""Steps of a run from which on it is a run."""
BELOW = 0.02
KEPT = 0.9
"""The share of a kernel machine's skill that a run keeps at least."""
DEAD = 0.05
"""A step below that share of its largest was taken away by its schedule."""


def judge(chart: Chart) -> Iterator[Finding]:
    on = gone_on(chart) if step_left(chart) < DEAD else None
    if on is None:
        found = [*_at_chance(chart)] or [*_below_a_kernel(chart)]
        yield from found
        return
    run, lr = on.training, chart.largest_lr
    yield Finding(
        severity="warning",
        says=f"The loss stands still at {run.before:.3g} because the schedule has taken the step from {lr:.3g} down "
        f"to {lr * step_left(chart):.3g}: with lr={lr:.3g} again, {len(run.losses)} steps on a copy take it to "
        f"{run.after:.3g}{on.held}.",
        remedy=f"a slower schedule: keep lr={lr:.3g} for longer, and let it reach zero only at the last step",
        suggested={"schedule": "constant", "lr": lr},
        evidence=(
            seen("the step beside its largest", step_left(chart)),
            seen("loss at the end", run.before),
            seen(f"loss after {len(run.losses)} more steps", run.after, stderr=run.stderr),
        ),
    )


def _at_chance(chart: Chart) -> Iterator[Finding]:
    made, fit = steps_made(chart), chart.fit
    if made < FEWEST or fit is None or not math.isfinite(chart.chance):
        return
    scores, chance = fit.training, chart.chance
    if scores.loss < chance * (1 - BELOW) or scores.loss + SURE * scores.stderr < chance:
        return
    if scores.accuracy > fit.majority + SURE * math.sqrt(0.25 / max(1, scores.samples)) + BELOW:
        return  # the constant answer is the better calibrated one only
    if chart.optimizer is not None:
        on = longer_trial(chart, steps=SHORT, from_start=False)
        if on is None or (on.after < (1 - BELOW) * min(chance, on.before) and on.certain > SURE):
            return
    yield Finding(
        severity="critical",
        says=f"{run_in_words(chart).capitalize()} the loss is {scores.loss:.3g}; the best answer that never looks at its "
        f"input has {chance:.3g}. "
        "Nothing was learnt, and nothing else was found that explains it.",
        remedy="train on one batch until its loss is zero: if it fails, the path from input to loss is broken; else the data are",
        evidence=(seen("loss", scores.loss, stderr=scores.stderr), seen("loss of the best constant answer", chance)),
    )


def _below_a_kernel(chart: Chart) -> Iterator[Finding]:
    if steps_made(chart) < FEWEST or chart.fit is None or has_won(chart) or not chart.finite:
        return
    both = attained(chart)
    if both is None or not both.skill <= KEPT * both.kernel or not both.kernel - both.skill > SURE * both.stderr:
        return
    kind = (
        "of held-out samples beyond the commonest class" if chart.fit.classes else "of the spread of held-out targets"
    )
    yield Finding(
        severity="warning",
        says=f"{run_in_words(chart).capitalize()} the network tells {both.skill:.0%} {kind}, where a ridge regression with the "
        f"kernel of a wide network, on {both.seen} of the same samples, tells {both.kernel:.0%}. The data allow it: something "
        "holds the run back.",
        remedy="train on one batch until its loss is zero; then change one thing at a time: order of the batches, step, width",
        evidence=(
            seen("held-out skill of the network", both.skill, stderr=both.stderr),
            seen("held-out skill of the kernel machine", both.kernel),
        ),
    )


def _unlearnable(seed: int) -> Mapping[str, Any]:
    """Labels drawn at random and batches that never come twice."""
    return patient(seed, lambda own: torch.optim.SGD(own, 0.02), steps=60, samples=2048, noise=1.0)


def _scheduled(decay: float, lr: float = 1e-3, steps: int = 300) -> Any:
    def build(seed: int) -> Mapping[str, Any]:
        x, y = clouds(seed, 1024)
        model = network(seed)
        stepper = torch.optim.Adam(model.parameters(), lr)
        schedule = torch.optim.lr_scheduler.ExponentialLR(stepper, decay)
        held = clouds(seed + 1000, 512)
        return trained(model, stepper, batches_of(x, y, 32), validation=held, steps=steps, schedule=schedule.step)

    return build


ailment = Ailment(
    question="Has the loss stopped high?",
    needs={"model", "data", "loss"},
    signs=("fit", "chance"),
    judge=judge,
    examples={
        "sick": (_unlearnable, _scheduled(0.8), _scheduled(0.95)),
        "healthy": (
            _scheduled(0.98, lr=1e-2),
            lambda seed: patient(seed, lambda own: torch.optim.SGD(own, 0.1)),
            lambda seed: patient(seed, lambda own: torch.optim.SGD(own, 0.1), noise=0.7),
        ),
    },
)
