"""Whether some of the last batches of a training are the same where they should not be: inputs, targets, or rows."""

from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any

import torch
from torch import Tensor

from theodolite.io.batches import Batch

RUN_OF, ROWS_COMPARED = 5, 64
"""Steps in a row with other inputs and the very same targets; rows of each that are compared."""
ROWS = 4
"""Rows of a batch from which on it is no accident that all are alike."""
HALF = 0.5
"""The share of entries that do not change, and of steps, from which on they are most of them."""
NEXT = "take the next batch in every step: for x, y in loader, not next(iter(loader))"


def targets_stuck(kept: Sequence[Any]) -> tuple[str, ...]:
    """In how many of the last batches in a row the target is the same while the inputs are not."""
    last = [_split(batch) for batch in list(kept)[-RUN_OF:]]
    if len(last) < RUN_OF or any(x is None or y is None for x, y in last):
        return ()
    inputs, targets = zip(*last, strict=True)
    if float(targets[0].double().std()) == 0 if targets[0].numel() > 1 else True:
        return ()
    if _are_places(targets[0]):
        return ()
    same = all(t.shape == targets[0].shape and torch.equal(t, targets[0]) for t in targets)
    others = all(a.shape != b.shape or not torch.equal(a, b) for a, b in pairwise(inputs))
    return (str(RUN_OF),) if same and others and not _rows_have_places(inputs, targets[0]) else ()


def _rows_have_places(batches: Sequence[Tensor], target: Tensor) -> bool:
    """Whether inputs are nearer to each other where targets agree: batches are made in one order of targets, such as by class.

    Rows of a shuffled batch could stand in any order: 99 such orders in each batch are the null, so that stuck targets pass for
    an order in 1 of 100 cases.
    """
    if not target.ndim or any(len(x) != len(target) for x in batches):
        return False
    rows = min(ROWS_COMPARED, len(target))
    kinds = torch.unique(target[:rows].reshape(rows, -1), dim=0, return_inverse=True)[1].cpu()
    member = torch.nn.functional.one_hot(kinds).double()
    flat = [x[:rows].reshape(rows, -1).double().cpu() for x in batches]
    generator = torch.Generator().manual_seed(0)
    orders = torch.rand(100, len(batches), rows, generator=generator).argsort(-1)
    orders[0] = torch.arange(rows)  # as they are
    sums = torch.zeros(100, dtype=torch.float64)
    for a, b in combinations(range(len(batches)), 2):
        sums += (member[orders[:, a]] * (torch.cdist(flat[a], flat[b]) @ member[orders[:, b]])).sum((1, 2))
    return bool((sums[0] < sums[1:]).all())


def _are_places(target: Tensor) -> bool:
    """Whether targets are the rows of the batch themselves, in some order, as where a sample is to be told from the others."""
    flat = target.reshape(-1)
    return torch.equal(flat.sort().values, torch.arange(len(flat), dtype=flat.dtype, device=flat.device))


def inputs_stuck(kept: Sequence[Any]) -> tuple[str, ...]:
    """In how many of the last batches in a row the inputs are the same while most of their labels are others."""
    last = [_split(batch) for batch in list(kept)[-RUN_OF:]]
    if len(last) < RUN_OF or any(x is None or y is None or y.is_floating_point() or len(x) < 2 for x, y in last):
        return ()
    pairs = pairwise(last)
    same = all(
        len(y) == len(x)
        and a.shape == x.shape
        and b.shape == y.shape
        and torch.equal(a, x)
        and (b != y).float().mean() > HALF
        for (a, b), (x, y) in pairs
    )
    return stuck(RUN_OF, RUN_OF) if same else ()


def stuck(steps: int, of: int) -> tuple[str, str]:
    """What is said of so many steps."""
    return f"{steps} of {of} steps used the same batch as the step before: the loop never reaches the next batch", NEXT


def is_one_row(value: Tensor) -> bool:
    """Whether a batch of several rows has the same numbers in all of them, as its first, middle and last row tell."""
    if len(value) < ROWS or value[0].numel() < 2:
        return False
    return torch.equal(value[0], value[-1]) and torch.equal(value[0], value[len(value) // 2])


def _split(batch: Any) -> tuple[Any, Any]:
    """The first input and the target of a batch as it is kept."""
    if isinstance(batch, Batch):
        return next(iter(batch.tensors()), None), batch.target
    if isinstance(batch, Mapping):
        return next((v for k, v in batch.items() if k != "y" and isinstance(v, Tensor)), None), batch.get("y")
    return (batch[0], batch[-1]) if isinstance(batch, tuple | list) and len(batch) > 1 else (None, None)
