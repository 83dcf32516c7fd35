"""What the last update of training did to the loss: measured change beside the one that the gradient predicts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from theodolite.io.batches import Batch
from theodolite.measure import promoted
from theodolite.measure.curvature.operators import Loss


@dataclass(frozen=True)
class UpdateEffect:
    """Of the last update on each batch: the loss before and after it, and the change that the gradient before it predicts.

    ``length`` is that of the update, relative to the weights.
    """

    before: tuple[float, ...]
    after: tuple[float, ...]
    predicted: tuple[float, ...]
    length: float

    @property
    def change(self) -> float:
        """The measured change of the mean loss."""
        return (sum(self.after) - sum(self.before)) / len(self.before)

    @property
    def forecast(self) -> float:
        """The change of the mean loss that the gradient predicts."""
        return sum(self.predicted) / len(self.predicted)

    @property
    def noise(self) -> float:
        """The standard error of the measured change, from batch to batch; not a number with one batch."""
        return _stderr([after - before for before, after in zip(self.before, self.after, strict=True)])

    @property
    def ratio_noise(self) -> float:
        """The standard error of the ratio of both changes, from batch to batch (jackknife); not a number with one batch."""
        changes = [after - before for before, after in zip(self.before, self.after, strict=True)]
        count = len(changes)
        if count < 2:
            return math.nan
        left = [
            (sum(changes) - c) / (sum(self.predicted) - p) if sum(self.predicted) != p else math.nan
            for c, p in zip(changes, self.predicted, strict=True)
        ]
        return _stderr(left) * (count - 1)


def update_effect(
    model: nn.Module, loss: Loss, batches: Sequence[Batch], *, before: Mapping[str, Tensor], after: Sequence[float] = ()
) -> UpdateEffect:
    """The effect of the step from the weights ``before`` to the present ones, in the mode that the model is in.

    One forward and one backward pass at the old weights; the losses ``after`` are measured unless they are known. Nothing of the
    model is changed.

    >>> model = nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.constant_(model.weight, 1.0)
    >>> x, old = torch.ones(1, 1), {"weight": torch.tensor([[3.0]])}
    >>> effect = update_effect(model, lambda z, t: (z - t).square().mean() / 2, [Batch((x,), {}, 0 * x)], before=old)
    >>> effect.before, effect.after, effect.predicted
    ((4.5,), (0.5,), (-6.0,))
    """
    own = {name: value.detach().requires_grad_() for name, value in before.items()}
    now = {name: p.detach() for name, p in model.named_parameters()}
    moves = {name: promoted(now[name]) - promoted(own[name].detach()) for name in own}
    size = math.sqrt(_total((now[name], now[name]) for name in own))
    length = math.sqrt(_total((move, move) for move in moves.values()))
    starts, ends, forecasts = [], [], []
    for place, batch in enumerate(batches):
        value = _value(model, loss, own, batch)
        slopes: tuple[Tensor | None, ...] = torch.autograd.grad(value, list(own.values()), allow_unused=True)
        pairs = zip(slopes, moves.values(), strict=True)
        forecasts.append(_total((slope, move) for slope, move in pairs if slope is not None))
        starts.append(float(value.detach()))
        if place < len(after):
            ends.append(after[place])
        else:
            with torch.no_grad():
                ends.append(float(_value(model, loss, now, batch)))
    return UpdateEffect(tuple(starts), tuple(ends), tuple(forecasts), length / size if size else math.inf)


def _value(model: nn.Module, loss: Loss, parameters: Mapping[str, Tensor], batch: Batch) -> Tensor:
    answer: Any = functional_call(model, dict(parameters), batch.inputs, dict(batch.keywords))
    value: Tensor = loss(
        answer["logits"] if isinstance(answer, Mapping) and "logits" in answer else answer, batch.target
    )
    return value


def _total(pairs: Iterable[tuple[Tensor, Tensor]]) -> float:
    """The sum of products, added up in double precision and read once."""
    sums = [(a * b).sum(dtype=torch.float64) for a, b in pairs]
    return float(torch.stack(sums).sum()) if sums else 0.0


def _stderr(values: Sequence[float]) -> float:
    count = len(values)
    if count < 2:
        return math.nan
    mean = sum(values) / count
    return math.sqrt(sum((value - mean) ** 2 for value in values) / (count - 1) / count)
