"""What becomes of signals in infinitely wide random networks with depth: fixed points, limiting correlations, phases."""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from theodolite.core.checks import InputError, not_negative
from theodolite.theory import Activation, activation_of
from theodolite.theory._quadrature import Array, UnresolvedError
from theodolite.theory._roots import root
from theodolite.theory.propagation.critical_points import Source


@dataclass(frozen=True)
class FixedPoint:
    """A variance that a layer reproduces; ``stable`` when it attracts from both sides."""

    variance: float
    chi_parallel: float
    chi_perpendicular: float
    stable: bool


def fixed_points(activation: Source, *, weight_variance: float, bias_variance: float = 0.0) -> tuple[FixedPoint, ...]:
    r"""All solutions of $K=C_b+C_w\langle\sigma^2\rangle_K$ between 0 and 1e8, smallest first.

    They are bracketed on a grid refined by the places where $\chi_\parallel=1$, so that roots at which the map only touches
    the diagonal (half-stable ones) are found too; their $\chi_\perp$ is infinite where the activation jumps. Where every
    variance is a fixed point only 0 is given.

    >>> [round(point.variance, 8) for point in fixed_points("tanh", weight_variance=1.5)]
    [0.0, 0.28689423]
    """
    not_negative(weight_variance=weight_variance, bias_variance=bias_variance)
    sigma = activation_of(activation)

    def rest(K: float) -> float:
        return (bias_variance - K) + weight_variance * sigma.moment(K)

    def slope(K: float) -> float:
        return weight_variance * sigma.curvature_moment(K) - 1

    if weight_variance == 0.0:
        return (FixedPoint(bias_variance, 0.0, 0.0, stable=True),)
    roots = [0.0] if rest(0.0) == 0.0 else []
    if not (sigma.is_homogeneous and bias_variance == 0.0):
        grid, moments, slopes = _moments_on_grid(sigma)
        rests = bias_variance - grid + weight_variance * moments
        turns = [root(slope, a, b, xtol=1e-14 * a) for a, b in _crossings(grid, weight_variance * slopes - 1)]
        finer = np.concatenate([grid, turns])
        order = np.argsort(finer)
        rests = np.concatenate([rests, [rest(K) for K in turns]])[order]
        seen = np.abs(rests) > 4e-15 * finer[order] * max(1.0, weight_variance)
        zero = 1e-13 * max(1.0, weight_variance)  # a touching root: zero here, clearly not on either side
        touching = [K for K in turns if abs(rest(K)) < zero * K < min(abs(rest(0.9 * K)), abs(rest(1.1 * K)))]
        roots += [root(rest, a, b, xtol=1e-14 * a) for a, b in _crossings(finer[order][seen], rests[seen])]
        roots = [K for K in roots if all(abs(K - other) > 1e-6 * other for other in touching)] + touching
    return tuple(_fixed_point(sigma, K, weight_variance, rest=rest) for K in sorted(roots))


@lru_cache(maxsize=64)
def _moments_on_grid(sigma: Activation) -> tuple[Array, Array, Array]:
    """A grid of variances, finest between 0.01 and 100, with the second moments and their derivatives."""
    parts = np.geomspace(1e-9, 1e-2, 71)[:-1], np.geomspace(1e-2, 1e2, 257)[:-1], np.geomspace(1e2, 1e8, 61)
    grid = np.concatenate(parts)
    moments, slopes = np.full_like(grid, math.nan), np.full_like(grid, math.nan)
    with suppress(UnresolvedError):  # of a function that oscillates for ever, beyond some variance
        for i, K in enumerate(grid.tolist()):
            moments[i], slopes[i] = sigma.moment(K), sigma.curvature_moment(K)
    return grid, moments, slopes


def _crossings(grid: Array, values: Array) -> list[tuple[float, float]]:
    """The intervals of a grid in which values change sign."""
    finite = np.isfinite(values) & (values != 0)
    where, signs = grid[finite], np.sign(values[finite])
    return [(float(where[i]), float(where[i + 1])) for i in np.flatnonzero(signs[1:] != signs[:-1])]


