"""Kinks and jumps of a function, and what they contribute to a covariance, exactly: shifted steps, ramps and bends."""

import math
from dataclasses import dataclass

import numpy as np
import torch

from theodolite.theory import Activation
from theodolite.theory._quadrature import Array

ORDERS = 5
"""How many derivatives are looked at for jumps."""

LEAST = 1e-24
"""The least variance that kinks are seen from; one at a distance is then further off than any Gaussian reaches."""

Kink = tuple[float, float, int]
r"""A place $\kappa$, a height $\Delta$ and an order m: the part $\Delta(z-\kappa)_+^m/m!$ of a function."""


def kinks_of(activation: Activation, radius: float) -> tuple[Kink, ...]:
    """Every place within ``radius`` of 0 where the function (order 0), its slope (1) or a higher derivative jumps.

    >>> [(round(place, 9), round(height, 6), order) for place, height, order in kinks_of(Activation("hardtanh"), 3.0)]
    [(-1.0, 1.0, 1), (1.0, -1.0, 1)]
    """
    found: list[Kink] = []
    for place in activation._resolution.breaks(radius).tolist():
        width = 1e-9 * max(1.0, abs(place))
        sides = torch.tensor([place - width, place + width], dtype=torch.float64)
        sides_of = [part.tolist() for part in activation.derivatives(sides, order=ORDERS)]
        size = max(1.0, *(abs(value) for part in sides_of for value in part))
        for order in range(ORDERS):
            (left, right), (slope_left, slope_right) = sides_of[order], sides_of[order + 1]
            step = right - left - width * (slope_left + slope_right)
            if abs(step) > 1e-7 * size:
                found.append((place, step, order))
    return tuple(found)


@dataclass(frozen=True)
class Ramps:
    """The kinks of a function of deviation times x, as far as ``slope`` (of the function or of its slope) asks."""

    kinks: tuple[Kink, ...]
    deviations: Array  # (p,)
    slope: bool

    @property
    def parts(self) -> list[tuple[Array, Array, int]]:
        """For each kink where it lies in x, its factor, both (p,), and its order."""
        found = []
        for place, height, order in self.kinks:
            left = order - 1 if self.slope else order
            if left >= 0:
                found.append((place / self.deviations, height * self.deviations**left / math.factorial(left), left))
        return found

    def coefficients(self, terms: int) -> Array:
        """Hermite coefficients: (p, terms)."""
        total = np.zeros((len(self.deviations), terms))
        for h, factor, order in self.parts:
            total += factor[:, None] * _ramp_coefficients(h, order, terms)
        return total

    def covariance(self, angle: Array) -> Array:
        """The covariance of the ramps alone, for all pairs of deviations: (t, p, p)."""
        total = np.zeros((len(angle), len(self.deviations), len(self.deviations)))
        for h, first, m in self.parts:
            for k, second, n in self.parts:
                total += first[:, None] * second * ramp_covariance(h[:, None], k, angle[:, None, None], (m, n))
        return total


def ramp_pairs(kinks: tuple[Kink, ...], a: Array, b: Array, angle: Array, *, slope: bool) -> Array:
    """The covariance of the ramps for broadcast variances and angles; a variance of 0 stands for its limit."""
    a, b = np.maximum(a, LEAST), np.maximum(b, LEAST)
    total = np.zeros_like(angle)
    ones = Ramps(kinks, np.ones(1), slope).parts
    for h, first, m in ones:
        for k, second, n in ones:
            scale = float(first[0] * second[0]) * a ** (0.5 * m) * b ** (0.5 * n)
            total += scale * ramp_covariance(h / np.sqrt(a), k / np.sqrt(b), angle, (m, n))
    return total


