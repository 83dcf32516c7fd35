"""What a learner predicts when data and test points are turned together: the same, or not."""

import copy
import inspect
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from theodolite.core.checks import InputError, InputTypeError, at_least
from theodolite.core.reading import SIGMAS, Estimate
from theodolite.core.state import untouched
from theodolite.core.statistics import mean_estimate

InvarianceVerdict = Literal["invariant", "not invariant", "cannot tell", "invalid"]
_Run = Callable[[Any, Any, int, Tensor | None], Tensor]
"""Predictions from inputs and test points, a seed, and the rotation where the learner asks for it."""

CHAOS = 30.0  # a difference below this many times that of rounding says nothing
PERMUTATIONS = 4000


@dataclass(frozen=True)
class RotationGap:
    """The largest difference of predictions over their root mean square, and what else makes predictions differ.

    ``gap`` is the mean over rotations of ``gaps``.
    ``rounding``: the same for inputs changed in their last digit. ``seeds``: the root mean square difference between two
    seeds without rotation, zero where the learner is not random or turns its own start along. Then ``gap`` decides;
    otherwise ``shift`` does: how far the mean prediction moves (root mean square, relative, with what chance makes taken
    off its square), and ``chance``, the share of relabelings of the runs that move it as far.
    """

    gap: Estimate
    gaps: tuple[float, ...] = ()
    rounding: float = 0.0
    seeds: float = 0.0
    shift: Estimate | None = None
    chance: float = 1.0
    fault: str = ""
    tolerance: float = 1e-4

    @property
    def verdict(self) -> InvarianceVerdict:
        """Decided only where the difference is clear of, or clearly within, what rounding and chance make."""
        if self.fault:
            return "invalid"
        if self.shift is None:
            floor = max(self.tolerance, CHAOS * self.rounding)
            if max(self.gaps) <= floor and CHAOS * self.rounding < 0.1:
                return "invariant"
            return "not invariant" if self.gap.value - SIGMAS * self.gap.stderr > floor else "cannot tell"
        if self.chance < 0.0027:  # three standard deviations
            return "not invariant"
        square = self.shift.value**2 + SIGMAS * self.shift.stderr
        return "invariant" if self.chance > 0.05 and square < (0.5 * self.seeds) ** 2 else "cannot tell"


def random_rotation(dimension: int, generator: torch.Generator) -> Tensor:
    """An orthogonal matrix, uniform over all of them, in float64.

    >>> U = random_rotation(5, torch.Generator().manual_seed(0))
    >>> torch.allclose(U @ U.T, torch.eye(5).double())
    True
    """
    at_least(1, dimension=dimension)
    q, r = torch.linalg.qr(torch.randn(dimension, dimension, generator=generator, dtype=torch.float64))
    return torch.as_tensor(q * torch.diagonal(r).sign())


def rotated_rows(x: Tensor, generator: torch.Generator) -> Tensor:
    """The rows of x, (n, d), turned together by one uniform rotation; for few rows it is never written down.

    Only the span of the rows is turned then, onto a uniform frame: the cost is d min(n, d)^2.
    """
    n, d = x.shape
    if n >= d:
        return x @ random_rotation(d, generator).T
    basis, inside = torch.linalg.qr(x.T)  # (d, n), (n, n)
    frame, r = torch.linalg.qr(torch.randn(d, basis.shape[1], generator=generator, dtype=torch.float64))
    return inside.T @ (frame * torch.diagonal(r).sign()).T


