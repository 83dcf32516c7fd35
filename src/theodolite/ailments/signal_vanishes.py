r"""Does the signal shrink from layer to layer until the last layer is given nothing?

With weights of variance $C_w/n$ and no biases a mean square changes by $C_w\langle\sigma'^2\rangle$ a layer: by 1 at the
critical variance, by $1/6$ with ReLU and PyTorch's own $C_w=1/3$. What finite width explains is left alone: at a critical
initialization the logarithm of the mean square has variance of about $\sum 5/n_l$ (ReLU; less for others), and four
deviations of it pass, which is one false alarm in 30000. Paths around layers and normalization show in the measured signal:
it does not shrink.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from theodolite.ailments._common.chart import Chart, seen
from theodolite.ailments._common.examples import fresh, fresh_residual, stack
from theodolite.ailments._common.network import (
    activation_in,
    is_fit,
    planned_steps,
    reinitialized,
    remedy_for,
    severity,
    signal_ratio,
    weights_ratio,
    width_spread,
)
from theodolite.ailments._common.trials import told
from theodolite.core.ailment import Ailment, Finding

LEAST, SURELY = 1e-4, 1e-8
"""A mean square so small beside the input's is looked into; one so small stops training whatever the optimizer."""

BETTER, DEAD = 0.1, 0.7


def judge(chart: Chart) -> Iterator[Finding]:
    signs = chart.start
    if signs is None or is_fit(chart):
        return
    ratio = signal_ratio(signs)
    if not 0 < ratio < LEAST or math.log(ratio) > -4 * width_spread(signs):
        return
    if any((layer.dead or 0.0) > DEAD for layer in signs.layers[:-1]) and weights_ratio(signs) > LEAST:
        return  # not the weights but dead units take the signal
    tried = reinitialized(chart)
    better = tried is not None and tried.is_better(BETTER)
    if not better and ratio > SURELY:
        return
    text, suggested = remedy_for(activation_in(signs))
    proof = told(tried if better else None, "From the critical initialization")
    yield Finding(
        severity=severity(chart),
        says=f"The signal vanishes: its mean square falls by a factor of {1 / ratio:.2g} over {len(signs.layers)} "
        f"layers, so that "
        f"{planned_steps(chart)} steps have next to nothing to work on.{proof}",
        remedy=text,
        suggested=suggested,
        evidence=(seen("mean square at the last layer beside the input's", ratio, where=signs.layers[-1].name),),
    )


ailment = Ailment(
    question="Does the signal vanish on its way through the layers?",
    needs={"model", "data", "loss"},
    signs=("start", "fit", "trial"),
    judge=judge,
    examples={
        "sick": (fresh("weights too small", lambda: stack(12, weight_variance=1 / 3), optimizer="sgd", lr=0.02),),
        "healthy": (fresh("critical weights", lambda: stack(12, weight_variance=2.0)), fresh_residual(6)),
    },
    explains=(
        "gradient-vanishes",
        "inputs-merge",
        "loss-stalls",
        "rank-lost",
        "units-dead",
        "layer-cut-off",
        "step-too-small",
    ),
    laws=("relu-critical",),
)
