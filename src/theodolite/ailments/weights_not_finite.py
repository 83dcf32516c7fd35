"""Are there weights that are not numbers?

An exact fact: each tensor is read once and what is NaN or infinite is counted. Running statistics of a model count too; tensors
that hold nothing but one finite value and infinities are masks and are left alone, and so is a single infinite number of a file,
which is a constant of its graph. No false alarms but for such masks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from theodolite.ailments._common.chart import Chart, seen
from theodolite.ailments._common.weight_facts import WeightFacts
from theodolite.core.ailment import Ailment, Finding
from theodolite.core.lazy_torch import torch

if TYPE_CHECKING:
    from torch import nn

SHOWN = 3


def judge(chart: Chart) -> Iterator[Finding]:
    constants = chart.model is None  # in a file of a graph, such as the -inf that a maximum starts from
    sick = [
        facts
        for facts in chart.weight_facts.values()
        if (facts.nan or facts.infinite)
        and not _is_mask(facts)
        and not (constants and facts.entries == facts.infinite == 1)
    ]
    sick += _running_statistics(chart.model)
    if not sick:
        return
    worst = max(sick, key=lambda facts: (facts.nan + facts.infinite) / facts.entries)
    named = ", ".join(f"{f.name} ({_words(f)})" for f in sick[:SHOWN])
    more = f" and {len(sick) - SHOWN} more" if len(sick) > SHOWN else ""
    yield Finding(
        severity="critical",
        where=worst.name,
        says=f"Weights are not numbers in {len(sick)} of {max(len(chart.weight_facts), len(sick))} tensors: {named}{more}."
        f"{_when(chart)} Every answer that uses them is NaN.",
        remedy="go back to the last checkpoint that is finite; torch.autograd.set_detect_anomaly(True) names the operation",
        evidence=tuple(seen("weights that are not finite", f.nan + f.infinite, where=f.name) for f in sick[:20]),
    )


def _is_mask(facts: WeightFacts) -> bool:
    return not facts.nan and facts.values <= 2 and "mask" in facts.name.lower()


def _words(facts: WeightFacts) -> str:
    parts = [f"{count} {word}" for count, word in ((facts.nan, "NaN"), (facts.infinite, "infinite")) if count]
    return f"{' and '.join(parts)} of {facts.entries}"


def _running_statistics(model: nn.Module | None) -> list[WeightFacts]:
    found = []
    for name, buffer in () if model is None else model.named_buffers():
        if name.endswith(("running_mean", "running_var")) and not bool(torch.isfinite(buffer).all()):
            nan, infinite = int(torch.isnan(buffer).sum()), int(torch.isinf(buffer).sum())
            found.append(WeightFacts(name, tuple(buffer.shape), buffer.numel(), nan, infinite))
    return found


def _when(chart: Chart) -> str:
    for moment in chart.history:
        if math.isinf(moment.loss) or (math.isnan(moment.loss) and moment is not chart.history[0]):
            return f" The loss was first not finite at step {moment.step}."
    if chart.origin is not None and all(bool(torch.isfinite(t).all()) for t in chart.origin.values()):
        return " They were finite before training."
    return ""


def with_nan(seed: int) -> dict[str, object]:
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    with torch.no_grad():
        model.get_parameter("2.weight")[1, 3] = math.nan
    return {"model": model}


def after_a_blow_up(seed: int) -> dict[str, object]:
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.Linear(16, 2))
    with torch.no_grad():
        model.get_buffer("1.running_var").fill_(math.inf)
    return {"model": model}


def with_large_weights(seed: int) -> dict[str, object]:
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    with torch.no_grad():
        model.get_parameter("0.weight").mul_(1e30)
    return {"model": model}


ailment = Ailment(
    question="Are all weights numbers?",
    needs={"weights"},
    signs=("weight_facts",),
    judge=judge,
    examples={"sick": (with_nan, after_a_blow_up), "healthy": (with_large_weights,)},
    explains=("loss-stalls", "units-dead"),
)
