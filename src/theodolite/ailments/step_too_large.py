r"""Is the step so large that training does not come down, although a smaller one would?

On a quadratic of curvature $\lambda$ descent grows without bound above a step of $2/\lambda$ (more with momentum, another edge
with a preconditioner). No edge is trusted here: the same training is run on copies with smaller steps, from the start where
that is known, for as many steps as the run had or time allows. The step is called too large only where a smaller one ends
clearly lower (three standard errors and a share of the loss) than both the present one and the run itself; before a run also
where the present one takes the loss above three times its start and a smaller one does not raise it, and only so where time
allows but a few steps. Where a step is merely
bold, it wins; what a smaller step gains at the end of a run that went well is the noise floor of any constant step, no ailment:
a run that has won nine tenths of what there is to win is let alone. Each of at most six smaller steps wins by chance once in
100 (three standard errors over 8 parts of the data or more), before the share of the loss that it must take off too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from theodolite.ailments._common.chart import Chart, seen
from theodolite.ailments._common.patients import patient
from theodolite.ailments._common.trials import (
    LONG,
    SHORT,
    SURE,
    WORST,
    TrialComparison,
    beside,
    has_won,
    is_below,
    loss_here,
    steps_made,
    with_lr,
)
from theodolite.core.ailment import Ailment, Finding

FACTORS = (0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4)
POOR, LEAST_POOR, LEAST_FAIR = 0.5, 0.3, 0.6
"""A loss above that share of a constant answer's is poor. What a smaller step must take off then, and off a better one."""
NEARLY = 0.1
"""Of smaller steps whose loss is within this share (of what was gained) of the best, the second largest is suggested."""


def judge(chart: Chart) -> Iterator[Finding]:
    found = list(_judged(chart))
    if not found and chart.origin is None and not steps_made(chart) and not _is_as_drawn(chart):
        found = list(
            _judged(chart.redrawn)
        )  # it may have been trained, and ruined, by an optimizer that leaves no trace
    yield from found


def _is_as_drawn(chart: Chart) -> bool:
    """Whether some matrix still has the very entries that PyTorch draws, so that no step was taken."""
    return any(facts.start for facts in chart.weight_facts.values())


def _judged(chart: Chart) -> Iterator[Finding]:
    here, made = loss_here(chart), steps_made(chart)
    if here is None or not chart.largest_lr or (made and has_won(chart)):
        return
    reached = here.after
    poor = not reached < POOR * chart.chance
    if not made and not poor and not _ruins(chart):
        return
    least = LEAST_POOR if poor else LEAST_FAIR
    steps = max(SHORT, min(made, LONG)) if made else SHORT
    found = _smaller_steps(chart, steps, least, reached if made else math.inf)
    if not found:
        return
    if not made and not any(_holds(chart, factor, least) for factor in found):
        return
    best = min(tried.changed.after for tried in found.values())
    plain = next(iter(found.values())).as_it_is
    worst = min(plain.after, plain.before)
    good = sorted(f for f, tried in found.items() if tried.changed.after <= best + NEARLY * (worst - best))
    factor = good[-2] if len(good) > 1 else good[-1]  # a margin: the next larger step holds as well
    yield _finding(chart, factor, found[factor], reached if made else None)


def _ruins(chart: Chart) -> bool:
    """Whether training as it is takes a trained network back to where a constant answer is."""
    tried = beside(chart, "lr x 0.1", with_lr(0.1), steps=SHORT)
    return tried is not None and not tried.as_it_is.after < 0.7 * chart.chance and tried.as_it_is.certain < -SURE


def _smaller_steps(chart: Chart, steps: int, least: float, reached: float) -> Mapping[float, TrialComparison]:
    """The smaller steps that end clearly lower than training as it is, and than the run did."""
    found: dict[float, TrialComparison] = {}
    slower = 0
    for factor in FACTORS:
        tried = beside(chart, f"lr x {factor:g}", with_lr(factor), steps=steps)
        if tried is None:
            break
        beyond = math.isinf(reached) or tried.changed.after < (1 - least) * reached
        good = tried.is_better(least)
        if math.isinf(reached):  # before a run: a rise in the first few steps, of small batches at that, may pass
            good = spares(tried, chart.chance) or (good and len(tried.changed.losses) >= SHORT)
        if good and beyond and not math.isinf(tried.changed.after):
            found[factor] = tried
        elif found:
            break
        elif tried.as_it_is.certain > SURE and tried.changed.after > tried.as_it_is.after:
            slower += 1
            if slower == 2 or tried.as_it_is.after < POOR * chart.chance:
                break  # the present step comes down, and smaller ones are only slower
    return found


def _holds(chart: Chart, factor: float, least: float) -> bool:
    tried = beside(chart, f"lr x {factor:g}", with_lr(factor), steps=LONG)
    return tried is None or tried.is_better(least) or spares(tried, chart.chance)


def spares(tried: TrialComparison, chance: float) -> bool:
    """Whether the present step takes the loss far above its start and any constant answer's, and the smaller one does not.

    So much is seen in a few steps, after which nothing has come down yet.
    """
    plain, other = tried.as_it_is, tried.changed
    lost = plain.after > WORST * max(plain.before, chance) and (math.isinf(plain.after) or plain.certain < -SURE)
    return lost and is_below(other, plain) and other.certain > -SURE


def _finding(chart: Chart, factor: float, tried: TrialComparison, reached: float | None) -> Finding:
    plain, other = tried.as_it_is, tried.changed
    lr = float(f"{chart.largest_lr * factor:.2g}")
    fails = not plain.after < min(plain.before, chart.chance)
    said = "beyond all numbers" if math.isinf(plain.after) else f"to {plain.after:.3g}"
    run = "" if reached is None or not math.isfinite(reached) else f" The run itself stands at {reached:.3g}."
    return Finding(
        severity="critical" if fails else "warning",
        says=f"The step of {chart.largest_lr:g} is too large: {len(other.losses)} steps on a copy take the loss from "
        f"{plain.before:.3g} {said}; with lr={lr:g} they take it to {other.after:.3g}.{run}",
        remedy=f"lr={lr:g}",
        suggested={"lr": lr},
        evidence=(
            seen(
                "loss after trial steps, as it is", plain.after, stderr=plain.stderr, where=f"lr {chart.largest_lr:g}"
            ),
            seen("loss after trial steps, changed", other.after, stderr=other.stderr, where=f"lr {lr:g}"),
        ),
    )


def _descent(lr: float, momentum: float = 0.0) -> Any:
    return lambda own: torch.optim.SGD(own, lr, momentum=momentum)


ailment = Ailment(
    question="Is the step too large?",
    needs={"model", "data", "loss", "optimizer"},
    signs=("trial",),
    judge=judge,
    examples={
        "sick": (
            lambda seed: patient(seed, _descent(30.0)),
            lambda seed: patient(seed, _descent(30.0), steps=0),
            lambda seed: patient(seed, lambda own: torch.optim.Adam(own, 1.0)),
        ),
        "healthy": (
            lambda seed: patient(seed, _descent(0.5)),
            lambda seed: patient(seed, _descent(0.1, 0.9), steps=0),
            lambda seed: patient(seed, lambda own: torch.optim.Adam(own, 1e-2), noise=0.3),
        ),
    },
    explains=(
        "loss-stalls",
        "units-dead",
        "gradient-explodes",
        "units-saturated",
        "rank-lost",
        "inputs-merge",
        "weights-not-finite",
    ),
    laws=("edge-of-stability",),
)
