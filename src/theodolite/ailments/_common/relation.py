"""What a kernel machine can tell of targets from inputs, each sample left out in turn, beside the same with targets permuted."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from theodolite.ailments._common.samples import Sample, classes_in
from theodolite.measure.propagation.input_sizes import input_scales
from theodolite.theory import Mlp
from theodolite.theory.kernels.inference import leave_one_out_residuals
from theodolite.theory.kernels.wide_networks import mlp_kernels

SAMPLES, PERMUTATIONS = 700, 99
RIDGES = (0.01, 0.3, 3.0)
"""Ridges beside the kernel's mean diagonal; the best counts, for permuted targets as well."""

HASHED, MOST_COLUMNS = 2048, 1024


@dataclass(frozen=True)
class Relation:
    """``correlation`` of a kernel machine's answers with the targets, in the mean over classes or columns.

    Of labels of which a share q is right and the rest random, it is q times that of right ones. ``null`` and ``null_error`` are
    its mean and deviation over permuted targets, ``p_value`` is that of the permutations.
    """

    correlation: float
    null: float
    null_error: float
    p_value: float
    samples: int
    classes: int

    @property
    def visible(self) -> float:
        """The least correlation that would have stood out by three errors: the power of the test."""
        return 3 * self.null_error


def relation_of(sample: Sample) -> Relation | None:
    """The relation between a sample's inputs and targets; None where it has no one input, or targets of another kind."""
    if sample.target is None or len(sample.inputs) != 1:
        return None
    order = torch.randperm(len(sample), generator=torch.Generator().manual_seed(0))[:SAMPLES]
    target = sample.target.cpu()[order]
    classes = classes_in(target)
    if classes is not None:
        y = torch.nn.functional.one_hot(torch.unique(classes, return_inverse=True)[1]).double()
    elif target.is_floating_point() and target.ndim <= 2:
        y = target.reshape(len(target), -1).double()
        y = y[:, y.std(0) > 0]
    else:
        return None
    if y.shape[1] == 0 or y.shape[1] > 64 or (classes is not None and y.shape[1] < 2):
        return None
    rows = features(sample.inputs[0].cpu()[order])
    kernel = mlp_kernels(Mlp(hidden_layers=1, activation="relu", weight_variance=2.0, bias_variance=0.1), rows).ntk
    return _permuted(kernel, y - y.mean(0), classes is not None)


def _permuted(kernel: Tensor, y: Tensor, is_classes: bool) -> Relation:
    n, outputs = y.shape
    generator = torch.Generator().manual_seed(1)
    orders = [torch.arange(n), *(torch.randperm(n, generator=generator) for _ in range(PERMUTATIONS))]
    every = torch.stack([y[order] for order in orders])  # (orders, n, outputs)
    flat = every.permute(1, 0, 2).reshape(n, -1)
    size = float(kernel.diagonal().mean())
    best = torch.full((len(orders),), -math.inf, dtype=torch.float64)
    for ridge in RIDGES:
        told = flat - leave_one_out_residuals(kernel, flat, ridge=ridge * size)
        told = told.reshape(n, len(orders), outputs).permute(1, 0, 2)
        best = torch.maximum(best, correlations(told, every))
    null = best[1:]
    p_value = (1 + int((null >= best[0]).sum())) / len(orders)
    return Relation(float(best[0]), float(null.mean()), float(null.std()), p_value, n, outputs if is_classes else 0)


def correlations(told: Tensor, truth: Tensor) -> Tensor:
    """The correlation of answers with targets, (..., n, outputs) each, in the mean over outputs that vary."""
    a, b = told - told.mean(-2, keepdim=True), truth - truth.mean(-2, keepdim=True)
    size = (a.square().sum(-2) * b.square().sum(-2)).sqrt()
    each = torch.where(size > 0, (a * b).sum(-2) / size.clamp(min=1e-300), torch.zeros_like(size))
    return each.mean(-1)


def features(x: Tensor) -> Tensor:
    """Rows of unit mean square in float64: standardized numbers, or counts of tokens and of neighboring pairs of tokens."""
    if x.is_floating_point() or x.ndim != 2:
        rows = input_scales(x.float().reshape(len(x), -1)).standardized(x.float().reshape(len(x), -1)).double()
        if rows.shape[1] > MOST_COLUMNS:
            draw = torch.randn(
                rows.shape[1], MOST_COLUMNS, generator=torch.Generator().manual_seed(2), dtype=torch.float64
            )
            rows = rows @ draw / math.sqrt(rows.shape[1])
    else:
        tokens = x.long()
        pairs = (tokens[:, :-1] * 7919 + tokens[:, 1:] * 104_729 + 17) % HASHED
        rows = torch.zeros(len(x), 2 * HASHED, dtype=torch.float64)
        rows.scatter_add_(1, tokens % HASHED, torch.ones_like(tokens, dtype=torch.float64))
        rows.scatter_add_(1, HASHED + pairs, torch.ones_like(pairs, dtype=torch.float64))
        rows = rows[:, rows.any(0)].sqrt()
        rows = rows - rows.mean(0)
    return rows / rows.square().mean().sqrt().clamp(min=1e-12)
