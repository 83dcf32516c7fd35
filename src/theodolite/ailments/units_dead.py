r"""Do units answer nothing, whatever the input, so that no gradient can wake them?

A unit is dead where its activation has no slope on any sample. At a critical initialisation a ReLU is open on half of a
Gaussian input, so that a unit is shut on all of n independent samples with probability $2^{-n}$; correlated inputs shut more.
A healthy network has been seen to lose up to a third of a layer. A layer with none left cuts off everything before it.
"""

from __future__ import annotations

from collections.abc import Iterator

from theodolite.ailments._chart import Chart, seen
from theodolite.core.ailment import Ailment, Finding

MANY, ALL = 0.6, 0.95


def judge(chart: Chart) -> Iterator[Finding]:
    if chart.now is None:
        return
    layers = [layer for layer in chart.now.layers if layer.dead is not None and layer.dead >= MANY and layer.units > 1]
    if not layers:
        return
    worst = max(layers, key=lambda layer: layer.dead or 0.0)
    dead = worst.dead or 0.0
    cut = dead >= ALL
    others = "" if len(layers) == 1 else f", and as many or more than {MANY:.0%} in {len(layers) - 1} other layers"
    yield Finding(
        severity="critical" if cut else "warning",
        where=worst.name,
        says=f"{dead:.0%} of the {worst.units} units behind {worst.name} are dead: their {worst.activation} is flat on every "
        f"sample{others}. No gradient passes them.",
        remedy=f'th.initialise_(model, "{worst.activation}") and train again with a smaller step',
        suggested={"initialise": worst.activation},
        evidence=tuple(seen("share of dead units", layer.dead or 0.0, where=layer.name) for layer in layers),
    )


ailment = Ailment(
    question="Are units dead?",
    needs={"model", "data", "loss"},
    signs=("now",),
    judge=judge,
    examples={},
    explains=("gradient-vanishes", "loss-stalls", "rank-lost", "inputs-merge"),
    laws=("relu-critical",),
)
