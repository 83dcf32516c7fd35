r"""Per-sample gradients: the trace of their covariance and the squared norm of their mean, without bias."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from theodolite.core.checks import InputError
from theodolite.core.reading import SIGMAS, Estimate
from theodolite.core.state import untouched
from theodolite.core.statistics import skewed_error
from theodolite.io.batches import Batch
from theodolite.measure.curvature import Point, point_of
from theodolite.measure.curvature.operators import Loss
from theodolite.measure.functional import batch_statistics, plain_attention

CELLS, KEPT = 1 << 24, 1 << 27
"""Numbers that a block of per-sample gradients may take, and those up to which all are kept rather than taken twice."""


@dataclass(frozen=True)
class GradientMoments:
    r"""``scatter`` is $\mathrm{tr}\,\Sigma$, ``squared_mean`` $|\bar g|^2$ freed of $\mathrm{tr}\,\Sigma/N$, over ``samples``.

    ``scale`` is their ratio, None where the mean is not told from noise. Samples are regarded as drawn from many more: the
    errors are of having seen no others, by the jackknife, and reach as far as the skewness of its pseudo-values says.
    """

    scatter: Estimate
    squared_mean: Estimate
    samples: int
    scale: Estimate | None = None


def gradient_moments(model: nn.Module, loss: Loss, data: Any) -> GradientMoments | None:
    r"""$\mathrm{tr}\,\Sigma=\frac{1}{N-1}\sum|g_i-\bar g|^2$ and $|\bar g|^2-\mathrm{tr}\,\Sigma/N$ over all the data.

    ``loss`` averages over its batch; ``g_i`` is its gradient on sample i alone. None where there are fewer than two
    samples. What leaving a sample out makes of both follows from $|g_i|^2$ and $g_i\cdot\bar g$ alone. Source: mccandlish2018.

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
    own = list(point.parameters.values())
    squares, N = [], 0
    kept: list[list[Tensor]] = []
    sums = [torch.zeros(p.numel(), dtype=torch.float64) for p in own]
    with untouched(model), plain_attention():
        for rows in _blocks(point, data, block):
            for sum_, part in zip(sums, rows, strict=True):
                sum_ += part.sum(0).double().cpu()
            each = [torch.linalg.vector_norm(part, dim=1).double().square() for part in rows]
            squares.append(torch.stack(each).sum(0).cpu())
            N += len(rows[0])
            kept = [*kept, rows] if N * size <= KEPT else []
        if N < 2:
            return None
        # for an error alone: its own precision will do
        near = [(part / N).to(p) for part, p in zip(sums, own, strict=True)]
        again = kept if N * size <= KEPT else _blocks(point, data, block)
        along = [sum((part @ to).double().cpu() for part, to in zip(rows, near, strict=True)) for rows in again]
    mean = torch.cat(sums) / N
    norms, inner = torch.cat(squares), torch.cat([torch.as_tensor(part) for part in along])
    signal, total = float(mean.square().sum()), float(norms.sum())
    whole = torch.tensor(_moments(total, signal, N), dtype=torch.float64)
    if N < 3:
        scatter, squared = (Estimate(float(value), abs(float(value))) for value in whole)
        return GradientMoments(scatter, squared, N)
    without = (N**2 * signal - 2 * N * inner + norms) / (N - 1) ** 2  # the squared mean of all others
    return _with_errors(whole, torch.stack(_moments(total - norms, without, N - 1), 1), N)


