"""What the last update of training did to the loss: measured change beside the one that the gradient predicts."""

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch._utils import _flatten_dense_tensors

from theodolite.core.checks import InputError
from theodolite.core.model_wrappers import part_for
from theodolite.io.batches import Batch
from theodolite.measure.curvature.operators import Loss
from theodolite.measure.dynamics.probe_measurements import _joint_length
from theodolite.measure.functional import first_tensor, promoted

PARTS = 2
"""Parts that the answers to a single batch are judged in, for what differs between samples."""

CHUNK = 1 << 24
"""Entries of pieces of a long vector that are brought together on a GPU."""


@dataclass(frozen=True)
class UpdateEffect:
    """Of the last update on each batch: the loss before and after it, and the change that the gradient before it predicts.

    ``length`` is that of the update, relative to the weights; ``slopes`` the mean gradient before the update, one tensor a
    parameter; ``changes`` those of the loss on parts of the samples: the batches, or the halves of a single one.
    """

    before: tuple[float, ...]
    after: tuple[float, ...]
    predicted: tuple[float, ...]
    length: float
    slopes: tuple[Tensor, ...] = field(repr=False)
    sizes: tuple[int, ...]
    changes: tuple[float, ...] = ()

    @property
    def gradient(self) -> Tensor:
        """The mean gradient before the update as one vector (P,)."""
        return _flat(self.slopes)

    @property
    def loss(self) -> float:
        """The mean loss after the update."""
        return self._mean(self.after)

    @property
    def change(self) -> float:
        """The measured change of the mean loss."""
        return self.loss - self._mean(self.before)

    @property
    def forecast(self) -> float:
        """The change of the mean loss that the gradient predicts."""
        return self._mean(self.predicted)

    @property
    def noise(self) -> float:
        """The standard error of the measured change, from part to part; not a number where there is only one."""
        return _stderr(self.changes)

    @property
    def ratio_noise(self) -> float:
        """The standard error of the ratio of both changes: a jackknife over batches, of a single one that of its change alone."""
        count = len(self.predicted)
        if count == 1:
            return self.noise / abs(self.forecast) if self.forecast else math.nan
        left = [
            (sum(self.changes) - c) / (sum(self.predicted) - p) if sum(self.predicted) != p else math.nan
            for c, p in zip(self.changes, self.predicted, strict=True)
        ]
        return _stderr(left) * (count - 1)

    def _mean(self, values: Sequence[float]) -> float:
        return sum(value * size for value, size in zip(values, self.sizes, strict=True)) / sum(self.sizes)


def update_effect(
    model: nn.Module, loss: Loss, batches: Sequence[Batch], *, before: Mapping[str, Tensor]
) -> UpdateEffect:
    """The effect of the step from the weights ``before`` to the present ones, in the mode that the model is in.

    A batch takes one forward and one backward pass at the old weights and a forward pass at the present ones. Nothing of the
    model is changed.

    >>> model = nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.constant_(model.weight, 1.0)
    >>> x, old = torch.ones(1, 1), {"weight": torch.tensor([[3.0]])}
    >>> effect = update_effect(model, lambda z, t: (z - t).square().mean() / 2, [Batch((x,), {}, 0 * x)], before=old)
    >>> effect.before, effect.after, effect.predicted
    ((4.5,), (0.5,), (-6.0,))
    """
    own = {name: value.detach().requires_grad_() for name, value in before.items()}
    every = dict(model.named_parameters())
    if strangers := own.keys() - every.keys():
        raise InputError(
            f"expected earlier weights of this model, got {sorted(strangers)[:3]}; pass those of before the step"
        )
    now = [promoted(every[name].detach()) for name in own]
    move = torch._foreach_sub(now, [promoted(value) for value in before.values()])
    sizes = tuple(len(batch) for batch in batches)
    parts = PARTS if len(batches) == 1 and sizes[0] >= 2 * PARTS else 0
    told, forecasts = [], []
    gradient: tuple[Tensor, ...] = ()
    for batch in batches:
        with _in_place_of({id(every[name]): value for name, value in own.items()}, model):
            answer = part_for(loss, model(*batch.inputs, **batch.keywords))
            value = loss(answer, batch.target)
        found = torch.autograd.grad(value, list(own.values()), allow_unused=True, materialize_grads=True)
        slopes = tuple(promoted(s.to_dense() if s.is_sparse else s) for s in found)
        del found
        forecasts.append(_product(slopes, move))
        gradient = _added(gradient, slopes, len(batch) / sum(sizes))
        with torch.no_grad():
            later = part_for(loss, model(*batch.inputs, **batch.keywords))
            first = [value.detach(), *_losses(loss, answer, batch, parts)]
            told.append(torch.stack([*first, loss(later, batch.target), *_losses(loss, later, batch, parts)]).double())
        del answer, later, value, slopes
    rows = torch.stack(told).reshape(len(told), 2, 1 + parts).cpu()  # (batches, before and after, whole and parts)
    changes = (rows[:, 1] - rows[:, 0])[:, 1 if parts else 0 :].flatten()
    size, moved = _joint_length(now), _joint_length(move)
    return UpdateEffect(
        before=tuple(rows[:, 0, 0].tolist()),
        after=tuple(rows[:, 1, 0].tolist()),
        predicted=tuple(torch.stack(forecasts).tolist()),
        length=moved / size if size else math.inf,
        slopes=gradient,
        sizes=sizes,
        changes=tuple(changes.tolist()),
    )


