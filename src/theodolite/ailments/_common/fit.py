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
    targets = [b.target for b in batches if isinstance(b.target, Tensor)]
    classes, majority = 0, math.nan
    if targets and not targets[0].is_floating_point() and targets[0].ndim >= 1:
        whole = torch.cat([t.reshape(-1) for t in targets])
        whole = whole[whole >= 0]
        counts = torch.bincount(whole) if len(whole) else torch.zeros(1)
        classes, majority = int((counts > 0).sum()), float(counts.max() / max(1, len(whole)))
    training = _scores(model, answer, loss, batches, classes)
    return Fit(training, _scores(model, answer, loss, held_out, classes) if held_out else None, classes, majority)


def _scores(model: nn.Module, answer: Any, loss: Any, batches: Sequence[Batch], classes: int) -> Scores:
    losses, right, counted, samples = [], 0, 0, 0
    for batch in batches:
        output = answer(model, batch)
        losses.append(float(loss(output, batch.target)))
        samples += len(batch)
        if classes and isinstance(output, Tensor) and isinstance(batch.target, Tensor):
            told = _told(output, batch.target)
            if told is not None:
                right += int((told == batch.target)[batch.target >= 0].sum())
                counted += int((batch.target >= 0).sum())
    values = torch.tensor(losses, dtype=torch.float64)
    stderr = float(values.std() / math.sqrt(len(values))) if len(values) > 1 else 0.0
    return Scores(float(values.mean()), stderr, right / counted if counted else math.nan, samples)


def _told(output: Tensor, target: Tensor) -> Tensor | None:
    """The class that an answer names, whichever axis holds the classes; None where none does."""
    if output.ndim == target.ndim + 1:
        for axis in (1, output.ndim - 1):
            if output.shape[:axis] + output.shape[axis + 1 :] == target.shape:
                return output.argmax(axis)
    if output.shape == target.shape and output.is_floating_point():
        return (output > 0).to(target.dtype) if bool((output < 0).any()) else (output > 0.5).to(target.dtype)
    return None


def constant_loss(
    model: nn.Module, answer: Callable[[nn.Module, Batch], Any], loss: Any, batches: Sequence[Batch], *, steps: int = 60
) -> float:
    """The least mean loss of one answer given to every sample, found by descent on that answer."""
    from theodolite.core.state import untouched

    with untouched(model), torch.no_grad():
        like = answer(model, batches[0])
    if not isinstance(like, Tensor) or not like.is_floating_point():
        return math.nan
    few = batches[: max(1, 2048 // max(1, len(batches[0])))]
    with torch.enable_grad():
        constant = torch.zeros(1, *like.shape[1:], dtype=like.dtype, device=like.device).float().requires_grad_()
        seeker = torch.optim.LBFGS([constant], max_iter=steps, line_search_fn="strong_wolfe")

        def mean() -> Tensor:
            seeker.zero_grad()
            parts = [loss(constant.to(like.dtype).expand(len(b), *like.shape[1:]), b.target) for b in few]
            value: Tensor = torch.stack([p.float() for p in parts]).mean()
            torch.autograd.backward(value)
            return value

        try:
            seeker.step(mean)  # type: ignore[no-untyped-call]
            with torch.no_grad():
                return float(
                    torch.stack(
                        [loss(constant.to(like.dtype).expand(len(b), *like.shape[1:]), b.target).float() for b in few]
                    ).mean()
                )
        except (RuntimeError, ValueError):
            return math.nan
