"""Maps between Hilbert spaces that are known on some points, extended to others without growing steeper."""

import numpy as np
from numpy.typing import NDArray

from theodolite.core.checks import InputError

Array = NDArray[np.float64]
SLACK = 1e-7  # of the largest distance: how far a constraint may be missed by the solver
MOST_STEPS = 20_000


def lipschitz_extension(
    points: Array, images: Array, new: Array, *, lipschitz: float = 1.0, towards: Array | None = None
) -> Array:
    r"""Images of ``new`` points such that all distances, old and new, grow by at most the factor ``lipschitz``.

    By Kirszbraun's theorem the balls $B(y_i,\ell|x-x_i|)$ meet whenever $|y_i-y_j|\le\ell|x_i-x_j|$; the image of x is
    a point of all of them, towards the least of $\max_i|y-y_i|^2-\ell^2|x-x_i|^2$, a small quadratic program. One new point
    after the other, each of them a constraint to the next, so that the whole map is Lipschitz. Many images are possible:
    with ``towards`` (n, m) each goes from there in its own direction as far as the balls allow. Coordinate by coordinate
    (McShane) the constant would grow by the root of the dimension. Source: kirszbraun1934.

    >>> lipschitz_extension(np.array([[0.0], [2.0]]), np.array([[0.0], [1.0]]), np.array([[1.0]]), lipschitz=0.5)
    array([[0.5]])
    """
    x, y = np.asarray(points, dtype=np.float64), np.asarray(images, dtype=np.float64)
    fresh = np.asarray(new, dtype=np.float64)
    if x.ndim != 2 or y.ndim != 2 or fresh.ndim != 2 or len(x) != len(y) or len(x) == 0 or fresh.shape[1] != x.shape[1]:
        raise InputError(
            "expected points (k, d) with images (k, m), k at least 1, and new points (n, d), got shapes "
            f"{x.shape}, {y.shape} and {fresh.shape}"
        )
    if not (np.isfinite(x).all() and np.isfinite(y).all() and np.isfinite(fresh).all() and 0 < lipschitz < np.inf):
        raise InputError("expected finite points and a positive lipschitz, got others; remove those")
    steepest = _steepest(x, y)
    if steepest > lipschitz * (1 + SLACK):
        raise InputError(
            f"expected images no steeper than lipschitz={lipschitz:g}, got {steepest:.6g}; give at least that"
        )
    for place, row in enumerate(fresh):
        radii = lipschitz * np.linalg.norm(x - row, axis=1)
        image = _meeting_point(y, radii)
        if towards is not None:
            image = _leaning(image, np.asarray(towards[place], dtype=np.float64), y, radii)
        x, y = np.vstack([x, row]), np.vstack([y, image])
    return y[len(y) - len(fresh) :]


def _leaning(point: Array, direction: Array, centers: Array, radii: Array) -> Array:
    """The last point in this direction that all balls hold."""
    size = float(np.linalg.norm(direction))
    if size == 0.0:
        return point
    unit, apart = direction / size, point - centers
    along, room = apart @ unit, radii**2 - (apart**2).sum(1)
    return np.asarray(point + max(0.0, float((np.sqrt(np.maximum(along**2 + room, 0.0)) - along).min())) * unit)


def _steepest(x: Array, y: Array) -> float:
    i, j = np.triu_indices(len(x), 1)
    before, after = np.linalg.norm(x[i] - x[j], axis=1), np.linalg.norm(y[i] - y[j], axis=1)
    grown = np.where(before > 0, after / np.where(before > 0, before, 1.0), np.where(after > 0, np.inf, 0.0))
    return float(grown.max(initial=0.0))


def _meeting_point(centers: Array, radii: Array) -> Array:
    r"""A point of all balls, by the dual: $\max_\lambda\sum\lambda_i(|y_i|^2-r_i^2)-|\sum\lambda_iy_i|^2$ over the simplex.

    Exact line search along pairwise directions: weight goes from the roomiest ball that has some to the tightest.
    """
    nearest = int(radii.argmin())
    center = centers - centers[nearest]  # where the answer is near: no digits are lost to a distant origin
    gram = center @ center.T
    gain = gram.diagonal() - radii**2
    weights = np.zeros(len(radii))
    weights[nearest] = 1.0
    at = gram @ weights  # of each center with the point
    size = float(radii.max()) ** 2 + 1e-300
    for _ in range(MOST_STEPS):
        room = gain - 2 * at  # |y - y_i|^2 - r_i^2, less |y|^2
        tight = int(room.argmax())
        worst = float(room[tight] + weights @ at)
        loose = int(np.where(weights > 0, room, np.inf).argmin())
        if worst <= 0 or room[tight] - room[loose] <= 1e-14 * size:
            break
        apart = gram[tight, tight] + gram[loose, loose] - 2 * gram[tight, loose]
        step = min(weights[loose], (room[tight] - room[loose]) / (2 * apart) if apart > 0 else weights[loose])
        weights[tight] += step
        weights[loose] = 0.0 if step == weights[loose] else weights[loose] - step
        at = at + step * (gram[:, tight] - gram[:, loose])
    if worst > SLACK * size:
        raise InputError(
            f"expected balls that meet, got a gap of {worst:.2g} of squared distance; give a larger lipschitz"
        )
    return np.asarray(centers[nearest] + weights @ center)