def _fixed_point(sigma: Activation, K: float, weight: float, *, rest: Callable[[float], float]) -> FixedPoint:
    parallel, perpendicular = weight * sigma.curvature_moment(K), weight * sigma.slope_moment(K)
    if abs(abs(parallel) - 1) > 1e-9:
        return FixedPoint(K, parallel, perpendicular, stable=abs(parallel) < 1)
    if K == 0.0:  # the slope does not decide: the first bend that can be seen does
        drifts = (rest(step) / step for step in np.geomspace(1e-6, 1.0, 37).tolist())
        stable = next((drift for drift in drifts if abs(drift) > 1e-10), 1.0) < 0
    else:
        stable = rest(1.01 * K) < 0 < rest(0.99 * K)
    return FixedPoint(K, parallel, perpendicular, stable)


def limiting_correlation(
    activation: Source, variance: float, *, weight_variance: float, bias_variance: float = 0.0
) -> float:
    r"""$c^*$, to which the correlation of two inputs tends at the fixed point ``variance``; 1 in the ordered phase.

    In the chaotic phase it is the root below 1 of $c=(C_b+C_wE\sigma\sigma)/K^*$; the map has a power series in c with
    coefficients of one sign, so there is just one in [0, 1). Source: poole2016, section 3.2.

    >>> round(limiting_correlation("tanh", 1.06395838, weight_variance=2.5, bias_variance=0.05), 6)
    0.446804
    """
    not_negative(weight_variance=weight_variance, bias_variance=bias_variance)
    sigma = activation_of(activation)

    def drift(c: float) -> float:
        return (bias_variance + weight_variance * sigma.covariance(variance, variance, c * variance)) / variance - c

    if weight_variance * sigma.slope_moment(variance) <= 1 + MARGIN:
        return 1.0
    if drift(0.0) <= 1e-13:
        return 0.0
    near = next((1 - gap for gap in (1e-3, 1e-5, 1e-7, 1e-9) if drift(1 - gap) < 0), None)
    if near is None:
        return 1.0
    return root(drift, 0.0, near, xtol=1e-13)


PhaseName = Literal["ordered", "critical", "chaotic", "vanishing", "exploding"]
MARGIN = 1e-7
"""How close to 1 a chi counts as critical."""


@dataclass(frozen=True)
class Phase:
    """What becomes of signals with depth; see `phase`."""

    name: PhaseName
    fixed_point: float | None
    chi_parallel: float
    chi_perpendicular: float
    limiting_correlation: float | None
    variance_depth: float
    correlation_depth: float


