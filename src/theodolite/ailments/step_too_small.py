r"""Is the step so small that training will not get anywhere in its time?

For steps far below the edge the loss falls by about $\mathrm{lr}\,|\nabla L|^2$ a step. After a run: a short trial from the
start, with a step 10 times as large or more, takes more than twice as much off the loss as the whole run did, or leaves less
than half of what that left; or a longer one, of no more steps than the run had, takes off a tenth of a constant answer's loss
more: as much as going on must take off a run that was too short. Before a run: all steps planned, at the rate of fall that was
measured (a bound: falls slow down), take less off than the short trial with a larger step does. The largest step of a run
counts, so that schedules that warm up or die away are let alone; so is a network that has won nine tenths of what there is to
win. Each of at most six larger steps wins by chance once in 100 (three standard errors over 8 parts of the data or more),
before the share of the loss that it must take off too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from theodolite.ailments._common.chart import Chart, seen
from theodolite.ailments._common.patients import patient
from theodolite.ailments._common.trials import (
    GOES_BADLY,
    LONG,
    SHORT,
    SURE,
    has_won,
    longer_trial,
    loss_here,
    run_in_words,
    steps_made,
    with_lr,
)
from theodolite.core.ailment import Ailment, Finding
from theodolite.measure.dynamics.trial_runs import TrialRun

FACTORS = (10.0, 30.0, 100.0, 1000.0, 1e4, 1e5)
AHEAD = 2.5
"""How many times what the run took off the loss a trial must take off it, in no more steps."""
LEFT = 0.4
"""Or: what share of the loss that the run leaves such a trial may leave."""
KNOWS = 0.75
"""A loss below this share of a constant answer's shows that something was learnt."""
LEAST_FALL = 0.15
"""What the larger step must take off the loss in a trial, as a share of it."""
PLANNED = 20_000
"""Steps that are taken to be planned where nothing is known."""


def judge(chart: Chart) -> Iterator[Finding]:
    here, made = loss_here(chart), steps_made(chart)
    if here is None or not chart.finite or not chart.largest_lr or has_won(chart) or _warming_up(chart):
        return
    plain = longer_trial(chart, steps=SHORT)
    if plain is None or not plain.losses:
        return
    rate = (max(0.0, plain.before - plain.after) + SURE * plain.stderr) / len(plain.losses)
    start = plain.before
    if made:
        far = longer_trial(chart, steps=LONG)  # a run that was short, or whose schedule ended it, is none of this
        if far is not None and far.after > start + SURE * far.stderr:
            return  # what rises is not slow
        fallen = max(0.0, start - here.after, start - far.after if far is not None else 0.0)
        needed, most = min(AHEAD * fallen, start - LEFT * (start - fallen)), min(SHORT, made)
        if start - fallen >= chart.chance:  # the run knows nothing yet: a step that learns something is enough
            needed = min(needed, start - KNOWS * chart.chance)
    else:
        needed, most = rate * (chart.steps or PLANNED), SHORT
    if needed >= start or start <= 0:
        return
    best = _best(chart, needed, most)
    if best is None and made > most and run_in_words(chart) != "after training":  # a guess at its steps is not enough
        best = _best(chart, fallen + GOES_BADLY.training * chart.chance, min(LONG, made))
    if best is not None:
        yield _finding(chart, best, plain, made, start - fallen if made else None)


def _best(chart: Chart, needed: float, steps: int) -> tuple[float, TrialRun] | None:
    """The larger step that takes most off the loss, if it takes off more than is needed; of nearly equal ones the smaller."""
    best: tuple[float, TrialRun] | None = None
    rising = 0
    for factor in FACTORS:
        tried = longer_trial(chart, f"lr x {factor:g}", with_lr(factor), steps=steps)
        if tried is None:
            break
        fall = tried.before - tried.after
        enough = fall - SURE * tried.stderr > needed and tried.fell > LEAST_FALL and tried.certain > SURE
        if enough and (best is None or tried.after < 0.8 * best[1].after) and _holds(chart, factor, tried):
            best = factor, tried
        elif best is not None:
            break
        rising += tried.after == math.inf or tried.certain < -SURE
        if rising == 2:
            break  # larger ones still only rise faster
    return best


def _holds(chart: Chart, factor: float, short: TrialRun) -> bool:
    """Whether the larger step goes on to hold for as long as time allows."""
    longer = longer_trial(chart, f"lr x {factor:g}", with_lr(factor), steps=LONG)
    return longer is None or longer.after < short.after + SURE * short.stderr


def _warming_up(chart: Chart) -> bool:
    """Whether the step still rises, or stands at a small part of what its schedule holds in store."""
    lrs = [moment.lr for moment in chart.history if moment.lr > 0]
    if len(lrs) > 1:
        return lrs[-1] >= max(lrs) > 1.01 * lrs[0]
    groups = [] if chart.optimizer is None else chart.optimizer.param_groups
    now = max((float(group["lr"]) for group in groups), default=0.0)
    return chart.origin is None and now < 0.5 * chart.largest_lr


def _finding(chart: Chart, best: tuple[float, TrialRun], plain: TrialRun, made: int, reached: float | None) -> Finding:
    factor, tried = best
    lr = float(f"{chart.largest_lr * factor:.2g}")
    if reached is None:
        planned = chart.steps or PLANNED
        so_far = f"{len(plain.losses)} steps take the loss from {plain.before:.4g} to {plain.after:.4g}, too slow for {planned:,}"
    else:
        so_far = f"a run of {max(made, LONG):,} steps takes the loss from {plain.before:.3g} to {reached:.3g}"
    return Finding(
        severity="warning",
        says=f"The step of {chart.largest_lr:g} is too small: {so_far}; {len(tried.losses)} steps with lr={lr:g} on a copy take "
        f"it to {tried.after:.3g}.",
        remedy=f"lr={lr:g}",
        suggested={"lr": lr},
        evidence=(
            seen(
                "loss after trial steps, as it is", plain.after, stderr=plain.stderr, where=f"lr {chart.largest_lr:g}"
            ),
            seen("loss after trial steps, changed", tried.after, stderr=tried.stderr, where=f"lr {lr:g}"),
        ),
    )


def _adam(lr: float) -> Any:
    return lambda own: torch.optim.Adam(own, lr)


ailment = Ailment(
    question="Is the step too small?",
    needs={"model", "data", "loss", "optimizer"},
    signs=("trial",),
    judge=judge,
    examples={
        "sick": (
            lambda seed: patient(seed, _adam(3e-6)),
            lambda seed: patient(seed, lambda own: torch.optim.SGD(own, 1e-6), steps=0),
            lambda seed: patient(seed, lambda own: torch.optim.SGD(own, 1e-4)),
        ),
        "healthy": (
            lambda seed: patient(seed, _adam(1e-3)),
            lambda seed: patient(seed, _adam(1e-3), steps=0),
            lambda seed: patient(seed, lambda own: torch.optim.SGD(own, 0.1), noise=0.5),
        ),
    },
    explains=("loss-stalls", "trained-too-short"),
    laws=("kernel-gd-decay",),
)