def group_moments(model: nn.Module, loss: Loss, batches: Iterable[Batch]) -> GradientMoments | None:
    r"""The same two numbers from the gradients of small batches of one size, for models in which samples meet.

    Batch normalization makes the loss of a sample depend on its batch, so gradients of single samples are not those of
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

    def moments(kept: Tensor) -> Tensor:
        part = gram[kept][:, kept]
        spread, signal = _moments(float(part.diagonal().sum()), float(part.mean()), len(part))
        return torch.tensor([B * spread, signal], dtype=torch.float64)

    left = torch.stack([moments(torch.arange(n)[torch.arange(n) != i]) for i in range(n)])
    return _with_errors(moments(torch.arange(n)), left, sum(sizes))


def _moments(total: Any, signal: Any, count: int) -> tuple[Any, Any]:
    """Scatter and squared mean without bias, from the sum of squared norms and the squared norm of the mean."""
    scatter = (total - count * signal) / (count - 1)
    return scatter, signal - scatter / count


def _with_errors(whole: Tensor, left: Tensor, samples: int) -> GradientMoments:
    """Both moments and their ratio, with errors from the same with one of the rows left out, (rows, 2)."""
    n = len(left)
    pseudo = n * whole - (n - 1) * left
    scatter, signal = (Estimate(float(whole[k]), skewed_error(pseudo[:, k].numpy())) for k in (0, 1))
    if signal.value <= SIGMAS * signal.stderr:
        return GradientMoments(scatter, signal, samples)
    ratio = scatter.value / signal.value
    share = pseudo / whole  # the ratio changes by the difference of the shares, to first order
    scale = Estimate(ratio, abs(ratio) * skewed_error((share[:, 0] - share[:, 1]).numpy()))
    return GradientMoments(scatter, signal, samples, scale)


def _blocks(point: Point, data: Any, block: int) -> Iterator[list[Tensor]]:
    """Gradients of single samples, (block, entries) of each parameter; vectorized where the model can be."""
    own = point.parameters
    for batch in point.batches(data):
        for start in range(0, len(batch), block):
            part = batch.picked(slice(start, start + block))
            try:
                yield _vectorized(point, own, part)
            except (RuntimeError, ValueError, IndexError):  # a model or loss that cannot be vectorized over samples
                single = [_single(point, part.picked(slice(i, i + 1))) for i in range(len(part))]
                yield [torch.stack(rows) for rows in zip(*single, strict=True)]


def _vectorized(point: Point, own: dict[str, Tensor], batch: Batch) -> list[Tensor]:
    if any(isinstance(value, PackedSequence) for value in (*batch.inputs, *batch.keywords.values())):
        raise InputError("expected a row a sample to vectorize over, got packed sequences; take them one by one")
    tensors = [value for value in (*batch.inputs, *batch.keywords.values(), batch.target) if isinstance(value, Tensor)]

    def value(parameters: dict[str, Tensor], members: list[Tensor]) -> Tensor:
        pool = iter(member[None] for member in members)
        inputs = tuple(next(pool) if isinstance(v, Tensor) else v for v in batch.inputs)
        keywords = {n: next(pool) if isinstance(v, Tensor) else v for n, v in batch.keywords.items()}
        target = next(pool) if isinstance(batch.target, Tensor) else batch.target
        assert point.loss is not None
        moved = Point(point.model, parameters, point.fixed, point.loss)
        return point.loss(moved.output(Batch(inputs, keywords, target)), target)

    # leaves of autograd's own, one for each sample and without memory: torch.func.grad would import torch's compiler
    leaves = {name: p.detach().expand(len(batch), *p.shape).requires_grad_() for name, p in own.items()}
    values = torch.func.vmap(value)(leaves, tensors)
    if values.shape != (len(batch),):
        raise ValueError(f"expected one number a sample, got {tuple(values.shape)}")
    if not values.requires_grad:
        return [leaf.new_zeros(leaf.shape).flatten(1) for leaf in leaves.values()]
    slopes = torch.autograd.grad(values.sum(), list(leaves.values()), materialize_grads=True)
    return [slope.flatten(1) for slope in slopes]


def _single(point: Point, batch: Batch) -> list[Tensor]:
    own = list(point.parameters.values())
    value = point.value(point.output(batch), batch)
    return [g.reshape(-1) for g in torch.autograd.grad(value, own, materialize_grads=True)]
