"""Hermite expansions of any activation at many variances at once, with kinks and jumps taken out in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from theodolite.theory import Activation
from theodolite.theory._quadrature import Array, filled, panel_nodes
from theodolite.theory.kernels._duals.kinks import Kink, Ramps, kinks_of

DIGITS = 1e-11  # what a series may leave out, relative to the mean square
NOISE = 1e-20  # of a variance: a mean square that rounding alone makes where a function is a small difference
LONGEST = 2048  # terms of a Hermite series


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
        widest = float(self.deviations.max()) ** 2
        return max(first, NOISE * widest, 1e-300), max(second, NOISE, 1e-300)

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

    Normalized Hermite functions, integrated by Gauss-Legendre panels that end at every kink.
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
        if _is_complete(coefficients, ramps, moments, deviations) or terms >= LONGEST:
            return Expansion(deviations, coefficients[0], coefficients[1], kinks), moments[0], moments[1]
        terms *= 2


def _is_complete(coefficients: Array, ramps: list[Ramps], moments: Array, deviations: Array) -> bool:
    """Whether the products of coefficients beyond the last, less those of the kinks alone, no longer matter."""
    terms = coefficients.shape[-1]
    late = slice(terms - terms // 8, terms)
    known = np.stack([part.coefficients(terms) for part in ramps])[..., late]
    rest = coefficients[..., late] - known
    seen = np.stack([np.maximum(moments[0], NOISE * deviations**2), np.maximum(moments[1], NOISE)])
    beyond = (np.abs(rest).max(-1) * (np.abs(rest) + 2 * np.abs(known)).max(-1)) * terms
    return bool((beyond <= 0.1 * DIGITS * np.maximum(seen, 1e-30)).all())


REACH = 13.0  # standard deviations; the root of the Gaussian density is then below 1e-18


def _hermite_functions(x: Array, terms: int) -> Array:
    r"""$He_j(x)/\sqrt{j!}$ times the root of the Gaussian density: (terms, nodes)."""
    found = np.empty((terms, len(x)))
    found[0] = np.exp(-0.25 * x * x) / (2 * math.pi) ** 0.25
    found[1] = x * found[0]
    for j in range(1, terms - 1):
        found[j + 1] = (x * found[j] - math.sqrt(j) * found[j - 1]) / math.sqrt(j + 1)
    return found
