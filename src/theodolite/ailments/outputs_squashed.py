r"""Can the outputs not reach what the loss asks for?

What the model can answer is measured: the last layer's output is replaced by numbers that descend on the loss freely, sample
by sample, and what they end at is the floor that the function behind that layer puts under the loss; the same descent on the
answers themselves gives the floor of the loss alone. Softmax before a cross-entropy that takes its own softmax cannot go
below $\ln(1+(C-1)e^{-1})$. The gap is exact up to the descent, and is judged beside the loss of the best constant answer.
log-softmax with the negative log-likelihood, a sigmoid with its cross-entropy, or a tanh whose targets lie within (-1, 1)
have no gap. Where the floor is reached but answers are cut on one side (a ReLU on logits), the same training without the cut
must do clearly better.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from theodolite.ailments._common.chart import Chart, seen
from theodolite.ailments._common.examples import digits_like, number_like, stack
from theodolite.ailments._common.network import is_fit
from theodolite.ailments._common.outputs import OutputTail, is_entrywise, least_loss, size_of, tail_of
from theodolite.ailments._common.trials import TrialComparison, told
from theodolite.core.ailment import Ailment, Finding
from theodolite.io.batches import Batch

SHARE, MOST = 0.03, 0.3
"""The floor beside the best constant answer's loss from which it costs accuracy, and from which it is critical."""

BETTER = 0.1


def judge(chart: Chart) -> Iterator[Finding]:
    tail = tail_of(chart) if chart.finite else None
    if tail is None or tail.plain or not chart.chance > 0 or chart.left < 0.2 * chart.budget:
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            floor, free = floors(chart, tail)
    except (
        RuntimeError,
        ValueError,
        IndexError,
    ):  # the loss refuses answers outside its range: then it asks for a squash
        return
    low, high = reach(tail)
    gap = (floor - free) / (chart.chance - free) if chart.chance > free else 0.0
    words = f"between {low:.3g} and {high:.3g}" if high - low < 1e3 else f"never below {low:.3g}" if low > -1e3 else ""
    words = f"{low:.3g} whatever the input" if low == high else words
    if not words:
        return
    if gap > SHARE:
        share = (
            f"{gap:.0%} of a constant answer's {chart.chance:.3g}" if gap < 1 else f"a constant has {chart.chance:.3g}"
        )
        remedy, suggested = _remedy(chart, tail)
        yield Finding(
            severity="critical" if gap > MOST else "warning",
            where=tail.layer,
            says=f"Outputs are squashed behind layer {tail.layer}: they are {words}, and with them the loss cannot go below "
            f"{floor:.3g} ({share}); without the squash it can reach {max(free, 0.0):.2g}.",
            remedy=remedy,
            suggested=suggested,
            evidence=(seen("least loss within reach", floor), seen("least loss of any answer", free)),
        )
        return
    if high - low >= 1e3:  # on one side; what is bounded on both and reaches its floor is what the loss asks for
        yield from _cut(chart, tail, words)


def _remedy(chart: Chart, tail: OutputTail) -> tuple[str, dict[str, str]]:
    """What to type: no activation, or the one that gives probabilities where the loss takes nothing else."""
    assert chart.loss is not None
    try:
        chart.loss(2.0 + tail.answers, tail.batch.target)
    except (RuntimeError, ValueError):
        text = (
            "nn.Sigmoid() in place of the last activation; or none, with F.binary_cross_entropy_with_logits as the loss"
        )
        return text, {"last activation": "sigmoid"}
    return "remove the last activation: the loss takes the plain outputs of the last layer", {
        "remove": "last activation"
    }


def _cut(chart: Chart, tail: OutputTail, words: str) -> Iterator[Finding]:
    """Answers that are cut on one side, for classes: is training without the cut better?"""
    if chart.fit is None or not chart.fit.classes or tail.given.shape != tail.answers.shape or is_fit(chart, 0.9):
        return
    tried = _uncut(chart, tail.layer)
    shut = float((tail.answers == tail.answers.min()).float().mean())
    if not shut > 0.2 or (tried is None and is_fit(chart, 0.1)) or (tried is not None and not tried.is_better(BETTER)):
        return
    proof = told(tried, "Without it")
    yield Finding(
        severity="warning",
        where=tail.layer,
        says=f"Outputs are squashed behind layer {tail.layer}: they are {words}, and {shut:.0%} of them sit at the edge, "
        f"where no gradient "
        f"passes.{proof}",
        remedy="remove the last activation: the loss takes the plain outputs of the last layer",
        suggested={"remove": "last activation"},
        evidence=(seen("share of outputs at the edge", shut),),
    )


