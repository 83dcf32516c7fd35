r"""Quadratic models, $z_\alpha=\Phi_\alpha\cdot\theta+\frac\epsilon2\theta^\top F_\alpha\theta$, to first order in $\epsilon$.

Gradient flow on $\frac12\sum_\alpha(z_\alpha-y_\alpha)^2$ ends at $\theta^F+\epsilon\theta^I$: the linear model's end and a
correction whose part within the span of the data fits deformed labels, and whose part outside it depends on the whole path.
Columns of $\Phi$ are data, $K=\Phi^\top\Phi$ and $A=\Phi\Phi^\top$.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_continuous_lyapunov

from theodolite.core.checks import InputError, finite_values, not_negative, real_values, within

Array = np.ndarray[Any, np.dtype[np.float64]]

FITS = 1e-9
"""Residuals below this share of the largest target count as zero: the linear model interpolates."""


@dataclass(frozen=True)
class QuadraticProblem:
    r"""$\Phi$ (D, m), symmetric $F_\alpha$ (m, D, D) and targets (m,)."""

    features: Array
    second_derivatives: Array
    targets: Array

    def __post_init__(self) -> None:
        D, m = self.features.shape
        if self.second_derivatives.shape != (m, D, D) or self.targets.shape != (m,):
            raise InputError(
                f"expected features (D, m), curvatures (m, D, D) and targets (m,), got {self.features.shape}, "
                f"{self.second_derivatives.shape} and {self.targets.shape}"
            )
        if not np.allclose(self.second_derivatives, self.second_derivatives.transpose(0, 2, 1)):
            raise InputError(
                "expected symmetric curvatures, got others; replace F by (F + F^T)/2, the model is the same"
            )

    @property
    def kernel(self) -> Array:
        r"""$K=\Phi^\top\Phi$."""
        return self.features.T @ self.features


def linear_flow_limit(features: Array, targets: Array, start: Array) -> Array:
    r"""Where gradient flow on the linear model ends: $\theta^F=\theta_0-\Phi K^+(\Phi^\top\theta_0-Y)$.

    It solves the normal equations $\Phi\Phi^\top\theta=\Phi Y$; the loss there is 0 only where Y lies in the row space of
    $\Phi$. What is orthogonal to the data stays as it started.

    >>> linear_flow_limit(np.array([[1.0], [0.0]]), np.array([3.0]), np.array([0.0, 7.0]))
    array([3., 7.])
    """
    real_values(start=start)
    finite_values(features=features, targets=targets, start=start)  # a decomposition of infinities does not end
    return np.asarray(start - np.linalg.pinv(features.T) @ (features.T @ start - targets))


def label_deformation(problem: QuadraticProblem, end: Array) -> Array:
    r"""$Y^I_\alpha=-\frac12\theta^{F\top}F_\alpha\theta^F$: a linear model on $Y+\epsilon Y^I$ ends as the quadratic one.

    Exact to first order within the span of the data. Differs from the source: which prints $Y+\Phi Y^I$.
    """
    return np.asarray(-0.5 * np.einsum("i,aij,j->a", end, problem.second_derivatives, end))


def parallel_correction(problem: QuadraticProblem, start: Array) -> Array:
    r"""$\Pi_\parallel\theta^I=(\Phi\Phi^\top)^+\Phi Y^I$, where the linear model interpolates.

    >>> one = QuadraticProblem(np.array([[1.0]]), np.array([[[2.0]]]), np.array([3.0]))
    >>> parallel_correction(one, np.zeros(1))  # theta + eps theta^2 = 3 at theta = 3 - 9 eps
    array([-9.])
    """
    limit = linear_flow_limit(problem.features, problem.targets, start)
    size = float(np.abs(problem.targets).max()) or 1.0
    largest = float(np.abs(problem.features.T @ limit - problem.targets).max()) / size
    if largest > FITS:
        raise InputError(
            f"expected targets that the linear model fits, got a residual of {largest:.2g} of them; "
            "minimizer_correction holds without interpolation"
        )
    return np.asarray(np.linalg.pinv(problem.features.T) @ label_deformation(problem, limit))


def minimizer_correction(problem: QuadraticProblem) -> Array:
    r"""$\theta^I=-A^{-1}\sum_\alpha[F_\alpha\theta^Fr_\alpha+\frac12\Phi_\alpha\,\theta^{F\top}F_\alpha\theta^F]$.

    For invertible $A=\Phi\Phi^\top$; $r_\alpha=\Phi_\alpha\cdot\theta^F-y_\alpha$ need not vanish. Where A is singular and
    residuals are not zero there is in general no minimizer near $\theta^F$. Differs from the source: which drops the term in r.
    """
    limit = linear_flow_limit(problem.features, problem.targets, np.zeros(len(problem.features)))
    A = problem.features @ problem.features.T
    if np.linalg.cond(A) > 1e12:
        raise InputError(
            "expected features that span the parameters, got a singular matrix; with residuals that are not zero there is in "
            "general no minimizer near the linear one; where there are none use parallel_correction"
        )
    r = problem.features.T @ limit - problem.targets
    pull = np.einsum("aij,j,a->i", problem.second_derivatives, limit, r)
    return np.asarray(-np.linalg.solve(A, pull - problem.features @ label_deformation(problem, limit)))


def perpendicular_correction(problem: QuadraticProblem, start: Array) -> Array:
    r"""$\theta^I_\perp(\infty)=-\Pi_\perp\sum_\alpha F_\alpha[\theta^F(K^{-1}r_0)_\alpha+\Phi K^{-1}Se_\alpha]$.

    $KS+SK=r_0r_0^\top$. What gradient flow from $\theta_0$ gains outside the span of the data: the integral of
    $-\sum_\alpha\Pi_\perp F_\alpha\theta_t\,r_\alpha(t)$ along the linear path, with $r_0=\Phi^\top\theta_0-Y$; no step size is
    in it. Differs from the source: which has $(I-e^{-tA})(\theta_0-\theta^F)$ in place of $\theta_t$.

    >>> features, curvatures = np.array([[1.0], [0.0]]), np.array([[[0.0, 1.0], [1.0, 0.0]]])
    >>> perpendicular_correction(QuadraticProblem(features, curvatures, np.array([2.0])), np.zeros(2))
    array([0., 2.])
    """
    phi, K = problem.features, problem.kernel
    limit = linear_flow_limit(phi, problem.targets, start)
    r0 = phi.T @ start - problem.targets
    S = solve_continuous_lyapunov(K, np.outer(r0, r0))
    along = np.outer(limit, np.linalg.solve(K, r0)) + phi @ np.linalg.solve(K, S)  # (D, m), one column a datum
    drift = np.einsum("aij,ja->i", problem.second_derivatives, along)
    return np.asarray(-_outside(phi) @ drift)


def feature_drift(
    second_derivative: Array, problem: QuadraticProblem, *, start: Array, time: float = np.inf, lr: float = 1.0
) -> Array:
    r"""$F(x)(I-e^{-\gamma t\Phi\Phi^\top})(\theta^F-\theta_0)$: by how much, over $\epsilon$, the features of x change by time t.

    Differs from the source: which has the opposite sign.
    """
    not_negative(lr=lr)
    within(0, np.inf, time=time)
    limit = linear_flow_limit(problem.features, problem.targets, start)
    values, vectors = np.linalg.eigh(problem.features @ problem.features.T)
    moved = np.where(values > 1e-12 * values.max(), 1.0, 0.0)
    if np.isfinite(time):
        moved = -np.expm1(-lr * time * np.clip(values, 0, None))
    return np.asarray(second_derivative @ (vectors @ (moved * (vectors.T @ (limit - start)))))


def _outside(features: Array) -> Array:
    return np.asarray(np.eye(len(features)) - features @ np.linalg.pinv(features))
