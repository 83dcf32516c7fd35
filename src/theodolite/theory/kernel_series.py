"""Dual activations of any function: Chebyshev series in the correlation (or the angle), interpolated in the variances."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from theodolite.theory.activations import Activation
from theodolite.theory.kernel_kinks import Kink, Ramps, kinks_of, ramp_pairs
from theodolite.theory.kernel_maps import Dual, Pairs, Scratch, Side
from theodolite.theory.quadrature import Array, filled, panel_nodes

DIGITS = 1e-11  # what is left out, relative to the largest value
LONGEST = 2048  # terms of a Hermite series
MOST_VARIANCES = 129


@dataclass(frozen=True)
class Expansion:
    """Hermite coefficients of a function and of its slope, one row for each standard deviation."""

    deviations: Array  # (p,)
    values: Array  # (p, terms)
    slopes: Array  # (p, terms)
    kinks: tuple[Kink, ...]

    @property
    def sizes(self) -> tuple[float, float]:
        """The largest mean squares of the function and of its slope, as far as the terms hold them."""
        first, second = (float((part**2).sum(1).max()) for part in (self.values, self.slopes))
        return max(first, 1e-300), max(second, 1e-300)

    def at(self, rows: list[int]) -> Expansion:
        """The expansion at some of the standard deviations."""
        return Expansion(self.deviations[rows], self.values[rows], self.slopes[rows], self.kinks)

    def covariances(self, angle: Array, *, ramps: bool) -> tuple[Array, Array]:
        r"""$E\sigma\sigma=\sum_ja_j(q)a_j(q')c^j$, and the same of slopes, for all variances and angles: (t, p, p).

        Of kinks and jumps, whose series converge slowly, the part that they have alone is left out of the sum and, if
        ``ramps``, added in closed form.
        """
        powers = np.power(np.cos(angle)[:, None], np.arange(self.values.shape[1], dtype=np.float64))  # (t, terms)
        found = []
        for slope, coefficients in enumerate((self.values, self.slopes)):
            total = _sum(powers, coefficients)
            if self.kinks:
                part = Ramps(self.kinks, self.deviations, bool(slope))
                total -= _sum(powers, part.coefficients(powers.shape[1]))
                total += part.covariance(angle) if ramps else 0.0
            found.append(total)
        return found[0], found[1]


def _sum(powers: Array, coefficients: Array) -> Array:
    p, terms = coefficients.shape
    products = (coefficients[:, None] * coefficients).reshape(p * p, terms)
    return np.asarray((powers @ products.T).reshape(-1, p, p))


def hermite_expansion(activation: Activation, deviations: Array) -> tuple[Expansion, Array, Array]:
    r"""The expansion at these standard deviations, with $\langle\sigma^2\rangle$ and $\langle\sigma'^2\rangle$.

    Normalised Hermite functions, integrated by Gauss-Legendre panels that end at every kink.
    """
    kinks = kinks_of(activation, 9.0 * float(deviations.max()))
    edges = [np.array([-REACH, 0.0, REACH]), *(place / deviations for place, _, _ in kinks)]
    marks = activation._resolution.edges(REACH * float(deviations.max()))
    if len(deviations) == 1 and len(marks) < 200:
        edges.append(marks / float(deviations[0]))
    inner = np.unique(np.clip(np.concatenate(edges), -REACH, REACH))
    terms = 128
    while True:
        fine = filled(inner, min(0.6, 16 / math.sqrt(terms)))
        x, weights = panel_nodes(fine[:-1], fine[1:])
        x, weights = x.ravel(), weights.ravel()
        bell = np.exp(-0.25 * x * x) / (2 * math.pi) ** 0.25
        at = deviations[:, None] * x
        values, slopes = (part.numpy() for part in activation.derivatives(torch.from_numpy(at), order=1))
        weighted = np.stack([values, slopes]) * (weights * bell)  # (2, p, nodes)
        coefficients = weighted @ _hermite_functions(x, terms).T  # (2, p, terms)
        moments = ((np.stack([values, slopes]) * bell) ** 2 * weights).sum(-1)  # (2, p)
        ramps = [Ramps(kinks, deviations, slope) for slope in (False, True)]
        if _is_complete(coefficients, ramps, moments) or terms >= LONGEST:
            return Expansion(deviations, coefficients[0], coefficients[1], kinks), moments[0], moments[1]
        terms *= 2


def _is_complete(coefficients: Array, ramps: list[Ramps], moments: Array) -> bool:
    """Whether the products of coefficients beyond the last, less those of the kinks alone, no longer matter."""
    terms = coefficients.shape[-1]
    late = slice(terms - terms // 8, terms)
    known = np.stack([part.coefficients(terms) for part in ramps])[..., late]
    rest = coefficients[..., late] - known
    beyond = (np.abs(rest).max(-1) * (np.abs(rest) + 2 * np.abs(known)).max(-1)) * terms
    return bool((beyond <= 0.1 * DIGITS * np.maximum(moments, 1e-30)).all())


REACH = 13.0  # standard deviations; the root of the Gaussian density is then below 1e-18


def _hermite_functions(x: Array, terms: int) -> Array:
    r"""$He_j(x)/\sqrt{j!}$ times the root of the Gaussian density: (terms, nodes)."""
    found = np.empty((terms, len(x)))
    found[0] = np.exp(-0.25 * x * x) / (2 * math.pi) ** 0.25
    found[1] = x * found[0]
    for j in range(1, terms - 1):
        found[j + 1] = (x * found[j] - math.sqrt(j) * found[j - 1]) / math.sqrt(j + 1)
    return found


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
class Series:
    """Chebyshev coefficients of both expectations: in the correlation or the angle, times those in both variances."""

    interpolation: Interpolation
    in_angle: bool
    values: Tensor  # (t, p, p)
    slopes: Tensor
    moments: Tensor  # (2, p)
    kinks: tuple[Kink, ...] = ()  # those whose own covariance is not in the coefficients

    def moment(self, which: int) -> Callable[[Tensor], Tensor]:
        """The mean square, or that of the slope, as a function of variances."""

        def at(q: Tensor) -> Tensor:
            return self.interpolation.polynomials(q).to(q) @ self.moments[which].to(q)

        return at

    def block(self, r: Tensor, a: Side, b: Side, scratch: Scratch) -> tuple[Tensor, Tensor | float]:
        """Both expectations on a block of correlations."""
        y = torch.acos(r, out=r) if self.in_angle else r
        ramps = [self._ramps(a, b, y, slope=slope) if self.kinks else None for slope in (0, 1)]
        if self.in_angle:
            y.mul_(2 / math.pi).sub_(1.0)
        y.mul_(2.0)
        found = []
        sides = self._sides(a, b, r)
        for coefficients, extra in zip((self.values, self.slopes), ramps, strict=True):
            found.append(_clenshaw(y, coefficients, sides, scratch))
            if extra is not None:
                found[-1].add_(extra)
        scratch.release(y)
        return found[0], found[1]

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
        for coefficients in (self.values.to(y.device), self.slopes.to(y.device)):
            before, last = torch.zeros_like(y), torch.zeros_like(y)
            for matrix in coefficients.flip(0)[:-1]:
                before, last = last, ((first @ matrix) * second).sum(-1) + 2 * y * last - before
            found.append(((first @ coefficients[0]) * second).sum(-1) + y * last - before)
        if self.kinks:
            found = [part + self._ramps(at.a, at.b, at.angle, slope=slope) for slope, part in enumerate(found)]
        return found[0], found[1]


def _clenshaw(twice: Tensor, coefficients: Tensor, sides: tuple[Tensor, Tensor] | None, scratch: Scratch) -> Tensor:
    """The Chebyshev series at half of ``twice``."""
    last, before = scratch.like(twice).zero_(), scratch.like(twice).zero_()
    for position in range(len(coefficients) - 1, -1, -1):
        new = torch.mul(twice, last, out=scratch.like(twice))
        if position == 0:
            new.mul_(0.5)
        new.sub_(before)
        if sides is None:
            new.add_(float(coefficients[position, 0, 0]))
        else:
            new.addmm_((sides[0] @ coefficients[position].to(sides[0])).to(twice), sides[1])
        scratch.release(before)
        before, last = last, new
    scratch.release(before)
    return last


@lru_cache(maxsize=256)
def series_dual(activation: Activation, low: float, high: float) -> Dual:
    """The dual of any activation for variances between ``low`` and ``high``."""
    count = 1 if low == high else 6
    while True:
        interpolation = Interpolation.over(low, high, count)
        expansion, *moments = hermite_expansion(activation, interpolation.deviations)
        inner = [chebyshev_coefficients(moment) for moment in moments]
        if (
            count == 1
            or count >= MOST_VARIANCES
            or all(_is_short(part, 2, float(np.abs(part).max())) for part in inner)
        ):
            break
        count = count * 3 // 2
    apart = count > 1 and any(place != 0.0 for place, _, _ in expansion.kinks)  # no polynomial in both variances
    values, slopes, in_angle = _coefficients(expansion, ramps=not apart)
    kinks = expansion.kinks if apart else ()
    series = Series(interpolation, in_angle, values, slopes, torch.from_numpy(np.stack(inner)), kinks)
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
