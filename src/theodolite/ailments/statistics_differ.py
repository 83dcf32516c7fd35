"""Does evaluation use running statistics (BatchNorm) that are not those of the data?

The same batches are evaluated in training mode and in evaluation mode. It is a fault if evaluation is far worse and recomputing
the statistics, as plain means over the data, repairs most of it. Dropout, which makes training mode worse, never looks like
this.
"""

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean
from typing import Any

import torch
from torch import nn

from theodolite.core.ailment import Ailment, Finding, evidence
from theodolite.core.model_wrappers import copied_model
from theodolite.core.state import untouched
from theodolite.core.subject import Subject
from theodolite.evidence.batches import batches
from theodolite.evidence.constant_answers import constant_loss
from theodolite.evidence.start import steps_made
from theodolite.evidence.task import is_finite
from theodolite.evidence.thresholds import A_FEW, CRITICAL, FEWEST, MOST, PART, RARELY, SURE, WORTH
from theodolite.io.batches import Batch

WORSE = 1.5
"""The loss in evaluation must exceed that in training so many times."""
USUAL = nn.BatchNorm1d(1).momentum or WORTH
"""The momentum that people use."""


def judge(subject: Subject) -> Iterator[Finding]:
    layers = {name: m for name, m in subject.model.named_modules() if _keeps_statistics(m)}
    if not layers or not is_finite(subject) or not _settled(subject, layers.values()):
        return
    few = batches(subject)[:FEWEST]
    train = _losses(subject, subject.model, few, training=True)
    told = _losses(subject, subject.model, few, training=False)
    apart = [b - a for a, b in zip(train, told, strict=True)]
    mean, error, constant = fmean(apart), _error(apart), constant_loss(subject)
    if not (fmean(told) > WORSE * fmean(train) and mean > PART * constant and mean > SURE * error):
        return
    anew = _with_new_statistics(subject)
    if anew is None or not fmean(told) - anew > CRITICAL * mean:
        return
    momenta = {getattr(m, "momentum", None) for m in layers.values()} - {None}
    odd = sorted(m for m in momenta if isinstance(m, float | int) and not USUAL * WORTH <= m <= CRITICAL)
    first = next(iter(layers))
    yield Finding(
        severity="critical" if fmean(told) > MOST * constant else "warning",
        where=first,
        says=f"The same batches have a loss of {fmean(train):.3g} in training mode and {fmean(told):.3g} in evaluation mode: the "
        f"running statistics of the normalization{f' (momentum {odd[0]:g})' if odd else ''} are not those of the data. With "
        f"recomputed statistics the loss is {anew:.3g}.",
        remedy=(f"momentum={USUAL} in layer {first}; " if odd else "")
        + "torch.optim.swa_utils.update_bn(loader, model) before evaluating; nn.GroupNorm if batches are tiny",
        suggested={"statistics_momentum": USUAL},
        evidence=(
            evidence("loss in training mode", fmean(train), stderr=_error(train)),
            evidence("loss in evaluation mode", fmean(told), stderr=_error(told)),
            evidence("loss in evaluation mode, recomputed statistics", anew),
        ),
    )


def _keeps_statistics(module: nn.Module) -> bool:
    return isinstance(getattr(module, "running_mean", None), torch.Tensor) and hasattr(module, "momentum")


def _settled(subject: Subject, layers: Iterable[nn.Module]) -> bool:
    """Whether next to nothing is left in running statistics of what they were before training."""
    counts = [getattr(layer, "num_batches_tracked", None) for layer in layers]
    counted = max((int(count) for count in counts if isinstance(count, torch.Tensor)), default=0)
    return (1 - USUAL) ** max(counted, steps_made(subject)) < RARELY


def _losses(subject: Subject, model: nn.Module, few: Sequence[Batch], *, training: bool) -> list[float]:
    drops = training and any(isinstance(m, nn.modules.dropout._DropoutNd) and m.p > 0 for m in model.modules())
    with untouched(model, training=training), torch.no_grad():
        torch.manual_seed(0)
        return [fmean([float(subject.loss_on(b, model)) for _ in range(A_FEW if drops else 1)]) for b in few]


def _with_new_statistics(subject: Subject) -> float | None:
    """The loss in evaluation mode of a copy whose statistics are plain means over the data."""
    with untouched(None), torch.no_grad():
        other = copied_model(subject.model)
        for module in other.modules():
            if _keeps_statistics(module):
                setattr(module, "momentum", None)  # noqa: B010  a plain mean over batches, which the type of modules does not know
                reset: Any = getattr(module, "reset_running_stats", None)
                if reset is None:
                    return None
                reset()
        other.train()
        for batch in batches(subject):
            subject.answer(batch, other)
        value = fmean(_losses(subject, other, batches(subject)[:FEWEST], training=False))
    return value if math.isfinite(value) else None


def _error(values: Sequence[float]) -> float:
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0


ailment = Ailment(
    question="Does evaluation use other statistics than training (BatchNorm)?",
    needs={"model", "data", "loss"},
    judge=judge,
)
