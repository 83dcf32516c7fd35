r"""Through $26n$ numbers a compact set comes back within $3\epsilon_n$, three entropy numbers, by maps of steepness 1 and 2."""

import numpy as np

from theodolite.construct.capacity import lipschitz_extension
from theodolite.core.law import Law
from theodolite.core.reading import Band

GRID, TESTED = 512, 48


def measure(bits: int, *, missing_bits: int = 0) -> float:
    r"""The largest $|x-M(a(x))|$ over points of the curve $t\mapsto1_{[0,t]}$ of $L^2$, whose entropy numbers are known."""
    rng = np.random.default_rng(bits)  # one draw: a bound holds for each, and needs no mean
    arcs = np.linspace(0, GRID, 2 ** (bits - missing_bits) + 1)
    centers = (_curve(arcs[:-1]) + _curve(arcs[1:])) / 2
    points = _curve(np.sort(rng.choice(GRID, TESTED, replace=False) + 0.5))
    images = centers @ rng.standard_normal((GRID, 26 * bits))
    i, j = np.triu_indices(len(centers), 1)
    before, after = (np.linalg.norm(v[i] - v[j], axis=1) for v in (centers, images))
    images, after = images / (after / before).max(), after / (after / before).max()
    assert (after >= before / 2).all(), "expected a random map that keeps half of every distance"
    # of all extensions those that lean far out, the decoded away from their point: the theorem bounds every one
    coded = lipschitz_extension(centers, images, points, towards=rng.standard_normal((TESTED, images.shape[1])))
    nearest = centers[np.linalg.norm(points[:, None] - centers, axis=2).argmin(1)]
    decoded = lipschitz_extension(images, centers, coded, lipschitz=2.0, towards=nearest - points)
    return float(np.linalg.norm(points - decoded, axis=1).max())


def _curve(t: np.ndarray) -> np.ndarray:
    """The indicators of [0, t] on a grid of unit length; grid points that t cuts count in part."""
    return np.asarray(np.clip(t[:, None] - np.arange(GRID), 0.0, 1.0) / GRID**0.5)


law = Law(
    claim="A random linear map of 2^n centers into 26 n dimensions keeps half of every distance; extended to all points without "
    "growing steeper, and back with twice the steepness, it returns each point within three times the radius of the cover.",
    formula=r"\delta_{26n}(K)\le3\,\epsilon_n(K),\qquad\epsilon_n(\{1_{[0,t]}\})=2^{-n/2-1}",
    assumes={"a cover by 2^n balls": {"missing_bits": 1}, "a Hilbert space": None},
    source="cohen2022; kirszbraun1934",
    predict=lambda bits: Band(high=3 * 2 ** (-bits / 2 - 1)),
    measure=measure,
    cases=({"bits": 4}, {"bits": 5}, {"bits": 6}),
    quantity="largest distance of a point from what comes back",
    along="bits",
)
