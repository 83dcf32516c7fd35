r"""Do gradients grow on their way back to the first layers?

They change by $\chi=C_w\langle\sigma'^2\rangle$ a layer in mean square; above 1 (a tanh with large weights, or a deep stack of
batch normalizations, whose factor is $\pi/(\pi-1)$ a layer for ReLU) neighbors part, and the loss turns into noise for the
first layers. Named where the gradient of the first third, beside its weights, is larger than that of the last by more than
finite width explains, and a cure tried on a copy (critical initialization, or a path around the layers) trains clearly better.
Width alone shows the first sign in one draw of six; the cure must then win by three standard errors over 8 parts of the data
or more, which chance does once in 100.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from torch import nn

from theodolite.ailments._common.chart import Chart, seen
from theodolite.ailments._common.examples import fresh, fresh_residual, stack
from theodolite.ailments._common.network import (
    gradient_ratio,
    is_fit,
    is_fit_everywhere,
    remedy_of_depth,
    severity,
    width_spread,
)
from theodolite.ailments._common.trials import told
from theodolite.core.ailment import Ailment, Finding

GROWN, SURELY, DEPTH = 5.0, 300.0, 6
BETTER = 0.2


def judge(chart: Chart) -> Iterator[Finding]:
    signs = chart.start
    if signs is None or len(signs.layers) < DEPTH or is_fit_everywhere(chart, 0.9):
        return
    ratio = gradient_ratio(signs)
    if not ratio > GROWN or math.log(ratio) < width_spread(signs):
        return
    text, suggested, tried = remedy_of_depth(chart, signs, BETTER)
    if tried is None and (ratio < SURELY or is_fit(chart)):
        return
    proof = told(tried, "With the remedy")
    yield Finding(
        severity=severity(chart),
        where=signs.layers[0].name,
        says=f"The gradient explodes: beside their weights the first layers get {ratio:.2g} times what the last get.{proof}",
        remedy=f"{text}; until then torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
        suggested=suggested,
        evidence=(seen("relative gradient, first third beside last", ratio),),
    )


ailment = Ailment(
    question="Do the gradients of the first layers explode?",
    needs={"model", "data", "loss"},
    signs=("start", "fit", "trial"),
    judge=judge,
    examples={
        "sick": (fresh("tanh with large weights", lambda: stack(16, activation=nn.Tanh, weight_variance=16.0)),),
        "healthy": (
            fresh("tanh at its critical point", lambda: stack(12, activation=nn.Tanh, weight_variance=1.0)),
            fresh_residual(6),
        ),
    },
    explains=("units-saturated", "loss-stalls", "trained-too-short", "weights-not-finite"),
    laws=("relu-critical",),
)