def _added(total: tuple[Tensor, ...], slopes: tuple[Tensor, ...], weight: float) -> tuple[Tensor, ...]:
    """The mean so far with one more gradient, of this weight in it; of a single batch that gradient itself."""
    if weight == 1:
        return slopes
    if not total:
        return tuple(torch._foreach_mul(slopes, weight))
    torch._foreach_add_(total, slopes, alpha=weight)
    return total


@contextlib.contextmanager
def _in_place_of(values: Mapping[int, Tensor], model: nn.Module) -> Iterator[None]:
    """Other tensors for parameters, by these ones' identity, so that those that layers share stay shared.

    What torch.func.functional_call does too, which looks through the whole model for names first, at the price of a third of a
    forward pass where passes are bound by calls.
    """
    stores = [module._parameters for module in model.modules() if module._parameters]
    places = [(store, name, p) for store in stores for name, p in store.items() if id(p) in values]
    try:
        for store, name, p in places:
            store[name] = values[id(p)]  # type: ignore[assignment]
        yield
    finally:
        for store, name, p in places:
            store[name] = p


def _flat(tensors: Sequence[Tensor]) -> Tensor:
    """All entries as one vector, by one call: a look at a large model waits for the calls, not for the numbers."""
    return _flatten_dense_tensors(tensors)  # type: ignore[no-untyped-call]


def _losses(loss: Loss, answer: Any, batch: Batch, parts: int) -> list[Tensor]:
    """The loss on parts of the samples, from the answers to all of them; not a number where it cannot be told of a part."""
    size = len(batch)
    ends = [round(size * place / parts) for place in range(parts + 1)] if parts else []
    found = []
    for start, end in pairwise(ends):
        try:
            found.append(
                loss(_cut(answer, start, end, size), _cut(batch.target, start, end, size)).detach().reshape(())
            )
        except (RuntimeError, ValueError, IndexError):  # a loss that is not of samples
            found.append(torch.full((), math.nan, device=first_tensor(answer).device))
    return found


def _cut(value: Any, start: int, end: int, size: int) -> Any:
    """Some samples of a tensor, or of each tensor in a nest of them."""
    if isinstance(value, Tensor):
        return value[start:end] if value.ndim and len(value) == size else value
    if isinstance(value, Mapping):
        return {name: _cut(member, start, end, size) for name, member in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(_cut(member, start, end, size) for member in value)
    return value


def _product(a: Sequence[Tensor], b: Sequence[Tensor]) -> Tensor:
    """The inner product of two vectors that are given in pieces, which are added up in double precision.

    A processor waits for memory, which a product of two pieces by BLAS reads once; a GPU for calls, so that pieces go together.
    """
    if a[0].device.type == "cpu":
        return torch.stack([torch.dot(x.reshape(-1), y.reshape(-1)) for x, y in zip(a, b, strict=True)]).double().sum()
    found = []
    for places in _groups([piece.numel() for piece in a]):
        x, y = (_flat([pieces[place] for place in places]) for pieces in (a, b))
        found.append((x * y).sum(dtype=torch.float64).to(a[0].device))
    return torch.stack(found).sum()


def _groups(sizes: Sequence[int]) -> list[list[int]]:
    """Neighboring places whose sizes are together at most `CHUNK`, or a single one.

    >>> [len(group) for group in _groups([CHUNK - 1, 1, 5, 2 * CHUNK, 3])]
    [2, 1, 1, 1]
    """
    groups: list[list[int]] = []
    held = 0
    for place, size in enumerate(sizes):
        if not groups or held + size > CHUNK:
            groups.append([])
            held = 0
        groups[-1].append(place)
        held += size
    return groups


def _stderr(values: Sequence[float]) -> float:
    count = len(values)
    if count < 2:
        return math.nan
    mean = sum(values) / count
    return math.sqrt(sum((value - mean) ** 2 for value in values) / (count - 1) / count)