def rotation_gap(
    learner: Any, x: Any, y: Any, test: Any, *, repeats: int = 8, generator: torch.Generator, tolerance: float = 1e-4
) -> RotationGap:
    """Train on X and on X U^T with the same labels, predict at x and at U x, and compare, for several rotations U.

    ``learner(x, y, test)`` returns predictions, or is an estimator with fit and predict. It may take ``seed`` or
    ``generator``; global random numbers are seeded alike in both runs in any case. A learner whose start is random in
    space (a Gaussian first layer) is invariant only in law, and needs more repeats; if it takes ``rotation`` (d, d; None
    for no rotation) and turns its first weights by it, W @ rotation.T, the runs are paired and few suffice.
    """
    if repeats < 2:
        raise InputError(f"expected at least two repeats to know an error, got {repeats}; pass repeats=8, say")
    points, count = _joined(x, test)
    run, paired = _runner(learner, y)
    work = _Work(
        run, points, count, (getattr(x, "device", None) if isinstance(x, Tensor) else None, x.dtype), generator
    )
    try:
        seeds = [int(s) for s in torch.randint(2**31 - 1, (repeats + 1,), generator=generator)]
        start = [work(points, seeds[0]), work(points, seeds[1])]
        scale = float(start[0].square().mean().sqrt())
        if scale == 0:
            raise _FaultError("predictions are all zero: nothing was learned")
        if paired or torch.equal(start[0], start[1]):
            gaps = _paired(work, start[0], seeds, paired)
            rounding = work.rounding(start[0], seeds[0])
            return RotationGap(mean_estimate(gaps), tuple(gaps), rounding, tolerance=tolerance)
        plain = torch.stack([*start, *(work(points, seed) for seed in seeds[2:-1])])
        turned = torch.stack([work(rotated_rows(points, generator), seed) for seed in seeds[:-1]])
    except _FaultError as fault:
        return RotationGap(Estimate(float("nan")), fault=str(fault))
    return _in_law(plain.flatten(1), turned.flatten(1), generator, tolerance)


class _FaultError(Exception):
    """What is wrong with a learner's answer."""


@dataclass(frozen=True)
class _Work:
    """Runs the learner on rows that are cut into inputs and test points, in the caller's kind of array."""

    run: _Run
    points: Tensor
    count: int
    kind: tuple[Any, Any]  # the device, None for arrays, and the type of number
    generator: torch.Generator

    def __call__(self, points: Tensor, seed: int, rotation: Tensor | None = None) -> Tensor:
        device, dtype = self.kind
        if device is None:
            rows: Any = points.numpy().astype(dtype if np.issubdtype(dtype, np.floating) else np.float64)
        else:
            rows = points.to(device, dtype if dtype.is_floating_point else torch.float64)
        found = self.run(rows[: self.count], rows[self.count :], seed, rotation)
        wanted = len(points) - self.count
        if found.ndim == 0 or len(found) != wanted:
            raise _FaultError(f"expected {wanted} predictions, one for each test point, got shape {tuple(found.shape)}")
        if not bool(found.isfinite().all()):
            raise _FaultError("predictions are not finite: did training diverge?")
        return found

    def rounding(self, plain: Tensor, seed: int) -> float:
        """How far predictions move when every input changes in its last digit, twice over."""
        device, dtype = self.kind
        floating = np.issubdtype(dtype, np.floating) if device is None else dtype.is_floating_point
        eps = float((np.finfo if device is None else torch.finfo)(dtype).eps) if floating else 2.3e-16
        noise = torch.randn(self.points.shape, generator=self.generator, dtype=torch.float64)
        size = 2 * eps * float(self.points.square().mean().sqrt())
        return _deviation(self(self.points + size * noise, seed), plain)


def _paired(work: _Work, plain: Tensor, seeds: list[int], paired: bool) -> list[float]:
    gaps = []
    for place, seed in enumerate(seeds[:-1]):
        base = work(work.points, seed) if paired and place else plain
        if paired:
            turn = random_rotation(work.points.shape[1], work.generator)
            gaps.append(_deviation(work(work.points @ turn.T, seed, turn), base))
        else:
            gaps.append(_deviation(work(rotated_rows(work.points, work.generator), seed), base))
    return gaps


def _deviation(a: Tensor, b: Tensor) -> float:
    if a.shape != b.shape:
        raise _FaultError(f"expected predictions of one shape in every run, got {tuple(a.shape)} and {tuple(b.shape)}")
    return float((a - b).abs().max() / b.square().mean().sqrt())


