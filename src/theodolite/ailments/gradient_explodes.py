r"""Do gradients grow on their way back to the first layers?

They change by $\chi=C_w\langle\sigma'^2\rangle$ a layer in mean square; above 1 (a tanh with large weights, or a deep stack
of batch normalisations, whose factor is $\pi/(\pi-1)$ a layer for ReLU) neighbours part, and the loss turns into noise for
the first layers. Named where the gradient of the first third, beside its weights, is larger than that of the last by more
than finite width explains, and a cure tried on a copy (critical initialisation, or a path around the layers) trains clearly
better.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from torch import nn

from theodolite.ailments._common.chart import Chart, seen
from theodolite.ailments._common.examples import digits_like, residual, stack
from theodolite.ailments._common.network import (
    activation_in,
    around_layers,
    gradient_ratio,
    is_fit,
    reinitialised,
    remedy_for,
    severity,
    width_spread,
)
from theodolite.core.ailment import Ailment, Finding

GROWN, SURELY, DEPTH = 5.0, 300.0, 6
BETTER = 0.2


def judge(chart: Chart) -> Iterator[Finding]:
    signs = chart.start
    if signs is None or len(signs.layers) < DEPTH or is_fit(chart, 0.9):
        return
    ratio = gradient_ratio(signs)
    if not ratio > GROWN or math.log(ratio) < width_spread(signs):
        return
    text, suggested = remedy_for(activation_in(signs))
    tried = reinitialised(chart)
    better = tried is not None and tried.is_better(BETTER)
    if not better:
        tried = around_layers(chart)
        better = tried is not None and tried.is_better(BETTER)
        text, suggested = "a path around every layer: x + layer(x)", {"residual": True}
    if not better and (ratio < SURELY or is_fit(chart)):
        return
    proof = (
        ""
        if tried is None or not better
        else (
            f" With the remedy {len(tried.changed.losses)} steps reach a loss of {tried.changed.after:.3g} instead of "
            f"{tried.as_it_is.after:.3g}."
        )
    )
    yield Finding(
        severity=severity(chart),
        where=signs.layers[0].name,
        says=f"The gradient explodes: beside their weights the first layers get {ratio:.2g} times what the last get.{proof}",
        remedy=f"{text}; until then torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
        suggested=suggested,
        evidence=(seen("relative gradient, first third beside last", ratio),),
    )


def _sick(seed: int) -> dict[str, object]:
    return digits_like(seed, lambda: stack(16, activation=nn.Tanh, weight_variance=16.0), lr=1e-3)


def _critical(seed: int) -> dict[str, object]:
    return digits_like(seed, lambda: stack(12, activation=nn.Tanh, weight_variance=1.0), lr=1e-3)


def _residual(seed: int) -> dict[str, object]:
    return digits_like(seed, lambda: residual(6), lr=1e-3)


ailment = Ailment(
    question="Do the gradients of the first layers explode?",
    needs={"model", "data", "loss"},
    signs=("start", "fit", "trial"),
    judge=judge,
    examples={"sick": (_sick,), "healthy": (_critical, _residual)},
    explains=("units-saturated", "loss-stalls", "trained-too-short", "weights-not-finite"),
    laws=("relu-critical",),
)
