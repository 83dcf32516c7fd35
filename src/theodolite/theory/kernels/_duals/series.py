"""Dual activations of any function: Chebyshev series in the correlation (or the angle), interpolated in the variances."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from theodolite.theory import Activation
from theodolite.theory._quadrature import Array
from theodolite.theory.kernels._duals.hermite import DIGITS, NOISE, Expansion, hermite_expansion
from theodolite.theory.kernels._duals.kinks import Kink, ramp_pairs
from theodolite.theory.kernels._duals.maps import Dual, Pairs, Side
from theodolite.theory.kernels._memory_blocks import Scratch, affine_, constant

MOST_VARIANCES = 129
LEAST = 1e-24
"""A variance below which a Gaussian is as good as 0 before any activation of double precision."""


def chebyshev_coefficients(values: Array) -> Array:
    """The coefficients of the polynomial through values at the Chebyshev nodes ``cos(π (k + 1/2) / n)``, along axis 0.

    >>> chebyshev_coefficients(chebyshev_nodes(4)).round(12) + 0.0
    array([0., 1., 0., 0.])
    """
    n = len(values)
    angles = math.pi * (np.arange(n) + 0.5) / n
    matrix = 2 / n * np.cos(np.arange(n)[:, None] * angles)
    matrix[0] *= 0.5
    return np.asarray(np.tensordot(matrix, values, axes=1))


def chebyshev_nodes(n: int) -> Array:
    """``cos(π (k + 1/2) / n)``."""
    return np.asarray(np.cos(math.pi * (np.arange(n) + 0.5) / n))


@dataclass(frozen=True)
class Interpolation:
    """Interpolation in the variance through Chebyshev nodes of log(1 + deviation); a single node is a constant."""

    middle: float
    half: float
    count: int

    @classmethod
    def over(cls, low: float, high: float, count: int) -> Interpolation:
        """The interpolation for variances from ``low`` to ``high``."""
        low, high = max(low, LEAST), max(high, LEAST)
        ends = math.log1p(math.sqrt(low)), math.log1p(math.sqrt(high))
        return cls(0.5 * (ends[0] + ends[1]), 0.5 * (ends[1] - ends[0]), count)

    @property
    def deviations(self) -> Array:
        """The standard deviations at the nodes."""
        return np.expm1(self.middle + self.half * chebyshev_nodes(self.count))

    def polynomials(self, q: Tensor) -> Tensor:
        """The Chebyshev polynomials at variances: (..., count)."""
        y = (torch.log1p(q.to(torch.float64).sqrt()) - self.middle) / self.half if self.half else torch.zeros_like(q)
        y = y.clamp(-1.0, 1.0)
        found = [torch.ones_like(y), y]
        while len(found) < self.count:
            found.append(2 * y * found[-1] - found[-2])
        return torch.stack(found[: self.count], dim=-1)


@dataclass(frozen=True)
class DualSeries:
    """Chebyshev coefficients of both expectations: in the correlation or the angle, times those in both variances."""

    interpolation: Interpolation
    in_angle: bool
    values: Coefficients
    slopes: Coefficients
    moments: Tensor  # (2, p)
    at_zero: tuple[float, float]  # both moments without variance
    kinks: tuple[Kink, ...] = ()  # those whose own covariance is not in the coefficients

    def moment(self, which: int) -> Callable[[Tensor], Tensor]:
        """The mean square, or that of the slope, as a function of variances."""

        def at(q: Tensor) -> Tensor:
            found = (self.interpolation.polynomials(q).to(q) @ self.moments[which].to(q)).clamp(min=0.0)
            return torch.where(q <= LEAST, self.at_zero[which], found)  # exactly: a root is taken of it

        return at

    def block(self, r: Tensor, a: Side, b: Side, scratch: Scratch) -> tuple[Tensor, Tensor | float]:
        """Both expectations on a block of correlations."""
        r.clamp_(-1.0, 1.0)  # variances and covariances are rounded apart
        y = torch.acos(r, out=r) if self.in_angle else r
        ramps = [self._ramps(a, b, y, slope=slope) if self.kinks else None for slope in (0, 1)]
        if self.in_angle:
            affine_(y, 2 / math.pi, -1.0)
        twice = self._argument(y, scratch)
        sides = self._sides(a, b, y)
        found = []
        for coefficients, extra in zip((self.values, self.slopes), ramps, strict=True):
            found.append(_clenshaw(y, twice, coefficients, sides, scratch))
            if extra is not None:
                found[-1].add_(extra)
        scratch.release(y, twice)
        return found[0], found[1]

    def _argument(self, y: Tensor, scratch: Scratch) -> Tensor:
        """2 y, or 2 (2 y² - 1) where each series is even or odd and goes in that."""
        if self.values.parity is None:
            return torch.mul(y, 2.0, out=scratch.like(y))
        return torch.addcmul(constant(-2.0, y), y, y, value=4.0, out=scratch.like(y))

    def _ramps(self, a: Side, b: Side, angle: Tensor, *, slope: int) -> Tensor:
        sides = [np.asarray(torch.as_tensor(side, dtype=torch.float64).cpu().numpy()) for side in (a, b)]
        value = ramp_pairs(self.kinks, sides[0], sides[1], angle.to(torch.float64).cpu().numpy(), slope=bool(slope))
        return torch.from_numpy(value).to(angle)

    def _sides(self, a: Side, b: Side, like: Tensor) -> tuple[Tensor, Tensor] | None:
        if not isinstance(a, Tensor) or not isinstance(b, Tensor):
            return None
        first, second = (self.interpolation.polynomials(side.reshape(-1)) for side in (a, b))
        return first, second.to(like).T.contiguous()

    def pairs(self, at: Pairs) -> tuple[Tensor, Tensor]:
        """Both expectations for separate pairs."""
        first, second = (self.interpolation.polynomials(q).to(torch.float64) for q in (at.a, at.b))
        y = at.angle * (2 / math.pi) - 1 if self.in_angle else torch.where(at.less < 1, 1 - at.less, at.more - 1)
        found = []
        for coefficients in (self.values.full.to(y.device), self.slopes.full.to(y.device)):
            before, last = torch.zeros_like(y), torch.zeros_like(y)
            for matrix in coefficients.flip(0)[:-1]:
                before, last = last, ((first @ matrix) * second).sum(-1) + 2 * y * last - before
            found.append(((first @ coefficients[0]) * second).sum(-1) + y * last - before)
        if self.kinks:
            found = [part + self._ramps(at.a, at.b, at.angle, slope=slope) for slope, part in enumerate(found)]
        return found[0], found[1]


@dataclass(frozen=True)
class Coefficients:
    """Chebyshev coefficients (t, p, p), those of an even or odd series without the zeros between them."""

    full: Tensor
    parity: int | None  # 0 even, 1 odd, None neither


def _coefficients_of(values: Tensor, slopes: Tensor) -> tuple[Coefficients, Coefficients]:
    """Both series with the parities that their numbers show, if both show one."""
    parities = [
        next((p for p in (0, 1) if float(part[1 - p :: 2].abs().sum()) <= 0.1 * DIGITS * float(part.abs().max())), None)
        for part in (values, slopes)
    ]
    found = parities if None not in parities else [None, None]
    return Coefficients(values, found[0]), Coefficients(slopes, found[1])


def _clenshaw(
    y: Tensor, twice: Tensor, coefficients: Coefficients, sides: tuple[Tensor, Tensor] | None, scratch: Scratch
) -> Tensor:
    r"""The Chebyshev series at ``y``, by Clenshaw's recurrence in half of ``twice``.

    $T_{2k}(y)=T_k(2y^2-1)$ and $T_{2k+1}(y)=yV_k(2y^2-1)$, where V has the recurrence of T but $V_1(z)=2z-1$.
    """
    parity = coefficients.parity
    matrices = coefficients.full if parity is None else coefficients.full[parity::2]
    count = len(matrices)
    if sides is not None:
        rows = torch.einsum("mp,tpq->tmq", sides[0], matrices.to(sides[0])).to(y)
    else:
        numbers = matrices[:, 0, 0].tolist()
    last, before = scratch.like(y).zero_(), scratch.like(y).zero_()
    for position in range(count - 1, -1, -1):
        new = torch.mul(twice, last, out=scratch.like(y))
        if position == 0 and parity != 1:
            new.mul_(0.5)
        new.sub_(before)
        if sides is None:
            new.add_(numbers[position])
        else:
            new.addmm_(rows[position], sides[1])
        scratch.release(before)
        before, last = last, new
    if parity == 1:
        last.sub_(before).mul_(y)
    scratch.release(before)
    return last


@lru_cache(maxsize=256)
def series_dual(activation: Activation, low: float, high: float) -> Dual:
    """The dual of any activation for variances between ``low`` and ``high``."""
    count = 1 if low == high else 6
    floors = NOISE * max(high, LEAST), NOISE
    while True:
        interpolation = Interpolation.over(low, high, count)
        expansion, *moments = hermite_expansion(activation, interpolation.deviations)
        inner = [chebyshev_coefficients(moment) for moment in moments]
        if (
            count == 1
            or count >= MOST_VARIANCES
            or all(_is_short(p, 2, max(float(np.abs(p).max()), n)) for p, n in zip(inner, floors, strict=True))
        ):
            break
        count = count * 3 // 2
    apart = count > 1 and any(place != 0.0 for place, _, _ in expansion.kinks)  # no polynomial in both variances
    values, slopes, in_angle = _coefficients(expansion, ramps=not apart)
    kinks = expansion.kinks if apart else ()
    at_zero = activation.moment(0.0), activation.slope_moment(0.0)
    parts = _coefficients_of(values, slopes)
    series = DualSeries(interpolation, in_angle, *parts, torch.from_numpy(np.stack(inner)), at_zero, kinks)
    jumps = bool(activation.jumps(max(16.0, 8.0 * math.sqrt(high))))
    return Dual(
        moment=series.moment(0),
        slope_moment=(lambda q: torch.full_like(q, math.inf)) if jumps else series.moment(1),
        block=series.block,
        pairs=series.pairs,
        scale=torch.sqrt,
        sharp=in_angle,
        jumps=jumps,
    )


def _is_short(coefficients: Array, tail: int, size: float) -> bool:
    return bool(np.abs(coefficients[-tail:]).max() <= DIGITS * size)


def _coefficients(expansion: Expansion, *, ramps: bool) -> tuple[Tensor, Tensor, bool]:
    """The coefficients of the shorter of the two series, as the largest and the smallest variance have them."""
    ends = expansion.at(sorted({int(expansion.deviations.argmin()), int(expansion.deviations.argmax())}))
    lengths = {True: _needed(ends, in_angle=True, ramps=ramps)}
    if not expansion.kinks:
        lengths[False] = _needed(ends, in_angle=False, ramps=ramps)
    in_angle = min(lengths, key=lambda choice: lengths[choice] * (1.2 if choice else 1.0))
    count = lengths[in_angle] + 2
    found = expansion.covariances(_angles(count, in_angle), ramps=ramps)
    parts = [_in_variances(chebyshev_coefficients(part)) for part in found]
    return torch.from_numpy(parts[0]), torch.from_numpy(parts[1]), in_angle


def _angles(count: int, in_angle: bool) -> Array:
    nodes = chebyshev_nodes(count)
    return 0.5 * math.pi * (nodes + 1) if in_angle else np.asarray(np.arccos(nodes))


def _needed(expansion: Expansion, *, in_angle: bool, ramps: bool) -> int:
    """How many terms a series needs."""
    count = 32
    while True:
        found = expansion.covariances(_angles(count, in_angle), ramps=ramps)
        parts = [chebyshev_coefficients(part) for part in found]
        sizes = expansion.sizes
        short = all(_is_short(part, count // 8, size) for part, size in zip(parts, sizes, strict=True))
        if short or count >= LONGEST_SERIES:
            return max(_length(part, size) for part, size in zip(parts, sizes, strict=True))
        count *= 2


LONGEST_SERIES = 512


def _in_variances(part: Array) -> Array:
    """From values at the nodes of both variances to Chebyshev coefficients: (t, p, p)."""
    once = chebyshev_coefficients(np.moveaxis(part, 1, 0))  # (p, t, p)
    both = chebyshev_coefficients(np.moveaxis(once, 2, 0))  # (p', p, t)
    return np.ascontiguousarray(np.transpose(both, (2, 1, 0)))


def _length(part: Array, size: float) -> int:
    largest = np.abs(part).reshape(len(part), -1).max(1)
    large = np.flatnonzero(largest > 0.1 * DIGITS * size)
    return int(large[-1]) + 1 if large.size else 1