def _in_law(plain: Tensor, turned: Tensor, generator: torch.Generator, tolerance: float) -> RotationGap:
    """Compare two samples of prediction vectors: exact by relabeling, whatever their law, if it is one and the same."""
    n, power = len(plain), float(plain.square().mean())
    gaps = [_deviation(a, b) for a, b in zip(turned, plain, strict=True)]
    gram = torch.cat([plain, turned]) @ torch.cat([plain, turned]).T / plain.shape[1]

    def square(signs: Tensor) -> Tensor:  # (m, 2n): the square of the difference of means under each labeling
        return torch.einsum("mi,ij,mj->m", signs, gram, signs) / n**2

    own = torch.cat([torch.ones(n), -torch.ones(n)]).double()
    orders = torch.rand(PERMUTATIONS, 2 * n, generator=generator).argsort(1)
    seen = float(square(own[None])[0])
    chance = (1 + int((square(own[orders]) >= seen * (1 - 1e-12)).sum())) / (1 + PERMUTATIONS)
    left_out = (
        [_unbiased(plain[keep], turned[keep]) for keep in (torch.arange(n) != i for i in range(n))] if n > 2 else []
    )
    error = float(torch.tensor(left_out).double().var(unbiased=False) * (n - 1)) ** 0.5 if n > 2 else float("inf")
    shift = max(0.0, _unbiased(plain, turned)) / power
    between = float(2 * plain.var(0).mean() / power) ** 0.5
    return RotationGap(
        mean_estimate(gaps), tuple(gaps), 0.0, between, Estimate(shift**0.5, error / power), chance, tolerance=tolerance
    )


def _unbiased(a: Tensor, b: Tensor) -> float:
    """The mean square difference of two means, less what chance adds to it."""
    noise = a.var(0).mean() / len(a) + b.var(0).mean() / len(b)
    return float((a.mean(0) - b.mean(0)).square().mean() - noise)


def _joined(x: Any, test: Any) -> tuple[Tensor, int]:
    for name, part in (("x", x), ("test", test)):
        if not isinstance(part, np.ndarray | Tensor) or part.ndim != 2 or not len(part):
            got = tuple(part.shape) if hasattr(part, "shape") else type(part).__name__
            raise InputError(f"expected {name} as rows of features, (n, d), got {got}; flatten the inputs")
    if x.shape[1] != test.shape[1]:
        raise InputError(f"expected as many features in test as in x, got {test.shape[1]} and {x.shape[1]}")
    parts = [torch.as_tensor(part).detach().cpu().double() for part in (x, test)]
    return torch.cat(parts), len(x)


def _runner(learner: Any, y: Any) -> tuple[_Run, bool]:
    if hasattr(learner, "fit") and hasattr(learner, "predict"):
        return partial(_estimator, learner, y), False
    if not callable(learner):
        raise InputTypeError(f"expected a learner to call or with fit and predict, got {type(learner).__name__}")
    takes = inspect.signature(learner).parameters

    def run(x: Any, test: Any, seed: int, rotation: Tensor | None) -> Tensor:
        given: dict[str, Any] = {"seed": seed} if "seed" in takes else {}
        if "generator" in takes:
            given["generator"] = torch.Generator().manual_seed(seed)
        if "rotation" in takes:
            given["rotation"] = rotation
        with _seeded(seed):
            return _numbers(learner(x, y, test, **given))

    return run, "rotation" in takes


def _estimator(learner: Any, y: Any, x: Any, test: Any, seed: int, rotation: Tensor | None) -> Tensor:
    own = copy.deepcopy(learner)
    if hasattr(own, "get_params") and "random_state" in own.get_params():
        own.set_params(random_state=seed)
    with _seeded(seed):
        own.fit(x, y)
        # classes are names, whose differences mean nothing: scores where there are any
        score = next((m for m in ("decision_function", "predict_proba") if hasattr(own, m)), "predict")
        return _numbers(getattr(own, score)(test))


class _seeded:  # noqa: N801 (used as a function)
    """The global random state set by a seed, and put back afterwards."""

    def __init__(self, seed: int) -> None:
        self.seed, self.keep = seed, untouched(None)

    def __enter__(self) -> None:
        self.keep.__enter__()
        random.seed(self.seed)
        np.random.seed(self.seed)  # noqa: NPY002  what user code may draw from
        torch.manual_seed(self.seed)

    def __exit__(self, *error: Any) -> None:
        self.keep.__exit__(*error)


def _numbers(found: Any) -> Tensor:
    try:
        return torch.as_tensor(found).detach().cpu().double()
    except (TypeError, ValueError, RuntimeError) as error:
        raise _FaultError(f"expected predictions as numbers, got {type(found).__name__}") from error
