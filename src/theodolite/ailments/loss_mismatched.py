r"""Does the loss ask for something else than the targets mean?

Facts measured and not read off a name. (1) The loss does not change with the answers at all (a cross-entropy of one
output is always 0). (2) It changes with the targets but not when they are dealt out anew among the samples of a batch: an (n,
1) answer against (n,) targets was broadcast, and every answer is compared with every target. (3) Classes are taken as
numbers: the answer that the loss likes best is the number of the class, although least squares on the inputs tells the
classes far better apart as classes than as numbers. (4) Classes that exclude each other have another loss than cross-entropy,
and the same training with cross-entropy on a copy names clearly more of other batches right (three standard errors, which
chance exceeds once in 700, and 2 % at least; else it is a note). (5) The loss of classes is linear in answers that are no
logarithms of probabilities: a negative log-likelihood without its log-softmax. (1), (2) and (5) are exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from theodolite.ailments._common.chart import Chart, seen
from theodolite.ailments._common.examples import digits_like, number_like, stack
from theodolite.ailments._common.losses import (
    accuracies,
    agrees_with_cross_entropy,
    as_classes_and_numbers,
    class_labels,
    drawn_answers,
    favorite_answer,
    is_blind,
    is_dealt_out,
    is_linear,
)
from theodolite.ailments._common.network import learnt
from theodolite.core.ailment import Ailment, Finding

ACCURACY, COSTS = 0.1, 0.02
"""Accuracy that least squares must gain by taking classes as classes, and that training must gain from cross-entropy."""


def judge(chart: Chart) -> Iterator[Finding]:
    if chart.now is None or chart.loss is None or not isinstance(chart.batches[0].target, Tensor):
        return
    answers = drawn_answers(chart)
    if not answers:
        return
    batch, shape = chart.batches[0], tuple(answers[0].shape)
    target = batch.target
    if is_blind(chart, answers):
        yield Finding(
            severity="critical",
            says=f"The loss does not depend on the answers: it is {float(chart.loss(answers[0], target)):.3g} whatever the "
            f"{shape} outputs say.",
            remedy="one output a class for F.cross_entropy, or F.binary_cross_entropy_with_logits for a single output",
            suggested={"loss": "binary_cross_entropy_with_logits"} if shape[-1] == 1 else {"loss": "cross_entropy"},
        )
    elif is_dealt_out(chart, answers):
        squeeze = len(shape) == target.ndim + 1 and shape[-1] == 1
        yield Finding(
            severity="critical",
            says=f"The loss is the same when targets are dealt out anew among the samples: outputs of shape {shape} and "
            f"targets of "
            f"shape {tuple(target.shape)} are broadcast, and every answer is compared with every target.",
            remedy="loss(output.squeeze(-1), target)" if squeeze else "give outputs and targets one shape",
            suggested={"squeeze": True},
        )
    elif is_linear(chart, answers):
        yield Finding(
            severity="critical",
            says="The loss of the classes is a linear function of the answers: it rewards larger answers without end, or asks "
            "for probabilities where it means their logarithms.",
            remedy="F.cross_entropy(output, target) on the plain outputs of the last layer; F.nll_loss only behind log_softmax",
            suggested={"loss": "cross_entropy"},
        )
    else:
        yield from _classes(chart, answers)


def _classes(chart: Chart, answers: list[Tensor]) -> Iterator[Finding]:
    labels = class_labels(chart)
    if labels is not None and favorite_answer(chart, answers[0]):
        told = as_classes_and_numbers(chart, labels)
        if told is not None and told[0] - told[1] > max(ACCURACY, 3 * told[2]):
            yield Finding(
                severity="critical" if not learnt(chart) > 0.1 or answers[0].shape[-1] == 1 else "warning",
                says=f"Classes are taken as numbers: the loss likes the number of the class best as an answer. Least "
                f"squares on the "
                f"inputs names {told[0]:.0%} right when it treats them as classes, {told[1]:.0%} when as numbers.",
                remedy=f"F.cross_entropy with {int(labels.max()) + 1} outputs",
                suggested={"loss": "cross_entropy"},
                evidence=(seen("accuracy as classes", told[0], stderr=told[2]), seen("accuracy as numbers", told[1])),
            )
            return
    if agrees_with_cross_entropy(chart, answers):
        return
    found = accuracies(chart)
    if found is None:
        return
    plain, changed, error = found
    fit = chart.fit.training.accuracy if chart.fit is not None else math.nan
    harm = changed - plain > max(COSTS, 3 * error) and not fit > changed - COSTS
    if harm or changed > plain:
        yield Finding(
            severity="warning" if harm else "note",
            says=f"The loss is not one for classes that exclude each other: with it the trial names {plain:.0%} of other batches "
            f"right, with cross-entropy {changed:.0%} in as many steps.",
            remedy="F.cross_entropy(output, target)",
            suggested={"loss": "cross_entropy"},
            evidence=(seen("accuracy with cross-entropy", changed, stderr=error), seen("accuracy as it is", plain)),
        )


def _broadcast(seed: int) -> dict[str, object]:
    given = number_like(
        seed, lambda: torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    )
    return {
        **given,
        "data": [(x, y.squeeze(1)) for x, y in given["data"]],
        "loss": lambda a, t: (a - t).square().mean(),
    }


def _numbers(seed: int) -> dict[str, object]:
    given = digits_like(
        seed, lambda: torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    )
    return {**given, "loss": lambda a, t: F.mse_loss(a.squeeze(-1), t.float())}


def _single(seed: int) -> dict[str, object]:
    given = digits_like(
        seed, lambda: torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    )
    return {**given, "data": [(x, torch.zeros_like(y)) for x, y in given["data"]]}


def _plain(seed: int) -> dict[str, object]:
    return digits_like(seed, lambda: stack(2))


def _regression(seed: int) -> dict[str, object]:
    return number_like(
        seed, lambda: torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    )


def _counts(seed: int) -> dict[str, object]:
    given = _regression(seed)
    return {**given, "data": [(x, (2 * y + 4).round().clamp(0, 8)) for x, y in given["data"]]}  # type: ignore[attr-defined]


ailment = Ailment(
    question="Does the loss ask for what the targets mean?",
    needs={"model", "data", "loss"},
    signs=("now", "fit", "trial"),
    judge=judge,
    examples={"sick": (_broadcast, _numbers, _single), "healthy": (_plain, _regression, _counts)},
    explains=(
        "loss-stalls",
        "outputs-squashed",
        "targets-not-scaled",
        "labels-unrelated",
        "step-too-small",
        "trained-too-short",
        "classes-unbalanced",
        "layer-cut-off",
    ),
)
