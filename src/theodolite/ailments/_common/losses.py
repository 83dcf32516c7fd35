"""What a loss does, measured on answers drawn for it: whether it listens to them, to whom a target belongs, what it likes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from theodolite.ailments._common.batching import first_rows
from theodolite.ailments._common.chart import Chart
from theodolite.ailments._common.fit import answer_shapes, labels_of, told_classes
from theodolite.ailments._common.network import longer_trial
from theodolite.ailments._common.outputs import FEW, least_loss, size_of
from theodolite.io.batches import Batch

MOST_CLASSES = 100
SAME = 1e-5
"""A relative difference of two float32 losses that is rounding; answers drawn apart differ by far more."""


@contextmanager
def quiet() -> Any:
    """Without the warnings that a doubtful loss gives: they were given already."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def drawn_answers(chart: Chart) -> list[Tensor]:
    """Answers for the first batch, drawn at random in the range of the model's own: plain, probabilities, or their logarithms."""
    assert chart.model is not None
    from theodolite.core.state import untouched

    with untouched(chart.model), torch.no_grad():
        own = chart.answer(chart.model, chart.batches[0])
    if not isinstance(own, Tensor) or not own.is_floating_point() or own.ndim < 1 or len(own) < 4:
        return []
    generator = torch.Generator().manual_seed(0)
    shape = answer_shapes(own)[-1]
    size = size_of(chart.batches[0].target)  # beside targets of a million, answers of unit size are rounded away
    return [shape(size * torch.randn(own.shape, generator=generator)).to(own) for _ in range(3)]


def _values(chart: Chart, answers: list[Tensor], target: Any) -> list[float]:
    assert chart.loss is not None
    with quiet(), torch.no_grad():
        return [float(chart.loss(answer, target)) for answer in answers]


def _equal(first: float, second: float) -> bool:
    return abs(first - second) <= SAME * max(abs(first), abs(second))


def is_blind(chart: Chart, answers: list[Tensor]) -> bool:
    """Whether the loss is the same whatever the answers are."""
    first, *rest = _values(chart, answers, chart.batches[0].target)
    return math.isfinite(first) and all(_equal(first, other) for other in rest)


def is_dealt_out(chart: Chart, answers: list[Tensor]) -> bool:
    """Whether the loss stays when targets are dealt out anew among samples, although it changes with them otherwise."""
    target = chart.batches[0].target
    if target.ndim == 0 or len(target) < 4 or bool((target == target[:1]).all()):
        return False
    generator = torch.Generator().manual_seed(0)
    first = _values(chart, answers, target)
    for _ in range(3):
        order = torch.randperm(len(target), generator=generator).to(target.device)
        if not all(_equal(a, b) for a, b in zip(first, _values(chart, answers, target[order]), strict=True)):
            return False
    # a loss that never looks at its targets (made for learning without labels) is something else
    alone = _values(chart, answers, target[:1].expand_as(target).contiguous())
    return not all(_equal(a, b) for a, b in zip(first, alone, strict=True))


def class_labels(chart: Chart) -> Tensor | None:
    """All targets as classes 0, 1, ..., where they are such: integers, few and without gaps, one a sample, three at least."""
    targets = [b.target for b in chart.batches]
    if not all(isinstance(t, Tensor) and (t.ndim == 1 or (t.ndim == 2 and t.shape[1] == 1)) for t in targets):
        return None
    whole = torch.cat([t.reshape(-1) for t in targets])
    if whole.is_floating_point():
        if not bool((whole == whole.round()).all()):
            return None
        whole = whole.long()
    kinds = torch.unique(whole)
    fits = 3 <= len(kinds) <= MOST_CLASSES and int(kinds[0]) == 0 and int(kinds[-1]) == len(kinds) - 1
    return whole if fits and len(whole) >= 10 * len(kinds) else None


def favorite_answer(chart: Chart, like: Tensor) -> bool:
    """Whether the answer with the least loss is, for every sample, the number of its class."""
    assert chart.loss is not None
    loss, batch = chart.loss, first_rows(chart.batches[0], FEW)
    start = like[: len(batch)].clone()
    target = batch.target
    found: list[Tensor] = []

    def value(answer: Tensor) -> Tensor:
        found[:] = [answer.detach()]
        return loss(answer, target)

    try:
        with quiet():
            least_loss(value, start)
    except (RuntimeError, ValueError, IndexError):
        return False
    numbers = target.reshape(len(batch), *[1] * (start.ndim - 1)).to(start)
    spread = float(numbers.float().std())
    return spread > 0 and float((found[0] - numbers).float().square().mean()) ** 0.5 < 0.25 * spread


