r"""Do inputs say anything about targets at all?

Two witnesses must both see nothing. One is a kernel machine with the tangent kernel of a wide network (of numbers; of counts
of tokens and of neighboring pairs for integers): its answers for each sample, left out in turn, are correlated with the
targets, and so for 99 permutations of the targets. The other is the network itself: the correlation of its answers with
held-out targets, or a short training on a copy. Of labels of which a share q is right, a correlation is q times that of
right ones. The power is stated: what lies within three deviations of permuted targets is not seen, and with fewer than 200
samples, or 0.2 not visible, nothing is said. Where something is seen but both correlations are below 0.2, labels are mostly
noise or the inputs lack what decides: a warning. Permuted targets give a p-value above 0.01 in 99 of 100; related ones are
called unrelated only where kernel and network both fail.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from theodolite.ailments._common.arms import arm, gain
from theodolite.ailments._common.chart import Chart, seen
from theodolite.ailments._common.relation import Relation, correlations, relation_of
from theodolite.ailments._common.samples import classes_in, sample_of
from theodolite.core.ailment import Ailment, Finding, Severity
from theodolite.core.state import untouched

LEAST_SAMPLES, POWER = 200, 0.2
WEAK = 0.2
"""The correlation of answers with targets below which a relation is weak."""


def judge(chart: Chart) -> Iterator[Finding]:
    sample = sample_of(chart.batches)
    if sample is None or len(sample) < LEAST_SAMPLES or not all(bool(torch.isfinite(x).all()) for x in sample.inputs):
        return
    told = _own_correlation(chart)
    if told is not None and told[0] > WEAK:  # the network itself tells enough: no need for the other witness
        return
    relation = relation_of(sample)
    if relation is None or relation.visible > POWER or relation.correlation >= WEAK:
        return
    nothing = relation.p_value > 0.01 or relation.correlation - relation.null < relation.visible
    if told is not None:
        nothing = nothing and told[0] < 3 * told[1]
        yield _finding(
            relation, f"the network's answers {told[0]:.2f} ± {told[1]:.2f} on held-out data", nothing=nothing
        )
        return
    short = _trial_share(chart)
    if nothing and short is not None and short[0] <= 3 * short[1]:
        yield _finding(
            relation,
            f"a short training on a copy takes off {max(0.0, short[0]):.1%} ± {short[1]:.1%} of a constant "
            "answer's loss",
            nothing=False,
        )


def _own_correlation(chart: Chart) -> tuple[float, float] | None:
    """That of a trained network's answers with held-out targets, and its error; None where it cannot be told."""
    if chart.model is None or chart.fit is None or len(chart.held_out) == 0:
        return None
    trained = (
        bool(chart.history) or chart.origin is not None or (chart.optimizer is not None and bool(chart.optimizer.state))
    )
    if not trained and chart.fit.training.loss >= 0.98 * chart.chance:
        return None
    held_out = sample_of(chart.held_out)
    target = None if held_out is None else held_out.target
    if target is None or len(target) < 50:
        return None
    with untouched(chart.model), torch.no_grad():
        answers = [chart.answer(chart.model, batch) for batch in chart.held_out]
    if not all(isinstance(answer, Tensor) and answer.ndim <= 2 for answer in answers):
        return None
    answer = torch.cat(answers).double()
    answer = answer.reshape(len(answer), -1)
    classes = classes_in(target)
    if classes is not None and answer.shape[1] > int(classes.max()):
        answer, truth = answer.softmax(1), torch.nn.functional.one_hot(classes, answer.shape[1]).double()
        there = truth.any(0)
        answer, truth = answer[:, there], truth[:, there]
    else:
        truth = (target if classes is None else classes).double().reshape(len(target), -1)
    if answer.shape != truth.shape or not bool(torch.isfinite(answer).all()):
        return None
    return float(correlations(answer, truth)), 1 / math.sqrt(len(truth))


def _trial_share(chart: Chart) -> tuple[float, float] | None:
    """What a short training from here tells of batches it has not seen, beyond a constant answer."""
    run = arm(chart)
    if run is None or not chart.chance > 0:
        return None
    return gain(tuple(loss / chart.chance for loss in run.held_out), (1.0,) * len(run.held_out))


def _finding(relation: Relation, witness: str, *, nothing: bool) -> Finding:
    severity: Severity = "critical" if nothing else "warning"
    of = "labels" if relation.classes else "targets"
    what = f"Inputs say {'nothing' if nothing or relation.p_value > 0.01 else 'little'} about {of}"
    return Finding(
        severity=severity,
        where="targets",
        says=f"{what}: a kernel machine's answers correlate with them by {relation.correlation:.2f} (permuted {of}: "
        f"{relation.null:.2f} ± {relation.null_error:.2f}, p = {relation.p_value:.2g}; {relation.visible:.2f} would be seen with "
        f"{relation.samples} samples), and {witness}. What is learnt beyond that is learnt by heart.",
        remedy="look at ten pairs by eye; check that inputs and targets were shuffled, sorted or joined together, with one index",
        evidence=(
            seen("correlation of a kernel machine's answers", relation.correlation, stderr=relation.null_error),
            seen("the same with permuted targets", relation.null, stderr=relation.null_error),
            seen("p-value of the permutations", relation.p_value),
        ),
    )


def _case(seed: int, related: float, *, steps: int = 60) -> dict[str, object]:
    """Three classes of 600 samples, a share of the labels at their own place."""
    generator = torch.Generator().manual_seed(seed)

    def draw(n: int) -> tuple[Tensor, Tensor]:
        x = torch.randn(n, 10, generator=generator)
        y = (x[:, 0] + x[:, 1] > 0).long() + (x[:, 2] > 0.3).long()
        mixed = torch.rand(n, generator=generator) > related
        return x, torch.where(mixed, y[torch.randperm(n, generator=generator)], y)

    data, validation = draw(600), draw(600)
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data[0]), data[1]).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return {
        "model": model,
        "data": data,
        "validation": validation,
        "loss": nn.functional.cross_entropy,
        "optimizer": optimizer,
    }


def shuffled(seed: int) -> dict[str, object]:
    return _case(seed, 0.0)


def shuffled_not_yet_trained(seed: int) -> dict[str, object]:
    return _case(seed, 0.0, steps=0)


def related(seed: int) -> dict[str, object]:
    return _case(seed, 1.0)


def half_noise(seed: int) -> dict[str, object]:
    return _case(seed, 0.6)


def related_not_yet_trained(seed: int) -> dict[str, object]:
    return _case(seed, 1.0, steps=0)


ailment = Ailment(
    question="Do inputs say anything about targets?",
    needs={"model", "data", "loss"},
    signs=("batches", "held_out", "fit", "chance"),
    judge=judge,
    examples={"sick": (shuffled, shuffled_not_yet_trained), "healthy": (related, half_noise, related_not_yet_trained)},
    explains=("memorises-noise", "overfits", "loss-stalls", "step-too-small", "trained-too-short", "batch-noise"),
)
