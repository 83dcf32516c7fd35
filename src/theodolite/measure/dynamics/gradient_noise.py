r"""Per-sample gradients: the trace of their covariance and the squared norm of their mean, without bias."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from theodolite.core.reading import Estimate
from theodolite.core.state import untouched
from theodolite.core.statistics import student_inflation
from theodolite.io.batches import Batch
from theodolite.measure.curvature import Point, point_of
from theodolite.measure.curvature.operators import Loss
from theodolite.measure.functional import batch_statistics, plain_attention

CELLS = 1 << 24
"""Numbers that a block of per-sample gradients may take."""


@dataclass(frozen=True)
class GradientMoments:
    r"""``scatter`` is $\mathrm{tr}\,\Sigma$, ``squared_mean`` $|\bar g|^2$ freed of $\mathrm{tr}\,\Sigma/N$, over ``samples``."""

    scatter: Estimate
    squared_mean: Estimate
    samples: int


def gradient_moments(model: nn.Module, loss: Loss, data: Any) -> GradientMoments | None:
    r"""$\mathrm{tr}\,\Sigma=\frac{1}{N-1}\sum|g_i-\bar g|^2$ and $|\bar g|^2-\mathrm{tr}\,\Sigma/N$ over all the data.

    ``loss`` averages over its batch; ``g_i`` is its gradient on sample i alone. None where there are fewer than two
    samples. Errors are those of the mean of $|g_i|^2$ and of $g_i\cdot\bar g$. Source: mccandlish2018.

    >>> x = torch.tensor([[1.0], [1.0], [3.0]])
    >>> model = nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.zeros_(model.weight)
    >>> found = gradient_moments(model, lambda z, t: (t * z).mean(), (x, torch.ones(3, 1)))
    >>> round(found.scatter.value, 4), round(found.squared_mean.value, 4)  # gradients 1, 1, 3
    (1.3333, 2.3333)
    """
    point = point_of(model, loss)
    size = sum(p.numel() for p in point.parameters.values())
    block = max(1, CELLS // size)
    squares, N = [], 0
    mean = torch.zeros(size, dtype=torch.float64)
    with untouched(model), plain_attention():
        for rows in _blocks(point, data, block):
            mean += rows.sum(0, dtype=torch.float64).cpu()
            squares.append(rows.square().sum(1, dtype=torch.float64).cpu())
            N += len(rows)
        if N < 2:
            return None
        mean /= N
        near = mean.to(next(iter(point.parameters.values())))  # for an error alone: its own precision will do
        along = [(rows @ near).double().cpu() for rows in _blocks(point, data, block)]
    norms, signal = torch.cat(squares), float(mean.square().sum())
    scatter = (float(norms.sum()) - N * signal) / (N - 1)
    spread = float(norms.std()) / math.sqrt(N)
    error = 2 * float(torch.cat(along).std()) / math.sqrt(N)
    return GradientMoments(Estimate(scatter, spread), Estimate(signal - scatter / N, error), N)


def group_moments(model: nn.Module, loss: Loss, batches: Iterable[Batch]) -> GradientMoments | None:
    r"""The same two numbers from the gradients of small batches of one size, for models in which samples meet.

    Batch normalisation makes the loss of a sample depend on its batch, so gradients of single samples are not those of
    training. With B samples a batch $\mathrm{tr}\,\Sigma=B\,\mathrm{tr}\,\mathrm{cov}(g_B)$. None for fewer than three batches.
    """
    rows, sizes = [], []
    with untouched(model), batch_statistics(model), plain_attention():
        point = point_of(model, loss)
        own = list(point.parameters.values())
        for batch in batches:
            value = point.value(point.output(batch), batch)
            found = torch.autograd.grad(value, own, materialize_grads=True)
            rows.append(torch.cat([g.detach().reshape(-1) for g in found]))
            sizes.append(len(batch))
    if len(rows) < 3:
        return None
    G, B = torch.stack(rows), sum(sizes) / len(sizes)
    gram = (G @ G.T).double().cpu()
    n = len(gram)

    def moments(kept: Tensor) -> tuple[float, float]:
        part = gram[kept][:, kept]
        k = len(part)
        signal = float(part.mean())
        spread = (float(part.diagonal().sum()) - k * signal) / (k - 1)
        return B * spread, signal - spread / k

    whole = moments(torch.arange(n))
    left = torch.tensor([moments(torch.arange(n)[torch.arange(n) != i]) for i in range(n)], dtype=torch.float64)
    errors = ((n - 1) * left.var(0, correction=0)).sqrt() * student_inflation(n)
    return GradientMoments(Estimate(whole[0], float(errors[0])), Estimate(whole[1], float(errors[1])), sum(sizes))


def _blocks(point: Point, data: Any, block: int) -> Any:
    """Gradients of single samples, (block, P); vectorised where the model can be."""
    own = point.parameters
    for batch in point.batches(data):
        for start in range(0, len(batch), block):
            part = _cut(batch, slice(start, start + block))
            try:
                yield _vectorised(point, own, part)
            except (RuntimeError, ValueError, IndexError):  # a model or loss that cannot be vectorised over samples
                yield torch.stack([_single(point, _cut(part, slice(i, i + 1))) for i in range(len(part))])


def _vectorised(point: Point, own: dict[str, Tensor], batch: Batch) -> Tensor:
    if any(isinstance(value, PackedSequence) for value in (*batch.inputs, *batch.keywords.values())):
        raise ValueError("expected a row a sample to vectorise over, got packed sequences; take them one by one")
    tensors = [value for value in (*batch.inputs, *batch.keywords.values(), batch.target) if isinstance(value, Tensor)]

    def value(parameters: dict[str, Tensor], members: list[Tensor]) -> Tensor:
        pool = iter(member[None] for member in members)
        inputs = tuple(next(pool) if isinstance(v, Tensor) else v for v in batch.inputs)
        keywords = {n: next(pool) if isinstance(v, Tensor) else v for n, v in batch.keywords.items()}
        target = next(pool) if isinstance(batch.target, Tensor) else batch.target
        assert point.loss is not None
        moved = Point(point.model, parameters, point.fixed, point.loss)
        found: Tensor = point.loss(moved.output(Batch(inputs, keywords, target)), target)
        return found

    found = torch.func.vmap(torch.func.grad(value), in_dims=(None, 0))(own, tensors)
    return torch.cat([found[name].detach().flatten(1) for name in own], 1)


def _single(point: Point, batch: Batch) -> Tensor:
    own = list(point.parameters.values())
    value = point.value(point.output(batch), batch)
    found = torch.autograd.grad(value, own, materialize_grads=True)
    return torch.cat([g.reshape(-1) for g in found])


def _cut(batch: Batch, part: slice) -> Batch:
    return batch.picked(torch.arange(len(batch))[part])
