"""Whatever the user calls data, as batches that a model can be called with, again and again."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from theodolite.core.checks import InputError, InputTypeError

TARGETS = ("labels", "label", "targets", "target", "y")
"""Names under which a batch that is a mapping may hold what the model should answer."""


@dataclass(frozen=True)
class Batch:
    """Positional inputs, keyword inputs and the target (None where there is none)."""

    inputs: tuple[Any, ...]
    keywords: Mapping[str, Any] = field(default_factory=dict)
    target: Any = None

    def tensors(self) -> list[Tensor]:
        """Every tensor the model is given; of packed sequences their values."""
        values = [v.data if isinstance(v, PackedSequence) else v for v in (*self.inputs, *self.keywords.values())]
        return [value for value in values if isinstance(value, Tensor)]

    def __len__(self) -> int:
        for value in (*self.inputs, *self.keywords.values()):
            if isinstance(value, PackedSequence):
                return int(value.batch_sizes[0])
            if isinstance(value, Tensor):
                return len(value)
        return 0

    @property
    def in_rows(self) -> bool:
        """Whether all of it is one row a sample."""
        tensors = [*self.tensors(), self.target]
        whole = len(self.tensors()) == len(self.inputs) + len(self.keywords)
        return whole and all(isinstance(t, Tensor) and t.ndim and len(t) == len(self) for t in tensors)

    def picked(self, rows: Tensor | slice) -> Batch:
        """Some samples, by their places or by a mask."""
        count = len(self)
        keywords = {name: _picked(value, rows, count) for name, value in self.keywords.items()}
        inputs = tuple(_picked(value, rows, count) for value in self.inputs)
        return Batch(inputs, keywords, _picked(self.target, rows, count))

    def spread(self, rows: int) -> Batch:
        """So many samples, evenly from all of it."""
        return self.picked(torch.arange(0, len(self), max(1, len(self) // rows))[:rows])

    def shapes(self) -> str:
        """For error messages: what the model was given."""
        named = [f"{name}={_shape(value)}" for name, value in self.keywords.items()]
        return ", ".join([_shape(value) for value in self.inputs] + named)

    def on(self, model: nn.Module) -> Batch:
        """The batch on the model's device, floating inputs in the model's precision."""
        like = next((p for p in chain(model.parameters(), model.buffers()) if p.is_floating_point()), None)
        if like is None:
            return self
        keywords = {name: _moved(value, like) for name, value in self.keywords.items()}
        target = _moved(self.target, like, cast=False)
        return Batch(tuple(_moved(value, like) for value in self.inputs), keywords, target)


@dataclass(frozen=True)
class Batches:
    """A re-iterable of `Batch`: from a DataLoader, a Dataset, tensors, arrays or any collection of batches.

    A tensor is inputs without targets. A *tuple* of tensors is columns (inputs first, target last; several inputs may be a
    tuple of their own) and is cut into batches; a *list* holds batches. A batch is a tensor, a tuple whose last member is the
    target, or a mapping whose target is called one of `TARGETS`. A pandas DataFrame is a row a sample, the target the column of
    such a name; a data set of the Hugging Face library is a mapping of columns, of which the model is given those that its
    arguments name.
    """

    source: Any
    model: nn.Module
    batch_size: int = 256

    def __post_init__(self) -> None:
        if isinstance(self.source, Iterator):
            raise InputError("expected data that can be read more than once, got an iterator; pass list(data)")

    def __iter__(self) -> Iterator[Batch]:
        columns = _columns(self.source)
        if columns is not None:
            yield from self._cut(columns)
            return
        source = self.source
        if hasattr(source, "with_format") and hasattr(source, "column_names"):
            yield from (self._batch(part) for part in _slices(source, self.batch_size))
            return
        if isinstance(source, torch.utils.data.Dataset) and not isinstance(source, torch.utils.data.IterableDataset):
            source = torch.utils.data.DataLoader(source, batch_size=self.batch_size)
        elif not hasattr(source, "__iter__"):
            raise InputTypeError(f"expected data as a DataLoader, tensors or batches, got {type(source).__name__}")
        own = getattr(source, "generator", None)  # a loader's own generator is the user's too
        before = own.get_state() if isinstance(own, torch.Generator) else None
        try:
            for batch in source:
                yield self._batch(batch)
        finally:
            if isinstance(own, torch.Generator) and before is not None:
                own.set_state(before)

    @property
    def empty(self) -> bool:
        """Whether there is no sample at all."""
        batch = next(iter(self), None)
        return batch is None or not batch.tensors() or not len(batch)

    @property
    def target_column(self) -> Tensor | None:
        """All targets, where the data are columns in memory."""
        columns = _columns(self.source)
        held = isinstance(columns, tuple) and len(columns) > 1
        return columns[-1] if held and isinstance(columns[-1], Tensor) else None

    def first(self) -> Batch:
        """The first batch, or a clear error where there is none."""
        batch = next(iter(self), None)
        if batch is not None and not batch.tensors() and any(map(_is_text, (*batch.inputs, *batch.keywords.values()))):
            raise InputTypeError("expected data as numbers, got text; encode it first (a tokenizer gives input_ids)")
        if batch is not None and not batch.tensors() and any(map(_is_number, batch.inputs)):
            raise InputTypeError(
                "expected data as tensors or arrays, got lists of numbers; pass torch.tensor(...) of them"
            )
        if batch is None or not batch.tensors() or not len(batch):
            raise InputError("expected data with at least one sample, got none; is the loader empty, or drop_last set?")
        return batch

    def _cut(self, columns: Any) -> Iterator[Batch]:
        members = list(columns.values()) if isinstance(columns, Mapping) else list(columns)
        if not all(member.ndim for member in members):
            raise InputError(
                "expected one sample a row, got a single number; pass inputs[None] and targets[None] of one sample"
            )
        lengths = [len(member) for member in members]
        if len(set(lengths)) > 1:
            raise InputError(f"expected columns of one length, got lengths {lengths}; pass as many targets as inputs")
        for start in range(0, lengths[0], self.batch_size):
            part = slice(start, start + self.batch_size)
            if isinstance(columns, Mapping):
                yield self._batch({name: member[part] for name, member in columns.items()})
            else:
                yield self._batch(tuple(member[part] for member in members))

    def _batch(self, batch: Any) -> Batch:
        if isinstance(batch, Mapping):
            return self._from_mapping(batch)
        if not isinstance(batch, tuple | list) or isinstance(batch, PackedSequence):
            return Batch((_tensor(batch),))
        if len(batch) == 1:
            return self._batch(batch[0])
        *inputs, target = (_tensor(member) for member in batch)
        if len(inputs) == 1 and isinstance(inputs[0], Mapping):
            return self._named(inputs[0], target)
        if len(inputs) == 1 and isinstance(inputs[0], tuple | list) and not isinstance(inputs[0], PackedSequence):
            inputs = [_tensor(member) for member in inputs[0]]
        return Batch(tuple(inputs), {}, target)

    def _from_mapping(self, batch: Mapping[str, Any]) -> Batch:
        rest = {name: _tensor(value) for name, value in batch.items()}
        name = next((name for name in TARGETS if name in rest), None)
        target = rest.pop(name) if name else None
        return self._named(rest, target)

    def _named(self, rest: Mapping[str, Any], target: Any) -> Batch:
        accepted = self._accepted(rest)
        if accepted:
            return Batch((), accepted, target)
        tensors = [value for value in map(_tensor, rest.values()) if isinstance(value, Tensor)]
        if len(tensors) == 1:  # {"x": ..., "y": ...} for a model whose argument has another name
            return Batch((tensors[0],), {}, target)
        raise InputError(
            f"expected batches with a key among the model's arguments, got {sorted(rest)}; rename the keys as in forward"
        )

    def _accepted(self, named: Mapping[str, Any]) -> dict[str, Any]:
        parameters = inspect.signature(self.model.forward).parameters
        if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            return {name: _tensor(value) for name, value in named.items() if not _is_text(value)}
        return {name: _tensor(value) for name, value in named.items() if name in parameters}


def as_given(batches: Sequence[Batch]) -> list[Any]:
    """Batches in the form in which a loader would give them."""
    return [{**b.keywords, "labels": b.target} if b.keywords else (*b.inputs, b.target) for b in batches]


def together(batches: Sequence[Batch]) -> Batch | None:
    """Batches as one; None where their tensors do not fit together."""
    if not all(batch.in_rows for batch in batches):
        return None
    try:
        keywords = {name: torch.cat([b.keywords[name] for b in batches]) for name in batches[0].keywords}
        inputs = tuple(torch.cat(column) for column in zip(*(b.inputs for b in batches), strict=True))
        return Batch(inputs, keywords, torch.cat([b.target for b in batches]))
    except (RuntimeError, KeyError, ValueError):
        return None


def _picked(value: Any, rows: Tensor | slice, count: int) -> Any:
    """Some samples of one member of a batch of so many; what is not a row a sample stays as it is."""
    if isinstance(value, PackedSequence):
        padded, lengths = (_picked(part, rows, count) for part in pad_packed_sequence(value, batch_first=True))
        return pack_padded_sequence(padded, lengths, batch_first=True, enforce_sorted=False)
    if not isinstance(value, Tensor) or not value.ndim or len(value) != count:
        return value
    return value[rows.to(value.device) if isinstance(rows, Tensor) else rows]


def _columns(source: Any) -> Any:
    if isinstance(source, Tensor | np.ndarray):
        return (_tensor(source),)
    whole = (Tensor, np.ndarray)
    if _is_frame(source):
        return _frame_columns(source)
    if isinstance(source, tuple) and any(_is_frame(member) or hasattr(member, "to_numpy") for member in source):
        source = tuple(_values(member) if hasattr(member, "to_numpy") else member for member in source)
    if isinstance(source, tuple) and len(source) == 2 and isinstance(source[0], tuple) and isinstance(source[1], whole):
        source = (*source[0], source[1])  # ((first, second), target), as a data set of several inputs gives its samples
    if isinstance(source, Mapping) and source and all(hasattr(part, "with_format") for part in source.values()):
        raise InputError(f"expected one split of the data, got {', '.join(map(str, source))}; pass data['train']")
    if isinstance(source, tuple) and source and all(isinstance(member, whole) for member in source):
        return tuple(_tensor(member) for member in source)
    if isinstance(source, Mapping) and source and all(isinstance(member, whole) for member in source.values()):
        return {name: _tensor(member) for name, member in source.items()}
    return None


def _is_frame(source: Any) -> bool:
    """Whether it is a DataFrame, of pandas or one that looks like it."""
    return hasattr(source, "to_numpy") and hasattr(source, "columns")


def _frame_columns(frame: Any) -> tuple[Tensor, ...]:
    """The features as one matrix, and the target where a column has the name of one."""
    names = [str(name) for name in frame.columns]
    name = next((name for name in TARGETS if name in names), None)
    features = _values(frame[[c for c in frame.columns if str(c) != name]])
    if name is None:
        return (features,)
    return features, _values(frame[next(c for c in frame.columns if str(c) == name)])


def _values(table: Any) -> Tensor:
    """A frame or a column as numbers: whole ones stay whole, others are float32 unless they are told apart by more."""
    array = np.asarray(table.to_numpy())
    if array.dtype.kind not in "fiub":
        raise InputError(f"expected columns of numbers, got {array.dtype}; encode text as numbers first")
    return torch.from_numpy(np.ascontiguousarray(array.astype(np.int64) if array.dtype.kind in "iub" else array))


def _slices(source: Any, size: int) -> Iterator[dict[str, Any]]:
    """Batches of a data set of columns, as tensors; columns of text are left out."""
    told = source.with_format("torch")
    for start in range(0, len(source), size):
        part = told[start : start + size]
        yield {name: _stacked(value, name) for name, value in part.items() if not _is_text(value)}


def _stacked(value: Any, name: str) -> Any:
    if isinstance(value, Sequence) and value and isinstance(value[0], Tensor):
        if len({tensor.shape for tensor in value}) > 1:
            raise InputError(f"expected samples of one length in {name}, got several; pad them, or pass a DataLoader")
        return torch.stack(list(value))
    return value


def _is_text(value: Any) -> bool:
    first = value[0] if isinstance(value, list | tuple) and value else value
    return isinstance(first, str | bytes)


def _is_number(value: Any) -> bool:
    """Whether it is a number, or lists of them."""
    while isinstance(value, list | tuple) and value:
        value = value[0]
    return isinstance(value, int | float)


def _tensor(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype == object or value.dtype.kind in "USV":
        raise InputError(f"expected arrays of numbers, got dtype {value.dtype}; encode the values as numbers first")
    return torch.from_numpy(np.ascontiguousarray(value))


def _moved(value: Any, like: Tensor, *, cast: bool = True) -> Any:
    if isinstance(value, PackedSequence):
        packed: Any = value
        return packed.to(like.device, like.dtype if cast and value.data.is_floating_point() else value.data.dtype)
    if isinstance(value, tuple | list):
        return type(value)(_moved(member, like, cast=cast) for member in value)
    if not isinstance(value, Tensor):
        return value
    return value.to(like.device, like.dtype if cast and value.is_floating_point() else value.dtype)


def _shape(value: Any) -> str:
    if isinstance(value, PackedSequence):
        return f"{int(value.batch_sizes[0])} packed sequences of up to {len(value.batch_sizes)}"
    return str(tuple(value.shape)) if isinstance(value, Tensor) else type(value).__name__
