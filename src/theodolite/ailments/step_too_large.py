r"""Is the step so large that training does not come down, although a smaller one would?

On a quadratic of curvature $\lambda$ descent grows without bound above a step of $2/\lambda$ (more with momentum, another edge
with a preconditioner). No edge is trusted here: the same training is run on copies with smaller steps, and the step is called too
large only where a smaller one takes the loss down further in the same number of steps. Where a step is merely bold, it wins.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from theodolite.ailments._chart import Chart, seen
from theodolite.ailments._trials import compared, with_lr
from theodolite.core.ailment import Ailment, Finding

FACTORS = (0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4)
LEAST = 0.3
"""The share of the loss that a smaller step must take off what the present one leaves."""


def judge(chart: Chart) -> Iterator[Finding]:
    plain = chart.trial()
    if plain is None or not chart.largest_lr:
        return
    best = None
    for factor in FACTORS:
        tried = compared(chart, f"lr x {factor:g}", with_lr(factor))
        if tried is None:
            break
        if tried.is_better(LEAST) and (best is None or tried.gain > best[1].gain + 0.02):
            best = factor, tried
        elif best is not None:
            break
    if best is None:
        return
    factor, tried = best
    lr = float(f"{chart.largest_lr * factor:.2g}")
    fails = not plain.after < plain.before
    said = "not a number" if math.isinf(plain.after) else f"{plain.after:.3g}"
    steps = len(tried.changed.losses)
    yield Finding(
        severity="critical" if fails else "warning",
        says=f"The step of {chart.largest_lr:g} is too large: {steps} steps on a copy take the loss from {plain.before:.3g} to "
        f"{said}; with lr={lr:g} they take it to {tried.changed.after:.3g}.",
        remedy=f"lr={lr:g}",
        suggested={"lr": lr},
        evidence=(
            seen(
                "loss after trial steps, as it is", plain.after, stderr=plain.stderr, where=f"lr {chart.largest_lr:g}"
            ),
            seen(
                "loss after trial steps, changed", tried.changed.after, stderr=tried.changed.stderr, where=f"lr {lr:g}"
            ),
        ),
    )


ailment = Ailment(
    question="Is the step too large?",
    needs={"model", "data", "loss", "optimizer"},
    signs=("trial",),
    judge=judge,
    examples={},
    explains=("loss-stalls", "units-dead", "gradient-explodes", "units-saturated"),
    laws=("edge-of-stability",),
)