def phase(activation: Source, *, weight_variance: float, bias_variance: float = 0.0, variance: float = 1.0) -> Phase:
    r"""The phase of $(C_w,C_b)$ for signals that begin with this ``variance``.

    - ordered: $\chi_\perp<1$ at the fixed point reached, $K^*>0$; inputs become alike, gradients vanish;
    - chaotic: $\chi_\perp>1$; like inputs become unlike, gradients explode;
    - critical: $\chi_\perp=1$ (to 1e-7); no depth scale;
    - vanishing: the variance goes to 0 exponentially; exploding: it grows without bound.

    There is no oscillating phase: $\chi_\parallel\ge-\frac12$ at every fixed point, since $z^2\ge0$ in
    $\langle\sigma^2(z^2-K)\rangle$.

    ``variance_depth`` is $-1/\ln|\chi_\parallel|$ and ``correlation_depth`` $-1/\ln\chi_\perp$, or in the chaotic phase
    $-1/\ln(C_wE\sigma'\sigma')$ at $c^*$: the layers in which the variance and the covariance forget their start by a
    factor e (positive, infinite at criticality; when exploding, the layers in which they grow by e).
    ``limiting_correlation`` is None where the limit depends on the inputs.

    The half-stable critical points of GELU and SiLU have a neighboring fixed point to which signals drift, over many
    thousand layers, unless ``variance`` is the critical one: give that to see the critical phase.

    Source: schoenholz2017, section 3.

    >>> phase("tanh", weight_variance=1.5, bias_variance=0.05).name
    'ordered'
    >>> round(phase("tanh", weight_variance=1.5, bias_variance=0.05).correlation_depth, 4)
    15.791
    """
    not_negative(weight_variance=weight_variance, bias_variance=bias_variance)
    sigma = activation_of(activation)
    if not (variance > 0 and math.isfinite(variance)):
        raise InputError(f"expected a positive starting variance, got {variance}")
    if sigma.is_homogeneous and bias_variance == 0.0:
        return _homogeneous_phase(sigma, weight_variance)
    reached = _reached(sigma, weight_variance, bias_variance, variance)
    if reached is None:
        return _exploding(sigma, weight_variance)
    parallel, perpendicular = reached.chi_parallel, reached.chi_perpendicular
    K, depth = reached.variance, _depth(perpendicular)
    if K == 0.0:
        name: PhaseName = "critical" if abs(perpendicular - 1) <= MARGIN else "vanishing"
        left, right = sigma.slopes_at_zero()
        alike = None if abs(left - right) < 1e-12 else 1.0
        return Phase(name, K, parallel, perpendicular, alike, _depth(parallel), depth)
    limit = limiting_correlation(sigma, K, weight_variance=weight_variance, bias_variance=bias_variance)
    if abs(perpendicular - 1) <= MARGIN:
        return Phase("critical", K, parallel, perpendicular, limit, _depth(parallel), math.inf)
    if perpendicular < 1:
        return Phase("ordered", K, parallel, perpendicular, limit, _depth(parallel), depth)
    rate = weight_variance * sigma.slope_covariance(K, K, limit * K)
    return Phase("chaotic", K, parallel, perpendicular, limit, _depth(parallel), _depth(rate))


def _depth(rate: float) -> float:
    """The layers in which something that shrinks or grows by ``rate`` in each changes by a factor e."""
    if abs(rate) < 1e-15 or math.isinf(rate):
        return 0.0
    return math.inf if abs(abs(rate) - 1) <= MARGIN else 1 / abs(math.log(abs(rate)))


def _homogeneous_phase(sigma: Activation, weight_variance: float) -> Phase:
    chi = weight_variance * sigma.slope_moment(1.0)
    left, right = sigma.slopes_at_zero()
    limit = None if left == right else 1.0
    if abs(chi - 1) <= MARGIN:
        return Phase("critical", None, chi, chi, limit, math.inf, math.inf)
    name: PhaseName = "vanishing" if chi < 1 else "exploding"
    return Phase(name, 0.0 if chi < 1 else None, chi, chi, limit, _depth(chi), _depth(chi))


def _exploding(sigma: Activation, weight_variance: float) -> Phase:
    grid, _, slopes = _moments_on_grid(sigma)
    far = float(grid[np.isfinite(slopes)][-1])
    parallel, perpendicular = weight_variance * sigma.curvature_moment(far), weight_variance * sigma.slope_moment(far)
    return Phase("exploding", None, parallel, perpendicular, None, _depth(parallel), _depth(perpendicular))


def _reached(sigma: Activation, weight: float, bias: float, start: float) -> FixedPoint | None:
    """The fixed point to which the variance moves: after some steps, the next one in the direction of the last."""
    points = fixed_points(sigma, weight_variance=weight, bias_variance=bias)
    for _ in range(32):
        if start < 1e8:
            start = bias + weight * sigma.moment(start)
    if not start < 1e8:
        return None
    step = bias + weight * sigma.moment(start) - start
    at = [point for point in points if abs(point.variance - start) <= 1e-9 * start]
    if at or abs(step) <= 1e-13 * start:
        return at[0] if at else min(points, key=lambda point: abs(point.variance - start), default=None)
    if step > 0:
        return next((point for point in points if point.variance > start), None)
    return next((point for point in reversed(points) if point.variance < start), None)
