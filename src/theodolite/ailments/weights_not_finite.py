"""Are there NaN or infinite weights?

Exact: each tensor is read once and its NaN and infinite values are counted, running statistics included. A buffer, or a tensor
of a file that has no parameter's name, is a mask or a constant of a graph if it holds infinities of one sign and at most one
other value: those are not reported.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from theodolite.core.ailment import Ailment, Finding, evidence, few_of, silent_error
from theodolite.core.lazy_torch import torch
from theodolite.core.subject import Subject
from theodolite.evidence.weights import STATISTICS, WeightFacts, is_constant, weight_facts

if TYPE_CHECKING:
    from torch import nn

at_a_look = silent_error(
    question="Were weights and buffers finite at every look?",
    fact="values not finite",
    severity="critical",
    says="Weights or buffers are not finite: {all}.",
    remedy="go back to the last finite checkpoint; use a smaller lr, or clip gradients to norm 1",
)


def judge(subject: Subject) -> Iterator[Finding]:
    sick = _not_finite(subject) + _running_statistics(subject.model)
    if not sick:
        assert at_a_look.judge is not None
        yield from at_a_look.judge(subject)
        return
    worst = max(sick, key=lambda facts: (facts.nan + facts.infinite) / facts.entries)
    named = few_of([f"{f.name} ({_words(f)})" for f in sick])
    yield Finding(
        severity="critical",
        where=worst.name,
        says=f"Weights are NaN or infinite in {len(sick)} of {max(len(weight_facts(subject)), len(sick))} tensors: {named}."
        f"{_when(subject)} Every output that uses them is NaN.",
        remedy="go back to the last finite checkpoint; torch.autograd.set_detect_anomaly(True) names the operation that failed",
        evidence=tuple(evidence("weights that are not finite", f.nan + f.infinite, where=f.name) for f in sick[:20]),
    )


def _not_finite(subject: Subject) -> list[WeightFacts]:
    trained = None if subject.model is None else {name for name, _ in subject.model.named_parameters()}
    return [
        facts
        for facts in weight_facts(subject).values()
        if (facts.nan or facts.infinite) and not is_constant(facts, trained)
    ]


def _words(facts: WeightFacts) -> str:
    parts = [f"{count} {word}" for count, word in ((facts.nan, "NaN"), (facts.infinite, "infinite")) if count]
    return f"{' and '.join(parts)} of {facts.entries}"


def _running_statistics(model: nn.Module | None) -> list[WeightFacts]:
    found = []
    for name, buffer in () if model is None else model.named_buffers():
        if name.endswith(STATISTICS) and not bool(torch.isfinite(buffer).all()):
            nan, infinite = int(torch.isnan(buffer).sum()), int(torch.isinf(buffer).sum())
            found.append(WeightFacts(name, tuple(buffer.shape), buffer.numel(), nan, infinite))
    return found


def sign(subject: Subject) -> bool:
    """Whether some weight is not a number."""
    return bool(_not_finite(subject))


def _when(subject: Subject) -> str:
    moments = () if subject.run is None else subject.run.moments
    for moment in moments:
        if math.isinf(moment.loss) or (math.isnan(moment.loss) and moment is not moments[0]):
            return f" The loss was first not finite at step {moment.step}."
    return ""


ailment = Ailment(
    question="Are there NaN or infinite weights?",
    needs={"weights"},
    judge=judge,
    sign=sign,
    while_training=at_a_look.while_training,
)
