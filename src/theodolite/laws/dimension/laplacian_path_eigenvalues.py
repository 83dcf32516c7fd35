r"""The Laplacian eigenmaps of a path of n points have eigenvalues $1-\cos(\pi k/(n-1))$: 0, 1/2, 3/2, 2 for four."""

import math

import numpy as np

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.dimension import laplacian_eigenmaps


def predict(points: int, order: int) -> Band:
    return Band.around(1 - math.cos(math.pi * order / (points - 1)), abs=1e-12)


def measure(points: int, order: int, *, closed: bool = False) -> float:
    W = np.eye(points, k=1) + np.eye(points, k=-1)
    if closed:
        W[0, -1] = W[-1, 0] = 1.0
    return laplacian_eigenmaps(W).eigenvalues[order]


law = Law(
    claim="Normalized by the degrees, the Laplacian of a path has the spectrum of a reflecting random walk.",
    formula=r"Ly=\lambda Dy,\qquad\lambda_k=1-\cos\frac{\pi k}{n-1}",
    assumes={"a path with two ends": {"closed": True}},
    source="belkin2003",
    predict=predict,
    measure=measure,
    cases=tuple({"points": n, "order": k} for n, k in ((4, 1), (4, 2), (4, 3), (30, 1), (30, 7))),
    quantity="eigenvalue",
)