def as_classes_and_numbers(chart: Chart, labels: Tensor) -> tuple[float, float, float] | None:
    """Held-out accuracy of least squares on the inputs, for classes and for their numbers (rounded), and the standard error."""
    rows = [b.tensors()[0] for b in chart.batches if b.tensors()]
    if not rows or any(r.shape[1:] != rows[0].shape[1:] for r in rows) or sum(map(len, rows)) != len(labels):
        return None
    x = torch.cat([r.flatten(1) for r in rows]).double()
    x = x[:, :: max(1, x.shape[1] // 512)]
    x = (x - x.mean(0)) / x.std(0).clamp(min=1e-9)
    x = torch.cat([x, torch.ones_like(x[:, :1])], 1)
    half = torch.arange(len(x), device=x.device) % 2 == 0
    wanted = torch.cat([F.one_hot(labels).double(), labels.double().unsqueeze(1)], 1)
    gram = x[half].mT @ x[half]
    ridge = 1e-2 * gram.diagonal().mean() * torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
    answers = x[~half] @ torch.linalg.solve(gram + ridge, x[half].mT @ wanted[half])
    right = labels[~half]
    classes = float((answers[:, :-1].argmax(1) == right).double().mean())
    numbers = float((answers[:, -1].round() == right).double().mean())
    return classes, numbers, math.sqrt(0.5 / max(1, len(right)))


def is_linear(chart: Chart, answers: list[Tensor]) -> bool:
    """Whether the loss of classes is linear in answers that are no logarithms of probabilities, so that it has no least value."""
    target = chart.batches[0].target
    if target.is_floating_point() or answers[0].ndim != target.ndim + 1 or is_logarithm(answers[0]):
        return False
    one, other, _ = answers
    ends, middle = _values(chart, [one, other], target), _values(chart, [(one + other) / 2], target)[0]
    return math.isfinite(middle) and abs(middle - sum(ends) / 2) <= SAME * max(map(abs, (*ends, middle)))


def is_logarithm(answers: Tensor) -> bool:
    """Whether rows are logarithms of probabilities."""
    return answers.shape[-1] > 1 and bool((answers.float().exp().sum(-1) - 1).abs().max() < 1e-3)


def entropy_of(chart: Chart) -> Callable[[Tensor, Any], Tensor] | None:
    """The cross-entropy that fits answers and classes here, whether answers are plain, probabilities or their logarithms."""
    assert chart.model is not None
    from theodolite.core.state import untouched

    with untouched(chart.model), torch.no_grad():
        own = chart.answer(chart.model, chart.batches[0])
    labels = labels_of(chart.batches[0].target)
    if labels is None or labels.ndim != 1 or not isinstance(own, Tensor) or len(own) != len(labels) or own.ndim > 2:
        return None
    single = own.ndim == 1 or own.shape[1] == 1
    if int(labels.max()) >= (2 if single else own.shape[1]) or int(labels.min()) < 0:
        return None
    chances = bool((own >= 0).all()) and bool((own <= 1).all())
    mixed = not single and bool((own.float().sum(-1) - 1).abs().max() < 1e-3)

    def entropy(answer: Tensor, target: Any) -> Tensor:
        classes = labels_of(target)
        assert classes is not None
        inside = answer.clamp(1e-6, 1 - 1e-6)
        scores = answer if not chances else inside.log() if mixed else torch.logit(inside)
        if single:
            return F.binary_cross_entropy_with_logits(scores.reshape(-1), classes.to(scores.dtype))
        return F.cross_entropy(scores, classes)

    return entropy


def agrees_with_cross_entropy(chart: Chart, answers: list[Tensor]) -> bool:
    """Whether the loss rises and falls with cross-entropy on answers drawn at random, or cannot be compared with it."""
    entropy, target = entropy_of(chart), chart.batches[0].target
    if entropy is None or chart.fit is None:
        return True
    generator, shape = torch.Generator().manual_seed(1), answer_shapes(answers[0])[-1]
    many = [shape(torch.randn(answers[0].shape, generator=generator)).to(answers[0]) for _ in range(24)]
    own, like = _values(chart, many, target), [float(entropy(answer, target)) for answer in many]
    table = torch.tensor([own, like], dtype=torch.float64)
    if not bool(torch.isfinite(table).all()) or float(torch.corrcoef(table)[0, 1]) > 0.97:
        return True
    return _is_cross_entropy_of_logits(many, own, target)


def _is_cross_entropy_of_logits(answers: list[Tensor], own: list[float], target: Any) -> bool:
    """Whether the loss is cross-entropy itself, given probabilities for logits: then the answers are at fault, not the loss."""
    try:
        plain = [float(F.cross_entropy(answer, target)) for answer in answers]
    except (RuntimeError, ValueError, IndexError, TypeError):
        return False
    return all(_equal(a, b) for a, b in zip(own, plain, strict=True))


def accuracies(chart: Chart) -> tuple[float, float, float] | None:
    """Accuracy on other batches after a trial as it is and after one with cross-entropy, and the error of their difference."""
    cut = max(1, len(chart.batches) // 4)
    kept: dict[str, nn.Module] = {}
    entropy = entropy_of(chart)
    if entropy is None:
        return None

    def keep(name: str) -> Callable[[nn.Module, torch.optim.Optimizer], None]:
        return lambda model, optimizer: kept.update({name: model})

    def changed_loss(model: nn.Module, batch: Batch) -> Tensor:
        return entropy(chart.answer(model, batch), batch.target)

    if longer_trial(chart, "as it is, kept", keep("plain")) is None:
        return None
    if longer_trial(chart, "cross-entropy", keep("changed"), loss=changed_loss) is None:
        return None
    right: dict[str, list[Tensor]] = {"plain": [], "changed": []}
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        for name, model in kept.items():
            model.eval()
            for batch in chart.batches[:cut]:
                labels = labels_of(batch.target)
                told = None if labels is None else told_classes(chart.answer(model, batch), labels)
                if told is None or labels is None:
                    return None
                right[name].append(told == labels)
    plain, changed = torch.cat(right["plain"]).double(), torch.cat(right["changed"]).double()
    error = float((changed - plain).std() / math.sqrt(len(plain)))
    return float(plain.mean()), float(changed.mean()), error
