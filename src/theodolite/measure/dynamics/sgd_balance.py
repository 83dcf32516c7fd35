"""SGD as it runs near a point: what balances in the long run, with errors from blocks of steps."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from theodolite.core.checks import InputError
from theodolite.core.reading import Estimate
from theodolite.core.state import untouched
from theodolite.core.statistics import student_inflation
from theodolite.io.batches import together
from theodolite.measure.curvature import point_of
from theodolite.measure.curvature.operators import Loss
from theodolite.measure.functional import batch_statistics

Array = NDArray[np.float64]

TRIAL = 10
"""Steps whose pace tells how long a run will take."""

SHORT = 1 << 20
"""Entries up to which a vector in pieces is joined: of such, calls take the time and not numbers."""


@dataclass(frozen=True)
class SgdRun:
    r"""Step by step: ``losses`` of batches, ``pulls`` $(\theta-\theta_c)\cdot\nabla L^B$, ``squares`` $|b|^2$ of the updates.

    $\theta_c$ is where the run, after its first part, began. ``finite`` is False where it ran away.
    """

    losses: Array
    pulls: Array
    squares: Array
    finite: bool


@dataclass(frozen=True)
class Sgd:
    """Step size, momentum and batch size of stochastic gradient descent."""

    lr: float
    momentum: float = 0.0
    batch_size: int = 64


def sgd_run(
    model: nn.Module,
    loss: Loss,
    data: Any,
    *,
    sgd: Sgd,
    steps: tuple[int, int],
    patience: float = math.inf,
    progress: Callable[[str, int, int], None] | None = None,
) -> SgdRun:
    r"""SGD on a copy of the parameters, batches drawn afresh from the data without replacement; evaluation mode.

    ``steps`` are those to settle, not kept, and those kept. The same call gives the same run. All data are held together,
    so they should fit in memory. $b'=\beta b+\nabla L^B$, $\theta'=\theta-\eta b'$. A run that would take more than
    ``patience`` seconds, as its first ten steps tell, is refused. Batch normalization goes by the batch, as in training.
    """
    with batch_statistics(model):
        point = point_of(model, loss)
    own = list(point.parameters.values())
    batches = list(point.batches(data))
    whole = batches[0] if len(batches) == 1 else together(batches)
    if whole is None:
        raise InputError("expected batches of tensors of one shape to draw from, got others; pad them, or pass tensors")
    generator = torch.Generator().manual_seed(0)
    velocity = [torch.zeros_like(p) for p in own]
    kept: list[tuple[float, float, float]] = []
    center = [p.detach().clone() for p in own]
    started = time.perf_counter()
    with untouched(model), batch_statistics(model), point.held() as output:
        for step in range(sum(steps)):
            if step == steps[0]:
                center = [p.detach().clone() for p in own]
            if step == TRIAL:
                _check_pace(time.perf_counter() - started, sum(steps), patience)
            if progress is not None and step % 100 == 0:
                progress("running SGD", step, sum(steps))
            rows = torch.randperm(len(whole), generator=generator)[: sgd.batch_size].to(own[0].device)
            part = whole.picked(rows)
            value = loss(output(part), part.target)
            slopes = torch.autograd.grad(value, own, materialize_grads=True)
            with torch.no_grad():
                pull = _dot(torch._foreach_sub(own, center), slopes)
                torch._foreach_mul_(velocity, sgd.momentum)
                torch._foreach_add_(velocity, slopes)
                torch._foreach_sub_(own, velocity, alpha=sgd.lr)
            seen = (float(value.detach()), pull, _dot(velocity, velocity))
            if not np.isfinite(seen).all():
                break
            if step >= steps[0]:
                kept.append(seen)
    if progress is not None:
        progress("running SGD", sum(steps), sum(steps))
    columns = np.asarray(kept, dtype=np.float64).reshape(-1, 3)
    return SgdRun(columns[:, 0], columns[:, 1], columns[:, 2], len(kept) == steps[1])


def _check_pace(seconds: float, steps: int, patience: float) -> None:
    whole = seconds / TRIAL * steps
    if whole > patience:
        raise InputError(
            f"expected {steps} steps of SGD within {patience:.0f} s, got a pace of {whole:.0f} s; watch training instead "
            "(th.Watch), or survey a smaller model"
        )


def block_trend(values: Sequence[float] | Array, *, blocks: int = 10) -> Estimate:
    """The change from the first to the last of some values by a straight line through block means, with its error.

    >>> found = block_trend(np.arange(100.0), blocks=10)
    >>> round(found.value, 9), round(found.stderr, 9)
    (99.0, 0.0)
    """
    if blocks < 3:
        raise InputError(f"expected at least 3 blocks, got {blocks}; a line goes through two whatever their error")
    x, y = _block_means(np.arange(len(values), dtype=np.float64), blocks), _block_means(values, blocks)
    apart = x - x.mean()
    slope = float((apart * y).sum() / (apart**2).sum())
    rest = y - y.mean() - slope * apart
    error = float(np.sqrt((rest**2).sum() / (blocks - 2) / (apart**2).sum()))
    span = len(values) - 1
    return Estimate(slope * span, error * span * student_inflation(blocks - 1))


def block_ratio(top: Sequence[float] | Array, bottom: Sequence[float] | Array, *, blocks: int = 10) -> Estimate:
    """The ratio of two means over steps that depend on each other, with its error by leaving out blocks of them.

    >>> block_ratio([2.0] * 40, [1.0] * 40)
    Estimate(value=2.0, stderr=0.0, scale=None)
    """
    a, b = _block_means(top, blocks), _block_means(bottom, blocks)
    without = (a.sum() - a) / (b.sum() - b)
    spread = float(np.sqrt((blocks - 1) / blocks * ((without - without.mean()) ** 2).sum()))
    return Estimate(float(a.mean() / b.mean()), spread * student_inflation(blocks))


def _block_means(values: Sequence[float] | Array, blocks: int) -> Array:
    if blocks < 2:
        raise InputError(f"expected at least 2 blocks, got {blocks}; their spread is the error")
    if len(values) < 2 * blocks:
        raise InputError(f"expected at least {2 * blocks} steps for {blocks} blocks, got {len(values)}; take more")
    return np.array([part.mean() for part in np.array_split(np.asarray(values, dtype=np.float64), blocks)])


def _dot(left: Sequence[Tensor], right: Sequence[Tensor]) -> float:
    if sum(a.numel() for a in left) <= SHORT and len({a.device for a in left}) == 1:
        one, other = (torch.cat([part.reshape(-1) for part in side]).double() for side in (left, right))
        return float(one @ other)
    return sum(float((a.double() * b.double()).sum()) for a, b in zip(left, right, strict=True))
