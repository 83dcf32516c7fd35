"""The samples of a chart as whole columns: inputs and targets joined over batches, and targets told apart by kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from theodolite.ailments._common.chart import Chart
from theodolite.io.batches import Batch
from theodolite.measure.propagation.input_sizes import InputScales, input_scales


@dataclass(frozen=True, eq=False)
class Sample:
    """``inputs`` are all tensors that the model is given, each (n, ...); ``target`` is (n, ...) or None."""

    inputs: tuple[Tensor, ...]
    target: Tensor | None

    def __len__(self) -> int:
        return len(self.inputs[0])

    @property
    def numbers(self) -> Tensor | None:
        """The one floating input, where there is just one that is more than a mask."""
        floating = [x for x in self.inputs if x.is_floating_point() and x.ndim > 1]
        return floating[0] if len(floating) == 1 else None


def sample_of(batches: Sequence[Batch]) -> Sample | None:
    """Batches joined where their tensors fit together; those that do not fit to the first are left out."""
    if not batches or not batches[0].tensors():
        return None
    first = batches[0]
    shapes = [t.shape[1:] for t in first.tensors()]
    if any(t.ndim < 1 or len(t) != len(first) for t in first.tensors()):
        return None
    same = [b for b in batches if [t.shape[1:] for t in b.tensors()] == shapes]
    inputs = tuple(torch.cat([b.tensors()[i].detach() for b in same]) for i in range(len(shapes)))
    targets = [b.target for b in same]
    like = targets[0]
    fits = isinstance(like, Tensor) and like.ndim > 0 and len(like) == len(first)
    fits = fits and all(isinstance(t, Tensor) and t.shape[1:] == like.shape[1:] for t in targets)
    return Sample(inputs, torch.cat(targets) if fits else None)


LARGE, SMALL, SPREAD = 10.0, 0.05, 10.0
"""Mean squares of inputs, and ratios of column ranges, beyond which they are not scaled."""


def unscaled_inputs(chart: Chart) -> InputScales | None:
    """The scales of inputs that are far from unit size, or whose columns differ much; None of others."""
    sample = sample_of(chart.batches)
    x = None if sample is None else sample.numbers
    if x is None or not bool(torch.isfinite(x).all()):
        return None
    scales = input_scales(x)
    return None if SMALL <= scales.mean_square <= LARGE and scales.spread <= SPREAD else scales


def whole_columns(data: Any) -> tuple[Tensor, ...] | None:
    """All of the data, where it lies in memory as tensors; None where it must be read sample by sample."""
    data = getattr(data, "dataset", data)
    members = getattr(data, "tensors", data)
    if not isinstance(members, tuple) or not members:
        return None
    if not all(isinstance(member, Tensor | np.ndarray) for member in members):
        return None
    return tuple(member if isinstance(member, Tensor) else torch.from_numpy(member) for member in members)


def all_targets(chart: Chart) -> Tensor | None:
    """The targets of all samples where they are at hand, else of those that were read."""
    whole = whole_columns(chart.data)
    if whole is not None and len(whole) > 1:
        return whole[-1]
    kept = getattr(getattr(chart.data, "dataset", None), "targets", None)
    if isinstance(kept, Tensor | list) and len(kept) and not isinstance(kept[0], str):
        return torch.as_tensor(kept)
    sample = sample_of(chart.batches)
    return None if sample is None else sample.target


def classes_in(target: Tensor | None) -> Tensor | None:
    """Class numbers (n,) where every sample has one class: integers, one-hot rows, or zeros and ones; else None."""
    if target is None or not target.numel():
        return None
    if target.ndim == 2 and target.shape[1] == 1:
        target = target[:, 0]
    if target.ndim == 1:
        if target.is_floating_point() and not bool(((target == 0) | (target == 1)).all()):
            return None
        whole = target.long()
        return whole if int(whole.min()) >= 0 and len(torch.unique(whole)) <= max(2, len(whole) // 2) else None
    if target.ndim == 2 and bool(((target == 0) | (target == 1)).all()) and bool((target.sum(1) == 1).all()):
        return target.argmax(1)
    return None


def answered_classes(output: Tensor) -> Tensor | None:
    """The class that each row of an output names; None where rows are not scores."""
    if output.ndim == 2 and output.shape[1] > 1:
        return output.argmax(1)
    if output.ndim == 1 or (output.ndim == 2 and output.shape[1] == 1):
        flat = output.reshape(len(output))
        return (flat > (0.0 if bool((flat < 0).any()) else 0.5)).long()
    return None


def is_random_order(classes: Tensor) -> bool:
    """Whether neighbors differ as often as in a random order, within six standard errors: sorted data are no fair sample."""
    shares = torch.bincount(classes).double() / len(classes)
    expected = 1 - float(shares.square().sum())
    changes = float((classes[1:] != classes[:-1]).double().mean())
    error = max(expected * (1 - expected) / max(1, len(classes) - 1), 1e-12) ** 0.5
    return bool(changes > expected - 6 * error)
