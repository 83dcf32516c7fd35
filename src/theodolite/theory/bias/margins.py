r"""Which separator gradient flow finds: the widest margin for losses with exponential tails, another for power tails.

Rows $z_i=y_ix_i$ are samples times their signs; w separates where every $z_i\cdot w>0$.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from theodolite.core.checks import InputError, one_of, real_values

Array = np.ndarray[Any, np.dtype[np.float64]]

SUPPORT = 1e-9
"""Multipliers above this share of the largest belong to support vectors."""


@dataclass(frozen=True)
class Margin:
    r"""The separator of widest margin, scaled so that the least $z_i\cdot w+y_ib$ is 1, and what it rests on.

    ``multipliers`` are the $a_i\geq0$ of $w=\sum a_iz_i$ (with a free bias also $\sum a_iy_i=0$); ``support`` the places where
    they are not zero. ``generic`` says that support vectors are linearly independent and that no other sample has margin 1.
    """

    weight: Array
    multipliers: Array
    support: tuple[int, ...]
    generic: bool
    bias: float = 0.0

    @property
    def margin(self) -> float:
        r"""$\gamma=1/|w|$."""
        return float(1 / np.linalg.norm(self.weight))


def widest_margin(x: Array, labels: Array | None = None, *, intercept: str = "none") -> Margin:
    r"""The least $\frac12|w|^2$ with $y_i(w\cdot x_i+b)\geq1$ and its multipliers, to rounding. Source: cortes1995.

    ``intercept`` is ``"none"``, ``"free"`` (the support vector machine) or ``"homogeneous"``, $|w|^2+b^2$, which is what gradient
    flow with a trained bias minimizes. Without a free bias $|w|^2=\sum a_i=1/\gamma^2$. Labels are -1 and 1; without them
    rows are taken as $y_ix_i$. Differs from the source: support vectors are those with $a_i\neq0$.

    >>> found = widest_margin(np.array([[3.0], [-10.0]]), np.array([1, -1]), intercept="free")
    >>> round(-found.bias / float(found.weight[0]), 12)  # half-way
    -3.5
    >>> found = widest_margin(np.array([[3.0], [-10.0]]), np.array([1, -1]), intercept="homogeneous")
    >>> round(-found.bias / float(found.weight[0]), 12)
    -0.333333333333
    """
    real_values(x=x)
    one_of(("none", "free", "homogeneous"), intercept=intercept)
    z, y = _signed(x, labels)
    if intercept == "none":
        return _least_distance(z)
    if intercept == "homogeneous":
        whole = _least_distance(np.hstack([z, y[:, None]]))
        return Margin(whole.weight[:-1], whole.multipliers, whole.support, whole.generic, float(whole.weight[-1]))
    return _free_intercept(np.asarray(x, dtype=float), y)


def widest_class_margin(features: Array, labels: Array, *, classes: int) -> tuple[Array, float]:
    r"""W (classes, d) of least norm with $(W_{y_i}-W_k)\cdot x_i\geq1$ for every other class k, and the margin $1/|W|$.

    Where gradient flow on the cross-entropy of a linear classifier goes, in direction. Source: soudry2018, Theorem 7.

    >>> W, margin = widest_class_margin(np.array([[1.0], [-1.0]]), np.array([0, 1]), classes=2)
    >>> W.round(6).tolist(), round(margin, 6)
    ([[0.5], [-0.5]], 1.414214)
    """
    real_values(features=features)
    x, y = np.asarray(features, dtype=float), np.asarray(labels)
    basis = np.linalg.svd(x, full_matrices=False)[2]  # W lies in the span of the samples: no more dimensions than these
    low = x @ basis.T
    rows = []
    for point, own in zip(low, y, strict=True):
        for other in range(classes):
            if other != own:
                row = np.zeros((classes, low.shape[1]))
                row[own], row[other] = point, -point
                rows.append(row.ravel())
    found = _least_distance(np.array(rows))
    return np.asarray(found.weight.reshape(classes, -1) @ basis), found.margin


def residual_weight(solution: Margin, x: Array, labels: Array | None = None) -> Array:
    r"""$\tilde w$ in the span of the support vectors with $e^{-z_i\cdot\tilde w}=a_i$: there $w(t)-\hat w\ln t\to\tilde w$.

    For gradient flow on $\sum e^{-z_i\cdot w}$, in the generic case. Source: soudry2018, Theorem 4.
    """
    real_values(x=x)
    if not solution.generic:
        raise InputError(
            "expected linearly independent support vectors with multipliers above 0, got a degenerate case; "
            "there the direction converges as log log t / log t and the residual has no limit of this form"
        )
    z, _ = _signed(x, labels)
    if len(z) != len(solution.multipliers):
        raise InputError(
            f"expected the {len(solution.multipliers)} rows of the solution, got {len(z)}; pass the same x"
        )
    rows = z[list(solution.support)]
    return np.asarray(np.linalg.pinv(rows) @ -np.log(solution.multipliers[list(solution.support)]))


def power_tail_direction(x: Array, labels: Array | None = None, *, exponent: float) -> Array:
    r"""The unit d of least $\sum(z_i\cdot d)^{-p}$: where gradient flow turns if the loss falls as $u^{-p}$.

    The direction of the least $\frac12|w|^2+\frac1p\sum(z_i\cdot w)^{-p}$, which is convex; the widest margin as
    $p\to\infty$. Source: soudry2018. Differs from the source: which has exponential tails.

    >>> power_tail_direction(np.array([[1.0, 0.0], [0.0, 1.0]]), exponent=2.0).round(6)
    array([0.707107, 0.707107])
    """
    real_values(x=x)
    if not exponent > 0:
        raise InputError(f"expected a power above 0, got {exponent}")
    z, _ = _signed(x, labels)
    z = z / np.abs(z).max()  # the direction has no unit, and powers of margins near 1 are numbers
    w = _least_distance(z).weight

    def objective(v: Array) -> float:
        m = z @ v
        return float(0.5 * v @ v + (m**-exponent).sum() / exponent) if (m > 0).all() else np.inf

    for _ in range(200):
        m = z @ w
        gradient = w - z.T @ m ** (-exponent - 1)
        step = np.linalg.solve(np.eye(len(w)) + (exponent + 1) * (z.T * m ** (-exponent - 2)) @ z, gradient)
        share = 1.0
        while objective(w - share * step) > objective(w) and share > 1e-12:
            share /= 2
        w = w - share * step
        if np.linalg.norm(step) < 1e-14 * np.linalg.norm(w):
            break
    return np.asarray(w / np.linalg.norm(w))


def _signed(x: Array, labels: Array | None) -> tuple[Array, Array]:
    x = np.asarray(x, dtype=float)
    y = np.ones(len(x)) if labels is None else np.asarray(labels, dtype=float)
    if x.ndim != 2 or y.shape != (len(x),) or not np.isin(y, (-1.0, 1.0)).all():
        raise InputError(
            f"expected samples (n, d) and labels -1 or 1, got {x.shape} and {y.shape} with {np.unique(y)[:4]}"
        )
    if not np.isfinite(x).all():
        raise InputError("expected finite samples, got some that are not; look for NaN in the data")
    return x * y[:, None], y


def _least_distance(z: Array) -> Margin:
    """Least |w| with z w >= 1, by non-negative least squares (lawson1974, chapter 23), then exactly on the support."""
    from scipy.optimize import nnls

    if not len(z):
        raise InputError("expected samples, got none; pass at least one")
    size = float(np.linalg.norm(z, axis=1).max(initial=0.0)) or 1.0
    goal = np.append(np.zeros(z.shape[1]), 1.0)
    for unit in size * 10.0 ** -np.arange(0, 13, 2):  # a margin far below the largest sample asks for a smaller unit
        system = np.vstack([z.T / unit, np.ones(len(z))])
        u = nnls(system, goal, maxiter=100 * len(z))[0]
        rest = system @ u - goal
        w = np.zeros(z.shape[1]) if rest[-1] > -1e-13 else -rest[:-1] / rest[-1] / unit
        if (z @ w).min() > 0.5:
            break
    else:
        raise InputError(
            f"expected classes that a plane separates, got {len(z)} samples in {z.shape[1]} dimensions that none does; "
            "there gradient flow has a finite end and no margin"
        )
    a = u / -rest[-1] / unit**2
    support = np.flatnonzero(a > SUPPORT * a.max())
    rows = z[support]
    independent = bool(np.linalg.matrix_rank(rows) == len(support))
    if independent:
        exact = np.linalg.lstsq(rows, np.ones(len(support)), rcond=None)[0]
        if (z @ exact).min() > 1 - 1e-6:  # else the support was not told to rounding
            w, a = exact, np.zeros(len(z))
            a[support] = np.linalg.lstsq(rows.T, w, rcond=None)[0]
    touching = int((z @ w < 1 + 1e-7).sum())
    return Margin(w, a, tuple(support.tolist()), independent and touching == len(support))


def _free_intercept(x: Array, y: Array) -> Margin:
    r"""The support vector machine, by the least |w| with $w\cdot(x_i-x_j)/2\geq1$ for i of class 1 and j of class -1.

    Differences know no origin. Pairs are added as they are found violated, so that few of all are ever held.
    """
    ups, downs = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
    if not len(ups) or not len(downs):
        raise InputError("expected samples of both classes, got one class; a free bias alone separates it")
    centered = x - x.mean(0)
    toward = centered[ups].mean(0) - centered[downs].mean(0)
    pairs: dict[tuple[int, int], None] = {}
    for _ in range(len(x) + 50):
        first = ups[np.argsort(centered[ups] @ toward, kind="stable")[:8]]
        second = downs[np.argsort(-(centered[downs] @ toward), kind="stable")[:8]]
        known = len(pairs)
        pairs.update({(int(i), int(j)): None for i in first for j in second})
        held = np.array(list(pairs))
        near = _least_distance(0.5 * (centered[held[:, 0]] - centered[held[:, 1]]))
        toward = near.weight
        if len(pairs) == known:
            break
    a = np.zeros(len(x))
    for (i, j), weight in zip(held, near.multipliers, strict=True):
        a[i] += 0.5 * weight
        a[j] += 0.5 * weight
    low, high = (centered[ups] @ toward).min(), (centered[downs] @ toward).max()
    if not low > high:
        raise InputError(
            f"expected classes that a plane separates, got {len(x)} samples in {x.shape[1]} dimensions that none does; "
            "there gradient flow has a finite end and no margin"
        )
    support = tuple(np.flatnonzero(a > SUPPORT * a.max()).tolist())
    try:
        exact = _free_bias(centered * y[:, None], y, support)
    except ValueError:  # a support that rounding blurs: what the pairs gave stands
        exact = Margin(toward, a, support, generic=False, bias=float(-0.5 * (low + high)))
    return Margin(exact.weight, exact.multipliers, support, exact.generic, float(exact.bias - exact.weight @ x.mean(0)))


def _free_bias(z: Array, y: Array, support: tuple[int, ...]) -> Margin:
    """The support vector machine on a known support: gram a + b y = 1, y a = 0."""
    s = list(support)
    system = np.block([[z[s] @ z[s].T, y[s][:, None]], [y[s][None], np.zeros((1, 1))]])
    solution = np.linalg.lstsq(system, np.append(np.ones(len(s)), 0.0), rcond=None)[0]
    a = np.zeros(len(z))
    a[s] = solution[:-1]
    w, b = z.T @ a, float(solution[-1])
    margins = z @ w + b * y
    if margins.min() < 1 - 1e-6 or a.min() < -1e-6 * a.max():
        raise InputError(
            f"expected a support of the widest margin that double precision can tell, got a least margin of {margins.min():.6g} "
            "in place of 1; scale the features to similar sizes"
        )
    generic = bool(np.linalg.matrix_rank(system) == len(system)) and int((margins < 1 + 1e-7).sum()) == len(s)
    return Margin(w, a, support, generic, b)
