r"""Which interpolant a diagonal network finds: flow on $\beta=\theta_+^2-\theta_-^2$ minimizes a potential set by its start.

From $\theta_\pm=\alpha\theta_0$ the flow on $\frac12|X\beta-y|^2$ keeps $\theta_+\theta_-$, moves as
$\beta=2\alpha^2\theta_0^2\sinh(-4X^\top\int r)$, and ends, if it interpolates, at the least
$Q(\beta)=\sum_i\alpha^2\theta_{0i}^2\,q(\beta_i/\alpha^2\theta_{0i}^2)$: nearly the least $\ell_1$ norm from a small start, a
weighted $\ell_2$ norm from a large one.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from theodolite.core.checks import InputError, positive, real_values

Array = np.ndarray[Any, np.dtype[np.float64]]

LARGEST = 700.0  # exp of more is not a number of double precision


def sinh_solution(exposure: Array, *, scale: float, initial_shape: Array | float = 1.0) -> Array:
    r"""$\beta(t)=2\alpha^2\theta_0^2\sinh(-4X^\top\int_0^tr)$; ``exposure`` is $X^\top\int r$. Source: woodworth2020.

    >>> bool(sinh_solution(np.array([-0.25]), scale=1.0)[0] == 2 * np.sinh(1.0))
    True
    """
    positive(scale=scale, initial_shape=initial_shape)
    return np.asarray(2 * (scale * initial_shape) ** 2 * np.sinh(np.clip(-4 * exposure, -LARGEST, LARGEST)))


def potential(weight: Array, *, scale: float, initial_shape: Array | float = 1.0) -> float:
    r"""$Q=\sum_iw_iq(\beta_i/w_i)$, $w=\alpha^2\theta_0^2$, $q(z)=2-\sqrt{4+z^2}+z\,\mathrm{arcsinh}(z/2)$.

    Of all vectors that fit the data, gradient flow from a start of this scale ends at the one of least Q.

    For small $\alpha$, $Q=\sum|\beta_i|(\ln|\beta_i|-1-\ln w_i)$, so that $Q/\ln\alpha^{-2}\to|\beta|_1$; for large $\alpha$,
    $\alpha^2Q\to\frac14\sum\beta_i^2/\theta_{0i}^2$. Source: woodworth2020.
    Differs from the source: some state $Q\to|\beta|_1$ without the logarithm.

    >>> abs(potential(np.array([2.0]), scale=1.0) - (2 - 8**0.5 + 2 * float(np.arcsinh(1.0)))) < 1e-15
    True
    """
    positive(scale=scale, initial_shape=initial_shape)
    w = np.broadcast_to((scale * np.asarray(initial_shape)) ** 2, np.shape(weight))
    z = np.asarray(weight) / w
    root = np.sqrt(4 + z**2)
    return float(np.sum(w * (z * np.arcsinh(z / 2) - z**2 / (2 + root))))  # 2 - root without cancellation


def least_potential(x: Array, y: Array, *, scale: float, initial_shape: Array | float = 1.0) -> Array:
    r"""The interpolant $X\beta=y$ of least potential: where gradient flow from $\theta_\pm=\alpha\theta_0$ ends.

    $\beta=2w\sinh(X^\top\nu)$ with $\nu$ the least of the convex $\sum2w\cosh(X^\top\nu)-y\cdot\nu$, by damped Newton steps:
    they cannot overshoot, for any scale from 1e-8 to 1e3. Source: woodworth2020.

    >>> least_potential(np.array([[2.0, 1.0]]), np.array([1.0]), scale=1e-6).round(3)  # l1: the larger feature alone
    array([0.5, 0. ])
    >>> least_potential(np.array([[2.0, 1.0]]), np.array([1.0]), scale=100.0).round(3)  # l2: in proportion
    array([0.4, 0.2])
    """
    positive(scale=scale)
    real_values(x=x, y=y)
    rows, y = _independent(x, y)
    positive(initial_shape=initial_shape)
    w = np.broadcast_to((scale * np.asarray(initial_shape, dtype=float)) ** 2, (x.shape[1],))

    def images(u: Array) -> tuple[Array, Array]:
        return 2 * w * np.sinh(u), 2 * w * np.cosh(u)

    return _dual_solution(rows, y, images)


def least_divergence(readouts: Array, y: Array, *, start: Array) -> Array:
    r"""The $b\geq0$ with $\frac12Mb=y$ of least $\sum_jb_j\ln(b_j/b_{0j})-b_j+b_{0j}$, the Kullback-Leibler divergence.

    Where the second derivatives of a model $z_\alpha=\frac12\theta^\top F_\alpha\theta$ commute, $F_\alpha=U\mu_\alpha U^\top$,
    gradient flow ends at $b=(U^\top\theta)^2$ of this form, M having the rows $\mu_\alpha$. The diagonal network is the case of
    the readouts (x, -x). Source: woodworth2020. Differs from the source: which has the diagonal network alone.

    >>> least_divergence(np.array([[1.0, 1.0]]), np.array([3.0]), start=np.array([1.0, 2.0]))
    array([2., 4.])
    """
    real_values(readouts=readouts, y=y, start=start)
    from scipy.optimize import nnls

    start = np.asarray(start, dtype=float)
    if not (start > 0).all():
        raise InputError(f"expected a start with every part positive, got {start.min():g}; a part that is 0 stays 0")
    size = float(np.linalg.norm(y)) or 1.0
    missed = nnls(np.asarray(readouts, dtype=float), 2 * np.asarray(y, dtype=float), maxiter=100 * readouts.shape[1])[1]
    if missed > 1e-9 * size:
        raise InputError(
            f"expected targets that some b >= 0 fits, got a residual of {missed / size:.2g} of them; "
            "gradient flow on this model does not interpolate"
        )
    rows, target = _independent(readouts, 2 * np.asarray(y, dtype=float))

    def images(u: Array) -> tuple[Array, Array]:
        b = start * np.exp(np.clip(u, -LARGEST, LARGEST))
        return b, b

    return _dual_solution(rows, target, images)


def least_weighted_norm(x: Array, y: Array, *, initial_shape: Array | float = 1.0) -> Array:
    r"""$WX^\top(XWX^\top)^+y$, $W=\theta_0^2$: the interpolant of least $\sum\beta_i^2/\theta_{0i}^2$.

    >>> least_weighted_norm(np.array([[1.0, 1.0]]), np.array([2.0]))
    array([1., 1.])
    """
    real_values(x=x, y=y)
    rows, y = _independent(x, y)
    positive(initial_shape=initial_shape)
    w = np.broadcast_to(np.asarray(initial_shape, dtype=float) ** 2, (x.shape[1],))
    return np.asarray(w * (rows.T @ np.linalg.solve((rows * w) @ rows.T, y)))


def least_l1_norm(x: Array, y: Array) -> Array:
    r"""The interpolant of least $|\beta|_1$, by linear programming.

    >>> least_l1_norm(np.array([[2.0, 1.0]]), np.array([1.0]))
    array([0.5, 0. ])
    """
    real_values(x=x, y=y)
    from scipy.optimize import linprog

    rows, y = _independent(x, y)
    n = x.shape[1]
    size = float(np.abs(y).max(initial=0.0)) or 1.0  # the solver's tolerances are absolute
    found = linprog(np.ones(2 * n), A_eq=np.hstack([rows, -rows]), b_eq=y / size, bounds=(0, None), method="highs")
    if found.x is None:
        raise InputError(f"expected a linear programme with a solution, got: {found.message}; look at the data")
    return np.asarray(size * (found.x[:n] - found.x[n:]))


def _independent(x: Array, y: Array) -> tuple[Array, Array]:
    """Orthonormal rows and targets with the same solutions; refuses targets that no linear model fits."""
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if x.ndim != 2 or y.shape != (len(x),):
        raise InputError(f"expected features (samples, d) and as many targets, got {x.shape} and {y.shape}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise InputError("expected finite features and targets, got some that are not; look for NaN in the data")
    left, values, right = np.linalg.svd(x, full_matrices=False)
    rank = int((values > 1e-10 * max(values.max(initial=0.0), 1e-300)).sum())
    seen = left[:, :rank].T @ y
    missed, size = float(np.linalg.norm(y - left[:, :rank] @ seen)), float(np.linalg.norm(y)) or 1.0
    if missed > 1e-8 * size:
        raise InputError(
            f"expected targets that a linear model can fit exactly, got a residual of {missed / size:.2g} of them with "
            f"{len(y)} samples and rank {rank}; take fewer samples or more features"
        )
    return right[:rank], seen / values[:rank]


def _solved(matrix: Array, right: Array) -> Array:
    """By Cholesky, a quarter of the price; by singular values where the matrix is singular but for rounding."""
    try:
        factor = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(matrix, right, rcond=None)[0])
    return np.asarray(np.linalg.solve(factor.T, np.linalg.solve(factor, right)))


def _dual_solution(rows: Array, y: Array, images: Callable[[Array], tuple[Array, Array]], *, most: int = 500) -> Array:
    """The image b(u), u = rows^T nu, with rows b = y, and b' = |b''| or more along every direction.

    A step of log(1 + d)/d times Newton's, d its largest change of u, lowers such an objective always (Sun and Tran-Dinh).
    """
    nu = np.zeros(len(rows))
    size = float(np.linalg.norm(y)) or 1.0
    best, left = images(rows.T @ nu)[0], np.inf
    for _ in range(most):
        b, slope = images(np.clip(rows.T @ nu, -LARGEST, LARGEST))
        gap = y - rows @ b
        if float(np.linalg.norm(gap)) < left:
            best, left = b, float(np.linalg.norm(gap))
        if left <= 1e-14 * size:
            break
        step = _solved((rows * slope) @ rows.T, gap)
        d = float(np.abs(rows.T @ step).max())
        if d <= 1e-15 * (1 + float(np.abs(rows.T @ nu).max())):
            break
        nu = nu + step * (np.log1p(d) / d)
    if left > 1e-7 * size:
        raise InputError(
            f"expected an interpolant inside the domain, got a residual of {left / size:.2g} after {most} Newton steps; "
            "the targets lie on its edge"
        )
    return np.asarray(best)