def floors(chart: Chart, tail: OutputTail) -> tuple[float, float]:
    """The least loss within reach of the tail, and the least loss of any answer of its shape."""
    assert chart.loss is not None
    loss, target = chart.loss, tail.batch.target
    size = size_of(target)
    try:
        free = least_loss(lambda answer: loss(answer, target), tail.answers, size=size)
    except (RuntimeError, ValueError):  # the loss takes nothing but probabilities
        free = least_loss(lambda answer: loss(answer, target), tail.answers.clamp(0.01, 0.99), within=(1e-6, 1 - 1e-6))
    if is_entrywise(
        tail
    ):  # then the range is all that matters, and a descent cannot get stuck where the function is flat
        return least_loss(lambda answer: loss(answer, target), tail.answers, within=reach(tail), size=size), free
    return least_loss(lambda z: loss(tail.run(z), target), tail.given, size=size), free


@torch.no_grad()
def reach(tail: OutputTail) -> tuple[float, float]:
    """The least and the largest answer, with the last layer's output drawn at scales up to a million."""
    generator = torch.Generator().manual_seed(0)
    draws = torch.randn(tail.given.shape, generator=generator).to(tail.given)
    answers = [tail.run(scale * draws) for scale in (1.0, 30.0, 1e3, 1e6)]
    return min(float(a.min()) for a in answers), max(float(a.max()) for a in answers)


def _uncut(chart: Chart, layer: str) -> TrialComparison | None:
    """Training with the last layer's own output as the answer beside training as it is."""

    def loss(model: nn.Module, batch: Batch) -> Tensor:
        kept: list[Any] = []
        hook = model.get_submodule(layer).register_forward_hook(lambda module, args, output: kept.append(output))
        try:
            chart.answer(model, batch)
        finally:
            hook.remove()
        assert chart.loss is not None
        return chart.loss(kept[-1], batch.target)

    plain, other = chart.trial(), chart.trial("without the last activation", loss=loss)
    return None if plain is None or other is None else TrialComparison(plain, other)


def _softmax(seed: int) -> dict[str, object]:
    return digits_like(seed, lambda: nn.Sequential(stack(1), nn.Softmax(-1)))


def _single(seed: int) -> dict[str, object]:
    """A softmax of one number is always 1."""
    given = number_like(seed, lambda: nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1), nn.Softmax(-1)))
    return {**given, "data": [(x, (y > 0).float()) for x, y in given["data"]], "loss": F.binary_cross_entropy}


def _far(seed: int) -> dict[str, object]:
    """Prices of some hundreds, asked of a sigmoid."""
    given = number_like(seed, lambda: nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1), nn.Sigmoid()))
    return {**given, "data": [(x, 150 + 70 * y) for x, y in given["data"]]}


def _relu(seed: int) -> dict[str, object]:
    return digits_like(seed, lambda: nn.Sequential(stack(1), nn.ReLU()), lr=1e-2)


def _tanh(seed: int) -> dict[str, object]:
    return number_like(seed, lambda: nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1), nn.Tanh()))


def _positive(seed: int) -> dict[str, object]:
    given = number_like(seed, lambda: nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1), nn.ReLU()))
    return {**given, "data": [(x, y.abs()) for x, y in given["data"]]}


def _log_softmax(seed: int) -> dict[str, object]:
    return digits_like(seed, lambda: nn.Sequential(stack(1), nn.LogSoftmax(-1)), loss=F.nll_loss)


def _within(seed: int) -> dict[str, object]:
    given = number_like(seed, lambda: nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1), nn.Tanh()))
    return {**given, "data": [(x, 0.8 * torch.tanh(y)) for x, y in given["data"]]}


def _sigmoid(seed: int) -> dict[str, object]:
    given = number_like(seed, lambda: nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1), nn.Sigmoid()))
    return {**given, "data": [(x, (y > 0).float()) for x, y in given["data"]], "loss": F.binary_cross_entropy}


ailment = Ailment(
    question="Can the outputs reach what the loss asks for?",
    needs={"model", "data", "loss"},
    signs=("now", "chance", "trial"),
    judge=judge,
    examples={"sick": (_softmax, _relu, _tanh, _single, _far), "healthy": (_log_softmax, _within, _sigmoid, _positive)},
    explains=(
        "loss-stalls",
        "units-dead",
        "gradient-vanishes",
        "step-too-small",
        "trained-too-short",
        "targets-not-scaled",
    ),
)