def _ramp_coefficients(h: Array, order: int, terms: int) -> Array:
    r"""Hermite coefficients of $(x-h)_+^m$: (p, terms)."""
    hermite = np.zeros((len(h), terms))  # He_j(h) φ(h) / sqrt(j!)
    hermite[:, 0] = _density(h)
    hermite[:, 1] = h * hermite[:, 0]
    for j in range(1, terms - 1):
        hermite[:, j + 1] = (h * hermite[:, j] - math.sqrt(j) * hermite[:, j - 1]) / math.sqrt(j + 1)
    found = np.zeros((len(h), terms))
    partial = _partial_moments(h, order)
    for j in range(order + 1):  # E He_j(x) (x - h)_+^m = m!/(m - j)! E (x - h)_+^(m - j)
        found[:, j] = math.perm(order, j) * partial[order - j] / math.sqrt(math.factorial(j))
    index = np.arange(order + 1, terms, dtype=np.float64)
    falling = np.prod([index - i for i in range(order + 1)], axis=0)
    found[:, order + 1 :] = math.factorial(order) * hermite[:, : terms - order - 1] / np.sqrt(falling)
    return found


def _partial_moments(t: Array, order: int) -> list[Array]:
    r"""$E(x-t)_+^j$ for j up to ``order``."""
    from scipy.special import ndtr  # a third of a second to load, and few kernels have kinks

    found = [np.asarray(ndtr(-t)), _density(t) - t * ndtr(-t)]
    for j in range(2, order + 1):
        found.append((j - 1) * found[j - 2] - t * found[j - 1])
    return [np.maximum(part, 0.0) for part in found]


def ramp_covariance(h: Array, k: Array, angle: Array, orders: tuple[int, int]) -> Array:
    r"""$M_{mn}=E(X-h)_+^m(Y-k)_+^n$ for standard Gaussians at an angle, $c=\cos\theta$; order 0 is a step.

    By Stein's lemma $M_{mn}=-hM_{m-1,n}+(m-1)M_{m-2,n}+cnM_{m-1,n-1}$, down to $P(X>h,Y>k)$ by Owen's function and
    to densities on the edges. At h = k = 0 two ramps give the arc-cosine kernel:

    >>> zero, right = np.zeros(1), np.array([math.pi / 2])
    >>> round(float(ramp_covariance(zero, zero, right, (1, 1))[0]) * 2 * math.pi, 12)
    1.0
    """
    h, k, angle = np.broadcast_arrays(h, k, np.clip(angle, 1e-12, math.pi - 1e-12))
    sine, cosine = np.sin(angle), np.cos(angle)
    m, n = orders
    known: dict[tuple[int, int], Array] = {(0, 0): _both_above(h, k, angle)}
    for j, part in enumerate(_partial_moments(_ratio(k, h, angle), max(n, 1))):
        known[-1, j] = _density(h) * sine**j * part
    for i, part in enumerate(_partial_moments(_ratio(h, k, angle), max(m, 1))):
        known[i, -1] = _density(k) * sine**i * part

    def moment(i: int, j: int) -> Array:
        if (i, j) not in known:
            if i >= 1:
                value = -h * moment(i - 1, j) + max(i - 1, 1) * moment(i - 2, j)
                known[i, j] = value + max(j, 1) * cosine * moment(i - 1, j - 1)
            else:
                value = -k * moment(i, j - 1) + max(j - 1, 1) * moment(i, j - 2)
                known[i, j] = value + cosine * moment(-1, j - 1)
        return known[i, j]

    return moment(m, n)


def _density(h: Array) -> Array:
    return np.asarray(np.exp(-0.5 * h * h) / math.sqrt(2 * math.pi))


def _ratio(k: Array, h: Array, angle: Array) -> Array:
    r"""$(k-h\cos\theta)/\sin\theta$."""
    return np.asarray(((k - h) + 2 * h * np.sin(0.5 * angle) ** 2) / np.sin(angle))


def _both_above(h: Array, k: Array, angle: Array) -> Array:
    r"""$P(X>h,Y>k)$, by Owen's T."""
    from scipy.special import ndtr, owens_t

    tiny = 1e-300
    safe_h, safe_k = np.where(h == 0, tiny, h), np.where(k == 0, tiny, k)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        first = owens_t(safe_h, _ratio(safe_k, safe_h, angle) / safe_h)
        second = owens_t(safe_k, _ratio(safe_h, safe_k, angle) / safe_k)
    opposite = np.sign(safe_h) * np.sign(safe_k) < 0
    return np.asarray(0.5 * (ndtr(-h) + ndtr(-k)) - first - second - 0.5 * opposite)
