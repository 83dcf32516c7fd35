r"""Do the gradients of the first layers vanish beside those of the last?

The mean square of a gradient changes by $\chi=C_w\langle\sigma'^2\rangle$ a layer on its way back; a sigmoid, whose slope is
at most 1/4, has $\chi\le C_w/16$. Judged is the gradient of a layer beside its own weights, first third against last third, so
that paths around layers and normalization count as they act. Harm is shown in one of two ways: plain descent would not move
the first layers by a thousandth of their size in all the steps planned (Adam divides by the gradient's size and is spared,
unless the gradient is below its ``eps``), or training from a critical initialization does clearly better. What finite width
explains is let alone up to four deviations, which one draw in 30000 exceeds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from torch import nn

from theodolite.ailments._common.chart import Chart, seen
from theodolite.ailments._common.examples import fresh, fresh_residual, stack
from theodolite.ailments._common.network import (
    activation_in,
    gradient_ratio,
    is_fit,
    planned_steps,
    reinitialized,
    remedy_for,
    severity,
    thirds,
    width_spread,
)
from theodolite.ailments._common.trials import told
from theodolite.core.ailment import Ailment, Finding
from theodolite.measure.propagation.one_pass import VitalSigns

LEAST, SURELY = 3e-3, 1e-5
MOVED = 1e-3
"""The share of its size that a layer must be able to move in all steps planned."""

BETTER = 0.1


def travel(chart: Chart, signs: VitalSigns) -> float:
    """How far the first third of the layers can move in the steps planned, as a share of their size; Adam's step has no scale."""
    if chart.optimizer is None:
        return math.nan
    group = chart.optimizer.param_groups[0]
    relative = [layer.relative_gradient or 0.0 for layer in signs.layers]
    if "betas" in group or "alpha" in group:
        rms = [(layer.gradient_norm or 0.0) / math.sqrt(layer.entries) for layer in signs.layers]
        return math.inf if thirds(rms)[0] > float(group.get("eps", 1e-8)) else 0.0
    momentum = 1.0 - float(group.get("momentum", 0.0))
    return chart.largest_lr * planned_steps(chart) / max(momentum, 1e-3) * thirds(relative)[0]


def judge(chart: Chart) -> Iterator[Finding]:
    signs = chart.start
    if signs is None or is_fit(chart):
        return
    ratio = gradient_ratio(signs)
    if not ratio < LEAST or math.log(max(ratio, 1e-300)) > -4 * width_spread(signs):
        return
    tried = reinitialized(chart)
    better = tried is not None and tried.is_better(BETTER)
    moved = travel(chart, signs)
    stuck = moved < MOVED
    if not better and not stuck and ratio > SURELY:
        return
    text, suggested = remedy_for(activation_in(signs))
    proof = f" All {planned_steps(chart)} steps can move them by {moved:.1g} of their size." if stuck else ""
    proof += told(tried if better else None, "With the remedy")
    yield Finding(
        severity=severity(chart),
        where=signs.layers[0].name,
        says=f"The gradient vanishes: beside their weights the first layers get {ratio:.2g} of what the last get.{proof}",
        remedy=f"{text}, or a path around every few layers",
        suggested=suggested,
        evidence=(seen("relative gradient, first third beside last", ratio), seen("share they can move", moved)),
    )


ailment = Ailment(
    question="Do the gradients of the first layers vanish?",
    needs={"model", "data", "loss"},
    signs=("start", "fit", "trial"),
    judge=judge,
    examples={
        "sick": (
            fresh(
                "deep sigmoid", lambda: stack(10, activation=nn.Sigmoid, weight_variance=1.0), optimizer="sgd", lr=0.05
            ),
        ),
        "healthy": (
            fresh("shallow sigmoid", lambda: stack(1, activation=nn.Sigmoid), lr=1e-2),
            fresh_residual(6, optimizer="sgd", lr=0.05),
        ),
    },
    explains=("loss-stalls", "layer-untrained", "layer-cut-off", "step-too-small"),
    laws=("relu-critical",),
)
