"""How well a model does on its own data and on held-out data, and how well an answer does that never looks at its input."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.io.batches import Batch


@dataclass(frozen=True)
class Scores:
    """Mean loss over samples with its standard error (over batches), and accuracy where targets are classes."""

    loss: float
    stderr: float
    accuracy: float
    samples: int


@dataclass(frozen=True)
class Fit:
    """Scores on the training data and on held-out data; ``classes`` is 0 where targets are not classes."""

    training: Scores
    validation: Scores | None
    classes: int
    majority: float


def fit_of(
    model: nn.Module,
    answer: Callable[[nn.Module, Batch], Any],
    loss: Any,
    batches: Sequence[Batch],
    held_out: Sequence[Batch],
) -> Fit:
    """Scores on both in the mode that the model is in."""
    labels = [labels_of(b.target) for b in batches]
    classes, majority = 0, math.nan
    if labels and all(part is not None for part in labels):
        whole = torch.cat([part.reshape(-1) for part in labels if part is not None])
        whole = whole[whole >= 0]
        counts = torch.bincount(whole) if len(whole) else torch.zeros(1)
        classes, majority = int((counts > 0).sum()), float(counts.max() / max(1, len(whole)))
    training = _scores(model, answer, loss, batches, classes)
    return Fit(training, _scores(model, answer, loss, held_out, classes) if held_out else None, classes, majority)


def labels_of(target: Any) -> Tensor | None:
    """Class numbers: whole numbers, or floating ones that are one-hot rows or nothing but zeros and ones; else None.

    >>> labels_of(torch.tensor([[0.0, 1.0], [1.0, 0.0]])), labels_of(torch.tensor([0.5, 1.0]))
    (tensor([1, 0]), None)
    """
    if not isinstance(target, Tensor) or target.ndim < 1:
        return None
    if not target.is_floating_point():
        return target.long()
    if target.ndim > 2 or not bool(((target == 0) | (target == 1)).all()):
        return None
    if target.ndim == 1 or target.shape[1] == 1:
        return target.reshape(-1).long()
    return target.argmax(1) if bool((target.sum(1) == 1).all()) else None


def _scores(model: nn.Module, answer: Any, loss: Any, batches: Sequence[Batch], classes: int) -> Scores:
    losses, right, counted, samples = [], 0, 0, 0
    for batch in batches:
        output = answer(model, batch)
        losses.append(float(loss(output, batch.target)))
        samples += len(batch)
        labels = labels_of(batch.target) if classes and isinstance(output, Tensor) else None
        told = None if labels is None else told_classes(output, labels)
        if told is not None and labels is not None:
            right += int((told == labels)[labels >= 0].sum())
            counted += int((labels >= 0).sum())
    values = torch.tensor(losses, dtype=torch.float64)
    stderr = float(values.std() / math.sqrt(len(values))) if len(values) > 1 else 0.0
    return Scores(float(values.mean()), stderr, right / counted if counted else math.nan, samples)


def told_classes(output: Tensor, labels: Tensor) -> Tensor | None:
    """The class that an answer names, whichever axis holds the classes; None where none does."""
    if output.ndim == labels.ndim + 1 and output.shape[-1] == 1:
        output = output.squeeze(-1)
    if output.ndim == labels.ndim + 1:
        for axis in (1, output.ndim - 1):
            if output.shape[:axis] + output.shape[axis + 1 :] == labels.shape:
                return output.argmax(axis)
    if output.shape == labels.shape and output.is_floating_point():
        return (output > 0).to(labels.dtype) if bool((output < 0).any()) else (output > 0.5).to(labels.dtype)
    return None


Shape = Callable[[Tensor], Tensor]


def answer_shapes(own: Tensor) -> list[Shape]:
    """The functions that take any numbers to answers like these: themselves, probabilities, or their logarithms alone."""
    plain: Shape = lambda z: z  # noqa: E731
    rows = own.detach().float()
    if own.ndim > 1 and own.shape[-1] > 1 and bool((rows.exp().sum(-1) - 1).abs().max() < 1e-3):
        return [lambda z: z.log_softmax(-1)]
    if bool((rows < 0).any()) or bool((rows > 1).any()):
        return [plain]
    if own.ndim > 1 and own.shape[-1] > 1 and bool((rows.sum(-1) - 1).abs().max() < 1e-3):
        return [plain, lambda z: z.softmax(-1)]
    return [plain, torch.sigmoid]


def constant_loss(
    model: nn.Module, answer: Callable[[nn.Module, Batch], Any], loss: Any, batches: Sequence[Batch], *, steps: int = 60
) -> float:
    """The least mean loss of one answer given to every sample, found by descent on that answer; not a number where none is least.

    Answers that are probabilities may have a loss that takes nothing else, so that these are searched among such too.
    """
    from theodolite.core.state import untouched

    with untouched(model), torch.no_grad():
        like = answer(model, batches[0])
    if not isinstance(like, Tensor) or not like.is_floating_point():
        return math.nan
    few = batches[: max(1, 2048 // max(1, len(batches[0])))]
    found = [_least(shape, like, loss, few, steps) for shape in answer_shapes(like)]
    return min((value for value in found if math.isfinite(value)), default=math.nan)


def _start(like: Tensor, few: Sequence[Batch]) -> Tensor:
    """Where the search begins: the mean of targets that have the shape of answers, which may lie far off, else zero."""
    targets = [b.target for b in few]
    if all(isinstance(t, Tensor) and t.is_floating_point() and t.shape[1:] == like.shape[1:] for t in targets):
        return torch.cat(targets).double().mean(0, keepdim=True).to(device=like.device, dtype=torch.float32)
    return torch.zeros(1, *like.shape[1:], dtype=torch.float32, device=like.device)


def _least(shape: Shape, like: Tensor, loss: Any, few: Sequence[Batch], steps: int) -> float:
    with torch.enable_grad():
        free = _start(like, few).requires_grad_()
        seeker = torch.optim.LBFGS([free], max_iter=steps, line_search_fn="strong_wolfe")

        def mean(times: float = 1.0) -> Tensor:
            constant = shape(times * free).to(like.dtype)
            parts = [loss(constant.expand(len(b), *like.shape[1:]), b.target) for b in few]
            return torch.stack([p.float() for p in parts]).mean()

        def closure() -> Tensor:
            seeker.zero_grad()
            value = mean()
            torch.autograd.backward(value)
            return value

        try:
            seeker.step(closure)  # type: ignore[no-untyped-call]
            with torch.no_grad():
                least, beyond = float(mean()), float(mean(2.0))
        except (RuntimeError, ValueError):  # the loss refuses such answers
            return math.nan
    return math.nan if beyond < least - 0.5 * abs(least) else least  # a loss that falls without end has no least
