"""Does it know its training data by heart, while held-out answers are no better than one constant answer?

Where labels can be learnt, a network that fits them beats a constant answer on held-out data. Training accuracy lies far above
the commonest class while held-out accuracy is at it within three binomial errors (for numbers: the same of losses); and a
ridge regression on the inputs, with the neighbors of each, generalizes nothing either. If that one does, the network merely
overfits. A network whose held-out answers beat the commonest class by six binomial errors is taken for one at chance once in
700; where three errors exceed 0.3 nothing is said.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from theodolite.ailments._common.chart import Chart, seen
from theodolite.ailments._common.patients import patient
from theodolite.ailments._common.trials import SURE
from theodolite.core.ailment import Ailment, Finding
from theodolite.io.batches import Batch

FAR = 0.3
"""How far training accuracy must lie above that of the commonest class; for numbers, the share of a constant's loss left."""
NEIGHBOURS, ROWS = 10, 2048


def judge(chart: Chart) -> Iterator[Finding]:
    fit = chart.fit
    if fit is None or fit.validation is None or not math.isfinite(chart.chance):
        return
    held = fit.validation
    if fit.classes and held.accuracy == held.accuracy:
        error = math.sqrt(fit.majority * (1 - fit.majority) / max(1, held.samples))
        fitted = fit.training.accuracy > fit.majority + FAR
        at_chance = held.accuracy < fit.majority + SURE * error and SURE * error < FAR  # few samples tell nothing
    else:
        error = 0.0
        fitted = fit.training.loss < FAR * chart.chance
        at_chance = held.loss > chart.chance
    if not fitted or not at_chance:
        return
    near = neighbors_accuracy(chart.batches, chart.held_out) if fit.classes else math.nan
    if near > fit.majority + SURE * error:
        return
    asked = "" if near != near else f" The {NEIGHBOURS} nearest neighbors of the inputs tell {near:.1%}."
    if fit.classes:
        said = f"training accuracy {fit.training.accuracy:.1%}, held-out {held.accuracy:.1%}, commonest class {fit.majority:.1%}"
    else:
        said = f"training loss {fit.training.loss:.3g}, held-out {held.loss:.3g}, a constant answer {chart.chance:.3g}"
    yield Finding(
        severity="critical",
        says=f"It has learnt its training data by heart and nothing that holds elsewhere: {said}.{asked}",
        remedy="look at the labels: are inputs and targets still in the same order (shuffled together)?",
        evidence=(
            seen("loss on training data", fit.training.loss, stderr=fit.training.stderr),
            seen("loss on held-out data", held.loss, stderr=held.stderr),
        ),
    )


def neighbors_accuracy(training: Sequence[Batch], held_out: Sequence[Batch]) -> float:
    """Held-out accuracy of a vote among nearest neighbors in the inputs; not a number where inputs are not numbers."""
    x, y = _flat(training)
    other, wanted = _flat(held_out)
    if (
        x is None
        or y is None
        or other is None
        or wanted is None
        or x.shape[1:] != other.shape[1:]
        or len(x) <= NEIGHBOURS
    ):
        return math.nan
    near = torch.cdist(other, x).topk(NEIGHBOURS, largest=False).indices  # (held out, neighbors)
    told = y[near].mode(dim=1).values
    return float((told == wanted).double().mean())


def _flat(batches: Sequence[Batch]) -> tuple[Tensor | None, Tensor | None]:
    few = [b for b in batches if len(b.tensors()) == 1 and isinstance(b.target, Tensor) and b.target.ndim == 1]
    if not few or len({b.tensors()[0].shape[1:] for b in few}) > 1 or not few[0].tensors()[0].is_floating_point():
        return None, None
    x = torch.cat([b.tensors()[0].flatten(1).float() for b in few])[:ROWS]
    return x, torch.cat([b.target for b in few])[:ROWS]


ailment = Ailment(
    question="Does it memorize noise?",
    needs={"model", "data", "loss", "validation"},
    signs=("fit",),
    judge=judge,
    examples={
        "sick": (lambda seed: patient(seed, lambda own: torch.optim.Adam(own, 1e-2), samples=256, noise=1.0),),
        "healthy": (lambda seed: patient(seed, lambda own: torch.optim.Adam(own, 3e-3), samples=256, noise=0.2),),
    },
    explains=("overfits",),
)
