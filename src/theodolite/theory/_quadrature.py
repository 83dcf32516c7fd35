"""Composite Gauss-Legendre quadrature of Gaussian expectations, with panels that end at every kink and jump."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from theodolite.core.checks import InputError

Array = NDArray[np.float64]
Function = Callable[[Array], Array]

ORDER = 16  # nodes in a panel
SPACING = 1.5  # widest panel, in standard deviations
REACH = 10.0  # how many standard deviations are enough for a function of polynomial growth
FURTHEST = 37.0  # beyond, the Gaussian density underflows
RESOLUTION = 1e-13  # how well a panel's polynomial must represent the function
JUMP = 1e-7  # relative step from which on a discontinuity is one (torch's softplus steps by 1e-10 at its threshold)
MOST_PANELS = 4_000
LARGEST = 1e150  # so that a square does not overflow


@lru_cache(maxsize=1)
def legendre() -> tuple[Array, Array, Array, Array]:
    """Nodes and weights on [-1, 1], and interpolation from the nodes to those of both halves and to the two ends."""
    nodes, weights = np.polynomial.legendre.leggauss(ORDER)
    halves = np.concatenate([0.5 * nodes - 0.5, 0.5 * nodes + 0.5])
    to_legendre = np.linalg.inv(np.polynomial.legendre.legvander(nodes, ORDER - 1))
    to_halves = np.polynomial.legendre.legvander(halves, ORDER - 1) @ to_legendre
    to_ends = np.polynomial.legendre.legvander(np.array([-1.0, 1.0]), ORDER - 1) @ to_legendre
    return nodes, weights, to_halves, to_ends


def panel_nodes(left: Array, right: Array) -> tuple[Array, Array]:
    """The nodes and weights of panels, each of shape (panels, ORDER)."""
    nodes, weights, _, _ = legendre()
    half = 0.5 * (right - left)[..., None]
    return 0.5 * (right + left)[..., None] + half * nodes, half * weights


def refined_edges(function: Function, edges: Array, scale: float) -> Array:
    """Edges between which a polynomial through ORDER nodes represents the function, by bisection.

    Bisection ends also where a panel is as narrow as rounding allows: there is a kink or a jump inside it.
    """
    _, _, to_halves, _ = legendre()
    left, right = edges[:-1], edges[1:]
    found = [edges]
    for _ in range(1100):
        if left.size == 0:
            break
        if left.size + sum(part.size for part in found) > MOST_PANELS:
            raise UnresolvedError(
                f"expected a function that is smooth between at most {MOST_PANELS} kinks and jumps, got one that "
                f"is not near z = {left[0]:.6g}; does it round to float32 inside, or is it random?"
            )
        nodes, _ = panel_nodes(left, right)
        middle = 0.5 * (left + right)
        children, _ = panel_nodes(np.stack([left, middle], -1), np.stack([middle, right], -1))
        values, seen = function(nodes), function(children).reshape(len(left), -1)
        with np.errstate(invalid="ignore", over="ignore"):
            error = np.abs(values @ to_halves.T - seen).max(1)
            size = np.maximum(np.abs(seen).max(1), scale)
            steep = np.abs(np.diff(values) / np.diff(nodes)).max(1)
        rounding = 4e-16 * np.maximum(np.abs(left), np.abs(right))
        rough = (error > RESOLUTION * size + rounding * steep) & (right - left > 8 * rounding) & (right - left > 1e-300)
        left, middle, right = left[rough], middle[rough], right[rough]
        found.append(middle)
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
    return np.unique(np.concatenate(found))


def smooth_edges(function: Function, edges: Array, scale: float) -> Array:
    """Panel edges with every kink and jump inside the range among them: found by bisection, then refined afresh."""
    cascade = refined_edges(function, edges, scale)
    width = np.diff(cascade)
    narrow = width < 1e-9 * np.maximum(1.0, np.abs(cascade[:-1]))
    breaks: list[float] = []
    for group in np.split(np.flatnonzero(narrow), np.flatnonzero(np.diff(np.flatnonzero(narrow)) > 1) + 1):
        if group.size:
            best = group[np.argmin(width[group])]
            breaks.append(_sharper(function, float(cascade[best]), float(cascade[best + 1])))
    if not breaks:
        return cascade
    kinks = np.array(breaks)
    far = np.abs(edges[:, None] - kinks).min(1) > 1e-9 * np.maximum(1.0, np.abs(edges))
    far[[0, -1]] = True
    return refined_edges(function, np.unique(np.concatenate([edges[far], kinks])), scale)


def _sharper(function: Function, left: float, right: float) -> float:
    """The place of a kink within [left, right]: where the polynomials from both sides meet, if they do."""
    middle, margin = 0.5 * (left + right), 4 * (right - left) + 1e-15 * abs(left)
    size = 1e-3 * max(1.0, abs(middle))
    starts = np.array([middle - margin - size, middle + margin])
    nodes, _ = panel_nodes(starts, starts + size)
    sides = [
        np.polynomial.Legendre.fit(x, y, 6, domain=[x[0], x[-1]]) for x, y in zip(nodes, function(nodes), strict=True)
    ]
    gap, bend = sides[1](middle) - sides[0](middle), sides[1].deriv()(middle) - sides[0].deriv()(middle)
    shift = -gap / bend if bend else math.inf
    return float(middle + shift) if abs(shift) <= margin else middle


def coarser_edges(function: Function, edges: Array, scale: float) -> Array:
    """As few edges as will do: panels widening away from 0, if they integrate the function as well as the fine ones."""
    low, high = float(edges[0]), float(edges[-1])
    marks = np.array([sign * mark for sign in (-1.0, 1.0) for mark in (0.0, 2.0, 4.0, 8.0, 16.0)])
    marks = np.concatenate([marks[(marks >= low) & (marks <= high)], broken_edges(function, edges, scale)])
    try:
        coarse = refined_edges(function, np.unique(marks), scale)
    except UnresolvedError:
        return edges
    if len(coarse) >= len(edges):
        return edges
    totals = []
    for nodes, weights in (panel_nodes(*_ends(edges)), panel_nodes(*_ends(coarse))):
        values = function(nodes)
        powers = [values, values**2, values * np.cos(0.5 * nodes), values * np.sin(0.5 * nodes)]
        totals.append(np.array([(weights * power).sum() for power in powers]))
    size = np.abs(totals[0]).max() + (high - low) * scale**2
    return coarse if np.abs(totals[0] - totals[1]).max() <= 1e-12 * size else edges


class UnresolvedError(InputError):
    """The function varies too fast to be represented by panels."""


def broken_edges(function: Function, edges: Array, scale: float) -> Array:
    """Those inner edges at which the function or one of its derivatives jumps: no polynomial fits across them."""
    half = 0.5 * np.minimum(np.diff(edges)[:-1], np.diff(edges)[1:])
    left, middle, right = edges[1:-1] - half, edges[1:-1], edges[1:-1] + half
    values = function(panel_nodes(left, right)[0])
    seen = function(panel_nodes(np.stack([left, middle], -1), np.stack([middle, right], -1))[0]).reshape(len(left), -1)
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(values @ legendre()[2].T - seen).max(1)
        size = np.maximum(np.abs(seen).max(1), scale)
    return np.asarray(middle[error > 100 * RESOLUTION * size])


@dataclass(frozen=True, eq=False)
class Resolution:
    """Where a function is smooth: panels on [-16, 16], extended outward by doubling when they are asked for."""

    function: Function
    scale: float
    _parts: dict[float, Array] = field(default_factory=dict)
    _marks: dict[float, Array] = field(default_factory=dict)  # jumps within a radius; breaks under the radius negated

    @classmethod
    def of(cls, function: Function) -> Resolution:
        """The resolution of a function of arrays; its scale is its size near 0."""
        for radius in (1.0, 2.0, 4.0, 8.0, 16.0):
            scale = float(np.abs(function(np.linspace(-radius, radius, 129))).max())
            if scale > 0:
                break
        return cls(function, scale or 1.0)

    def _part(self, start: float, end: float) -> Array:
        if start not in self._parts:
            edges = np.arange(start, end + 0.5) if max(abs(start), abs(end)) <= 16 else np.array([start, end])
            fine = smooth_edges(self.function, edges, self.scale)
            near = max(abs(start), abs(end)) <= 16
            self._parts[start] = coarser_edges(self.function, fine, self.scale) if near else fine
        return self._parts[start]

    def edges(self, radius: float) -> Array:
        """Panel edges within ``radius`` of 0."""
        parts = [self._part(0.0, 16.0), self._part(-16.0, 0.0)]
        reach = 16.0
        while reach < radius and reach < 1e150:
            parts += [self._part(reach, 2 * reach), self._part(-2 * reach, -reach)]
            reach *= 2
        edges = np.unique(np.concatenate(parts))
        return edges[np.abs(edges) < radius]

    def breaks(self, radius: float) -> Array:
        """The kinks and jumps within ``radius`` of 0."""
        bucket = _bucket(radius)
        if -bucket not in self._marks:
            self._marks[-bucket] = broken_edges(self.function, self.edges(2 * bucket), self.scale)
        found = self._marks[-bucket]
        return found[np.abs(found) < radius]

    def jumps(self, radius: float) -> Array:
        """The places within ``radius`` of 0 at which the function is discontinuous."""
        bucket = _bucket(radius)
        if bucket not in self._marks:
            edges = self.edges(2 * bucket)
            values = self.function(panel_nodes(edges[:-1], edges[1:])[0])
            with np.errstate(invalid="ignore", over="ignore"):
                ends = values @ legendre()[3].T  # (panels, 2): extrapolated to both ends
                step = np.abs(ends[1:, 0] - ends[:-1, 1])
            size = np.maximum(np.maximum(np.abs(values[1:]).max(1), np.abs(values[:-1]).max(1)), self.scale)
            self._marks[bucket] = edges[1:-1][step > JUMP * size]
        found = self._marks[bucket]
        return found[np.abs(found) < radius]


def _bucket(radius: float) -> float:
    """The radius rounded up to one of 16, 32, 64 ..."""
    return 16.0 * 2.0 ** max(0, math.ceil(math.log2(radius / 16.0)))


def filled(edges: Array, spacing: float = SPACING) -> Array:
    """The sorted edges with gaps wider than ``spacing`` divided evenly.

    >>> filled(np.array([0.0, 1.0, 4.0]), 1.5)
    array([0. , 1. , 2.5, 4. ])
    """
    gaps = np.diff(edges)
    pieces = np.maximum(1, np.ceil(gaps / spacing - 1e-9)).astype(int)
    index = np.repeat(np.arange(len(gaps)), pieces)
    first = np.concatenate([[0], np.cumsum(pieces)[:-1]])
    part = np.arange(pieces.sum()) - first[index]
    return np.append(edges[index] + gaps[index] * part / pieces[index], edges[-1])


@lru_cache(maxsize=4096)
def _reach(resolution: Resolution, deviation: float, power: int) -> float:
    """How many standard deviations carry the moment of this power; infinite when double precision cannot hold it."""
    reach = REACH
    while reach <= FURTHEST:
        x = np.linspace(-reach, reach, 4 * int(reach) + 1)
        with np.errstate(all="ignore"):
            size = np.log(np.abs(resolution.function(deviation * x)) + 1e-300) * power - 0.5 * x * x
            size += 4 * np.log1p(np.abs(x))
        if not np.isnan(size).any() and max(size[0], size[-1]) < max(size.max() - 40.0, -700.0):
            return reach if size.max() < 700.0 else math.inf
        reach += 3.0
    return math.inf


@dataclass(frozen=True, eq=False)
class Line:
    """Nodes of a standard Gaussian ``x``, their probabilities, and the function at ``deviation * x``."""

    x: Array
    weights: Array
    values: Array
    power: int  # the largest power of the function whose expectation these nodes can hold

    def mean(self, integrand: Array, *, power: int = 2) -> float:
        """The expectation of values at the nodes; infinite when it is one of a power that overflows."""
        return float((self.weights * integrand).sum()) if power <= self.power else math.inf


def gaussian_line(resolution: Resolution, deviation: float) -> Line:
    """The quadrature for expectations of one Gaussian of this standard deviation."""
    power = max((p for p in (1, 2, 4) if math.isfinite(_reach(resolution, deviation, p))), default=0)
    reach = min(_reach(resolution, deviation, 4), FURTHEST)
    edges = resolution.edges(reach * deviation)
    inner = np.unique(np.concatenate([[-reach], edges / deviation, [reach]]))
    x, weights = panel_nodes(*_ends(filled(inner)))
    x, weights = x.ravel(), weights.ravel()
    weights = weights * np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    values = resolution.function(deviation * x)
    if np.abs(values).max() > math.sqrt(LARGEST):
        power = min(power, 2)
        values = np.clip(values, -LARGEST, LARGEST)
    return Line(x, weights, values, power)


def _ends(edges: Array) -> tuple[Array, Array]:
    return edges[:-1], edges[1:]


def plane_mean(
    resolution: Resolution, integrand: Function, *, first: float, second: float, cosine: float, sine: float
) -> float:
    """E f(u) f(v) for Gaussians of standard deviations ``first`` and ``second`` at a correlation of ``cosine``.

    With u = first x and v = second (cosine x + sine y), the inner panels (in y) end where v meets an edge of the
    function; the outer ones (in x) where u does, and about the places where v would with y = 0 they are graded on
    the scale sine / cosine on which the inner integral, as a function of x, then varies.
    """
    reach = max(_reach(resolution, first, 2), _reach(resolution, second, 2))
    if math.isinf(reach):
        return math.inf
    edges = resolution.edges(reach * max(first, second) * 1.5)
    ends = np.array([-reach, reach])
    outer = [ends, edges / first]
    if sine < 1e-15:
        outer.append(edges / (second * cosine))
    elif sine < 0.9:
        ratio = sine / abs(cosine)
        steps = ratio * np.array([0.0, 1.5, 3.0, 4.5, 6.0, 7.5, 9.0, 12.0])
        bends = resolution.breaks(reach * second) / (second * cosine)
        outer += [(bends[:, None] + np.concatenate([-steps, steps])).ravel(), edges / (second * cosine)]
    x_edges = np.unique(np.clip(np.concatenate(outer), -reach, reach))
    x, weights = panel_nodes(*_ends(filled(x_edges)))
    x, weights = x.ravel(), weights.ravel()
    weights = weights * np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi) * integrand(first * x)
    keep = weights != 0
    x, weights = x[keep], weights[keep]
    if sine < 1e-15:
        return float((weights * integrand(second * cosine * x)).sum())
    return float((weights * _inner(integrand, edges / second, x * cosine, sine=sine, second=second, reach=reach)).sum())


def _inner(integrand: Function, edges: Array, center: Array, *, sine: float, second: float, reach: float) -> Array:
    """E f(second (center + sine y)) over a standard Gaussian y, for every center."""
    marks = np.clip((edges - center[:, None]) / sine, -reach, reach)  # (nodes, edges)
    grid = np.broadcast_to(filled(np.array([-reach, 0.0, reach])), (len(center), 2 * math.ceil(reach / SPACING) + 1))
    marks = np.sort(np.concatenate([marks, grid], axis=1), axis=1)
    left, right = marks[:, :-1], marks[:, 1:]
    row, column = np.nonzero(right > left)
    y, weights = panel_nodes(left[row, column], right[row, column])
    weights = weights * np.exp(-0.5 * y * y) / math.sqrt(2 * math.pi)
    values = integrand(second * (center[row, None] + sine * y))
    return np.bincount(row, weights=(weights * values).sum(1), minlength=len(center)).astype(np.float64)
