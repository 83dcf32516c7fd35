r"""Does the network answer worse in evaluation mode than it was trained to, on the very same batch?

Normalization by running statistics is a mean over past batches; where it does not match what the network sees in training (its
momentum is zero or one, the batches were tiny or unlike, the statistics were frozen), evaluation is of another function. The
loss of the same batches is taken in both modes (dropout averaged over masks; it can only raise the training side). It is an
ailment where evaluation is far worse, and statistics taken anew over the same data, on a copy, mend it. A network that has not
been trained yet has statistics of nothing and is healthy. Three standard errors over 32 batches are exceeded by chance once in
400.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from theodolite.ailments._common.chart import Chart, seen
from theodolite.ailments._common.patients import patient
from theodolite.ailments._common.trials import SURE, steps_made
from theodolite.core.ailment import Ailment, Finding
from theodolite.core.state import untouched

WORSE, APART = 1.5, 0.15
"""Evaluation must exceed training so many times, and by that share of a constant answer's loss."""
MENDED = 0.5
"""The share of the difference that new statistics must take away."""
SETTLED = 3.0
"""Batches times momentum that running statistics need before anything is expected of them."""
MOST, MASKS, USUAL = 32, 4, 0.1


def judge(chart: Chart) -> Iterator[Finding]:
    assert chart.model is not None
    layers = {name: m for name, m in chart.model.named_modules() if _keeps_statistics(m)}
    if not layers or not chart.finite or not _trained(chart, layers.values()):
        return
    few = chart.batches[:MOST]
    train, told = _losses(chart, chart.model, few, training=True), _losses(chart, chart.model, few, training=False)
    apart = [b - a for a, b in zip(train, told, strict=True)]
    mean, error = _mean(apart), _error(apart)
    if not (_mean(told) > WORSE * _mean(train) and mean > APART * chart.chance and mean > SURE * error):
        return
    anew = _with_new_statistics(chart)
    if anew is None or not _mean(told) - anew > MENDED * mean:
        return
    momenta = {m.momentum for m in layers.values() if m.momentum is not None}
    odd = sorted(m for m in momenta if not 0.005 <= m <= 0.9)
    wrong = _mean(told) > 0.7 * chart.chance or chart.fit is None
    first = next(iter(layers))
    yield Finding(
        severity="critical" if wrong else "warning",
        where=first,
        says=f"The same batches have a loss of {_mean(train):.3g} in training mode and {_mean(told):.3g} in evaluation mode: the "
        f"running statistics of {len(layers)} layers{f' (momentum {odd[0]:g})' if odd else ''} are not those of the data. With "
        f"statistics taken anew it is {anew:.3g}.",
        remedy=(f"momentum={USUAL} in {first}; " if odd else "")
        + "torch.optim.swa_utils.update_bn(loader, model) before evaluating; nn.GroupNorm where batches are tiny",
        suggested={"statistics_momentum": USUAL},
        evidence=(
            seen("loss in training mode", _mean(train), stderr=_error(train)),
            seen("loss in evaluation mode", _mean(told), stderr=_error(told)),
            seen("loss in evaluation mode, statistics taken anew", anew),
        ),
    )


def _keeps_statistics(module: nn.Module) -> bool:
    return isinstance(getattr(module, "running_mean", None), torch.Tensor) and hasattr(module, "momentum")


def _trained(chart: Chart, layers: Any) -> bool:
    """Whether training has gone on for longer than running statistics need."""
    counts = [getattr(layer, "num_batches_tracked", None) for layer in layers]
    counted = max((int(count) for count in counts if isinstance(count, torch.Tensor)), default=0)
    told = bool(chart.history or chart.steps or chart.origin is not None)
    made = max(counted, steps_made(chart)) if told or not counted else counted  # what was counted outweighs a guess
    return made * USUAL > SETTLED


def _losses(chart: Chart, model: nn.Module, batches: Sequence[Any], *, training: bool) -> list[float]:
    drops = training and any(isinstance(m, nn.modules.dropout._DropoutNd) and m.p > 0 for m in model.modules())
    with untouched(model, training=training), torch.no_grad():
        torch.manual_seed(0)
        return [_mean([float(chart.loss_on(model, b)) for _ in range(MASKS if drops else 1)]) for b in batches]


def _with_new_statistics(chart: Chart) -> float | None:
    """The loss in evaluation mode of a copy whose statistics are plain means over the data."""
    assert chart.model is not None
    with untouched(None), torch.no_grad():
        other = copy.deepcopy(chart.model)
        for module in other.modules():
            if _keeps_statistics(module):
                setattr(module, "momentum", None)  # noqa: B010  a plain mean over batches, which the type of modules does not know
                reset: Any = getattr(module, "reset_running_stats", None)
                if reset is None:
                    return None
                reset()
        other.train()
        for batch in chart.batches:
            chart.answer(other, batch)
        value = _mean(_losses(chart, other, chart.batches[:MOST], training=False))
    return value if math.isfinite(value) else None


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _error(values: Sequence[float]) -> float:
    if len(values) < 2:
        return 0.0
    return float(torch.tensor(values, dtype=torch.float64).std()) / math.sqrt(len(values))


class _Stretched(nn.Module):
    """Signals far from the statistics that a layer begins with."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 30 * x + 10


def _normed(momentum: float, steps: int = 200) -> Any:
    def build(seed: int) -> Mapping[str, Any]:
        norm = functools.partial(nn.BatchNorm1d, 48, momentum=momentum)
        return patient(seed, lambda own: torch.optim.Adam(own, 3e-3), _Stretched, norm, steps=steps)

    return build


ailment = Ailment(
    question="Is evaluation another function than training?",
    needs={"model", "data", "loss"},
    signs=("fit",),
    judge=judge,
    examples={"sick": (_normed(0.0), _normed(0.0, steps=120)), "healthy": (_normed(0.1), _normed(0.1, steps=0))},
    explains=("overfits", "memorises-noise", "loss-stalls", "trained-too-short"),
)
