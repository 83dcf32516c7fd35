r"""Do bounded activations sit in their flat ends, where no gradient passes?

Bounded is what stays where it is far out on both sides, whatever its name. A unit is saturated on a sample where the slope is below
5 % of the steepest: for tanh beyond $|z|=2.2$, which a Gaussian of variance 1 exceeds in 3 % of cases and one of variance 10 in 49 %.
Trained networks saturate and are well, so the share is judged at the start of training where that is known, and counts only where
the model has not learnt its data and the critical initialisation, tried on a copy, trains clearly better.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import nn

from theodolite.ailments._chart import Chart, seen
from theodolite.ailments._examples import digits_like, stack
from theodolite.ailments._network import activation_in, is_fit, reinitialised, remedy_for, severity
from theodolite.core.ailment import Ailment, Finding

MANY, SURELY = 0.5, 0.9
BETTER = 0.2


def judge(chart: Chart) -> Iterator[Finding]:
    signs = chart.start
    if signs is None or is_fit(chart, 0.9):
        return
    layers = [layer for layer in signs.layers[:-1] if layer.bounded and (layer.saturated or 0.0) >= MANY]
    if not layers:
        return
    tried = reinitialised(chart)
    better = tried is not None and tried.is_better(BETTER)
    worst = max(layers, key=lambda layer: layer.saturated or 0.0)
    share = worst.saturated or 0.0
    if not better and (tried is not None or share < SURELY or is_fit(chart, 0.1)):
        return
    text, suggested = remedy_for(activation_in(signs))
    proof = "" if tried is None else (
        f" From the critical initialisation {len(tried.changed.losses)} steps reach a loss of {tried.changed.after:.3g} instead of "
        f"{tried.as_it_is.after:.3g}."
    )
    yield Finding(
        severity=severity(chart),
        where=worst.name,
        says=f"Units are saturated: behind {worst.name} {worst.activation} is flat (below 5 % of its slope) on {share:.0%} of units and "
        f"samples.{proof}",
        remedy=f"{text}, and inputs of mean 0 and variance 1",
        suggested=suggested,
        evidence=tuple(seen("share of saturated units and samples", layer.saturated or 0.0, where=layer.name) for layer in layers),
    )


def _sick(seed: int) -> dict[str, object]:
    return digits_like(seed, lambda: stack(3, activation=nn.Tanh, weight_variance=200.0), lr=1e-3)


def _plain(seed: int) -> dict[str, object]:
    return digits_like(seed, lambda: stack(3, activation=nn.Tanh), lr=1e-3)


def _relu(seed: int) -> dict[str, object]:
    return digits_like(seed, lambda: stack(3), lr=1e-3)


ailment = Ailment(
    question="Are units saturated?",
    needs={"model", "data", "loss"},
    signs=("start", "fit", "trial"),
    judge=judge,
    examples={"sick": (_sick,), "healthy": (_plain, _relu)},
    explains=("gradient-vanishes", "loss-stalls", "step-too-small", "trained-too-short"),
)
