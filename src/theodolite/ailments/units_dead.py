r"""Do units answer nothing, whatever the input, so that no gradient can wake them?

A unit is dead where its activation has no slope on any of 256 samples. At a critical initialization a ReLU is open on half of
a Gaussian input, so that a unit is shut on all of n independent samples with probability $2^{-n}$; samples that are alike shut
more, and healthy networks have been seen to lose a third of a layer, deep plain ones half at the start. So a share is not
enough: the model has not learnt its data, and either a whole layer is shut, which cuts off everything before it, or training
from the critical initialization does clearly better. Dead units that harm nothing are a note. The trial is won by chance once
in 100 (three standard errors over 8 parts of the data or more).
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from theodolite.ailments._common.chart import Chart, seen
from theodolite.ailments._common.examples import digits_like, fresh, fresh_residual, stack
from theodolite.ailments._common.network import activation_in, is_fit, learnt, reinitialized, remedy_for
from theodolite.ailments._common.trials import told
from theodolite.core.ailment import Ailment, Finding
from theodolite.measure.propagation.one_pass import LayerSigns

MANY, ALL = 0.7, 0.98
BETTER = 0.2


def judge(chart: Chart) -> Iterator[Finding]:
    if chart.now is None:
        return
    layers = [layer for layer in chart.now.layers[:-1] if (layer.dead or 0.0) >= MANY and layer.units > 1]
    if not layers:
        return
    worst = max(layers, key=lambda layer: layer.dead or 0.0)
    dead = worst.dead or 0.0
    severity, proof = "note", " It has learnt its data all the same."
    if not is_fit(chart, 0.8):
        tried = reinitialized(chart)
        better = tried is not None and tried.is_better(BETTER)
        cut = dead >= ALL and not worst.gradient_norm
        proof = " No gradient passes them."
        if cut or better:
            severity = "critical" if cut or not learnt(chart) > 0.1 else "warning"
        elif tried is None and not is_fit(chart, 0.1):
            severity = "warning"
        proof += told(tried if better else None, "From the critical initialization")
    yield _finding(chart, layers, severity, proof)


def _finding(chart: Chart, layers: list[LayerSigns], severity: str, proof: str) -> Finding:
    assert chart.now is not None
    worst = max(layers, key=lambda layer: layer.dead or 0.0)
    others = "" if len(layers) == 1 else f", and {MANY:.0%} or more in {len(layers) - 1} other layers"
    text, suggested = remedy_for(activation_in(chart.now))
    return Finding(
        severity=severity,  # type: ignore[arg-type]
        where=worst.name,
        says=f"{worst.dead or 0.0:.0%} of the {worst.units} units behind layer {worst.name} are dead: their "
        f"{worst.activation} is flat on "
        f"every sample{others}.{proof}",
        remedy=f"{text}; where they died in training, a smaller step",
        suggested=suggested,
        evidence=tuple(seen("share of dead units", layer.dead or 0.0, where=layer.name) for layer in layers),
    )


def _sick(seed: int) -> dict[str, object]:
    given = digits_like(seed, lambda: stack(2), lr=1e-3)
    with torch.no_grad():
        given["model"][0].bias.fill_(-30.0)
    return given


ailment = Ailment(
    question="Are units dead?",
    needs={"model", "data", "loss"},
    signs=("now", "fit", "trial"),
    judge=judge,
    examples={"sick": (_sick,), "healthy": (fresh("plain", lambda: stack(2)), fresh_residual(4))},
    explains=(
        "gradient-vanishes",
        "loss-stalls",
        "rank-lost",
        "inputs-merge",
        "layer-cut-off",
        "too-narrow",
        "layer-untrained",
        "trained-too-short",
        "step-too-small",
    ),
    laws=("relu-critical",),
)
