"""Batches made smaller or larger, and what a sample costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.state import untouched
from theodolite.io.batches import Batch


def first_rows(batch: Batch, rows: int) -> Batch:
    """The first samples of a batch, where all its tensors have one row a sample; else all of it."""
    tensors = [*batch.tensors(), batch.target]
    if len(batch) <= rows or not all(isinstance(t, Tensor) and t.ndim and len(t) == len(batch) for t in tensors):
        return batch
    if len(batch.inputs) + len(batch.keywords) != len(batch.tensors()):
        return batch
    keywords = {name: value[:rows] for name, value in batch.keywords.items()}
    return Batch(tuple(value[:rows] for value in batch.inputs), keywords, batch.target[:rows])


def seconds_of_a_sample(answer: Callable[[Batch], Any], model: nn.Module, batch: Batch) -> float:
    """Seconds that a forward pass takes for one sample, of some few after a first that warms up; 0 where it fails."""
    few = first_rows(batch, 8)
    try:
        with untouched(model), torch.no_grad():
            answer(few)
            started = time.perf_counter()
            answer(few)
    except (RuntimeError, TypeError, ValueError, IndexError):
        return 0.0
    return (time.perf_counter() - started) / max(1, len(few))


def joined(batches: Sequence[Batch], most: int = 256) -> Batch:
    """Several batches as one of at most so many samples, where their tensors fit together; else the first."""
    first = batches[0]
    if len(first) >= most or first.keywords or len(first.inputs) != 1 or not isinstance(first.inputs[0], Tensor):
        return first
    few, samples = [], 0
    for batch in batches:
        if batch.inputs[0].shape[1:] != first.inputs[0].shape[1:] or not isinstance(batch.target, Tensor):
            break
        few.append(batch)
        samples += len(batch)
        if samples >= most:
            break
    if len(few) < 2 or any(b.target.shape[1:] != first.target.shape[1:] for b in few):
        return first
    return Batch((torch.cat([b.inputs[0] for b in few]),), {}, torch.cat([b.target for b in few]))
