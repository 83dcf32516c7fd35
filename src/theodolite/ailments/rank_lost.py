r"""Do the features fall into a few directions on their way, far fewer than the task needs?

Effective rank is $(\sum\lambda)^2/\sum\lambda^2$ of the differences between samples where the last layer reads them; telling C
classes apart linearly takes C - 1 directions, answering k numbers takes k, and no more than the inputs have. Attention without
paths around it loses rank too, in another sense: the places of a sample become the same, doubly exponentially in depth (Dong
et al. 2021), measured as the share by which places differ. Neither counts by itself, for features collapse when training
succeeds: the model has not learnt its data, and the critical initialization on a copy trains clearly better, or places have
become the same. The trial is won by chance once in 100 (three standard errors over 8 parts of the data or more).
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from theodolite.ailments._common.chart import Chart, seen
from theodolite.ailments._common.examples import digits_like, fresh, fresh_residual, stack
from theodolite.ailments._common.network import is_fit, is_fit_everywhere, remedy_of_depth, severity
from theodolite.core.ailment import Ailment, Finding
from theodolite.measure.propagation.one_pass import VitalSigns

FEW, PART = 2.5, 0.5
"""Directions that are few, and their share of those that the task needs below which they are too few."""

PLACES = 1e-3
BETTER = 0.1


def needed(chart: Chart, signs: VitalSigns) -> float:
    """Directions that the task takes: one less than the classes, or as many as the outputs, and no more than the inputs have."""
    outputs = signs.output.shape[-1] if signs.output.ndim > 1 else 1
    classes = chart.fit.classes if chart.fit is not None else 0
    return min(float(classes - 1 if classes else outputs), signs.layers[0].input_rank)


def judge(chart: Chart) -> Iterator[Finding]:
    signs = chart.start
    if signs is None or len(signs.layers) < 3 or is_fit_everywhere(chart, 0.9):
        return
    merged = [layer for layer in signs.layers[1:] if layer.input_places is not None and layer.input_places < PLACES]
    first = next((layer.input_places for layer in signs.layers if layer.input_places is not None), None)
    if merged and not is_fit(chart) and first is not None and first > 0.05 and len(merged) >= 2:
        yield _tokens(chart, signs, first)
        return
    ranks = [layer.rank for layer in signs.layers[:-1]]
    place = min(range(len(ranks)), key=lambda i: ranks[i])
    rank, need = min(ranks[place], signs.layers[-1].input_rank), needed(chart, signs)
    if not rank < min(FEW, PART * need) or signs.layers[place].units < need:
        return
    text, suggested, tried = remedy_of_depth(chart, signs, BETTER)
    if tried is None:
        return
    yield Finding(
        severity=severity(chart),
        where=signs.layers[place].name,
        says=f"Rank is lost: behind {signs.layers[place].name} the features differ in {rank:.1f} directions of "
        f"{signs.layers[place].units}, where the task needs {need:.1f}. With the remedy "
        f"{len(tried.changed.losses)} steps reach a loss of {tried.changed.after:.3g} instead of {tried.as_it_is.after:.3g}.",
        remedy=text,
        suggested=suggested,
        evidence=(seen("effective rank of the features", rank, where=signs.layers[place].name), seen("needed", need)),
    )


def _tokens(chart: Chart, signs: VitalSigns, first: float) -> Finding:
    least = min(
        (layer for layer in signs.layers if layer.input_places is not None), key=lambda layer: layer.input_places or 0.0
    )
    return Finding(
        severity=severity(chart),
        where=least.name,
        says=f"Rank is lost: in front of {least.name} the places of a sample differ by {least.input_places:.1g} of the "
        f"signal, where they "
        f"differed by {first:.1g} at first; they have become the same.",
        remedy="a path around attention: x + attention(norm(x))",
        suggested={"residual": True},
        evidence=(seen("share by which places differ", least.input_places or 0.0, where=least.name),),
    )


def _sick(seed: int) -> dict[str, object]:
    given = digits_like(seed, lambda: stack(3, width=64), optimizer="sgd", lr=0.003)
    with torch.no_grad():
        for place in (2, 4):
            weight = given["model"][place].weight
            u, _, v = torch.linalg.svd(weight)
            weight.copy_(weight.norm() * torch.outer(u[:, 0], v[0]))
    return given


ailment = Ailment(
    question="Is rank lost on the way?",
    needs={"model", "data", "loss"},
    signs=("start", "fit", "trial"),
    judge=judge,
    examples={
        "sick": (_sick,),
        "healthy": (fresh("plain", lambda: stack(3, width=64), optimizer="sgd", lr=0.02), fresh_residual(6)),
    },
    explains=("loss-stalls", "trained-too-short", "step-too-small"),
)
