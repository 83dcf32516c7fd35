r"""Stochastic gradients exactly: what a batch does to the gradient's mean and covariance, and what noise leaves in the end."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from theodolite.core.checks import InputError, at_least, not_negative
from theodolite.theory.dynamics.stationarity import Sampler

Array = np.ndarray[Any, np.dtype[np.float64]]


def batch_shares(samples: int, batch_size: int, sampler: Sampler) -> tuple[float, float]:
    r"""$\kappa_1,\kappa_2$ of $\langle g^Bg^{B\top}\rangle=\kappa_1\frac1m\sum g_kg_k^\top+\kappa_2\bar g\bar g^\top$.

    Of the gradient $g^B$ of a batch. Independent (each datum in the batch with probability B/m, divided by B):
    $\frac1B(1-\frac Bm),1$. Without replacement: $\kappa=\frac1B\frac{m-B}{m-1}$ and $1-\kappa$. With replacement:
    $\frac1B,1-\frac1B$.

    >>> batch_shares(4, 2, "independent"), batch_shares(4, 2, "with replacement")
    ((0.25, 1.0), (0.5, 0.5))
    """
    at_least(1, samples=samples, batch_size=batch_size)
    if batch_size > samples:
        raise InputError(f"expected a batch of 1 to {samples} samples, got {batch_size}")
    if sampler == "independent":
        return (1 - batch_size / samples) / batch_size, 1.0
    if sampler == "without replacement":
        share = (samples - batch_size) / (max(samples - 1, 1) * batch_size)
        return share, 1 - share
    if sampler == "with replacement":
        return 1 / batch_size, 1 - 1 / batch_size
    raise InputError(f"expected a sampler independent, without replacement or with replacement, got {sampler!r}")


def batch_covariance(gradients: Array, *, batch_size: int, sampler: Sampler) -> Array:
    r"""The covariance of the batch gradient, from the gradients (m, D) of single samples; its mean is theirs for every sampler.

    Independent sampling scatters about 0, not about the mean: $\frac1B(1-\frac Bm)\frac1m\sum g_kg_k^\top$. Samplers differ
    wherever $\nabla L\neq0$.

    >>> batch_covariance(np.array([[1.0], [3.0]]), batch_size=1, sampler="without replacement").item()
    1.0
    >>> batch_covariance(np.array([[1.0], [3.0]]), batch_size=1, sampler="independent").item()
    2.5
    """
    at_least(1, batch_size=batch_size)
    own, _ = batch_shares(len(gradients), batch_size, sampler)
    mean = gradients.mean(0)
    spread = gradients - mean  # taken off before squaring: a mean of 1e8 spreads leaves no digit of them after
    about_mean = own * spread.T @ spread / len(gradients)
    return np.asarray(about_mean + own * np.outer(mean, mean) if sampler == "independent" else about_mean)


@dataclass(frozen=True)
class Stationary:
    r"""Where SGD on linear regression comes to rest: its mean $\theta^*$, its covariance S, and both sides of the balance.

    ``pull`` is $\langle\theta\cdot\nabla L\rangle$, ``dissipation`` is $\frac\gamma2\langle|\nabla L^B|^2\rangle$; equal.
    """

    mean: Array
    covariance: Array
    pull: float
    dissipation: float


def stationary_regression(x: Array, y: Array, *, lr: float, batch_size: int, sampler: Sampler) -> Stationary:
    r"""The stationary moments of SGD on $\frac1{2m}\sum(x_k\cdot\theta-y_k)^2$, exact for steps of any size. Source: yaida2019.

    $HS+SH=\gamma[\kappa_1\frac1m\sum x_kx_k^\top(x_k^\top Sx_k+r_k^2)+\kappa_2HSH]$, linear in S.

    >>> one = stationary_regression(np.ones((2, 1)), np.array([-1.0, 1.0]), lr=1.0, batch_size=1, sampler="with replacement")
    >>> one.covariance.item(), one.pull == one.dissipation  # theta' = +-1, whatever theta
    (1.0, True)
    """
    m, D = x.shape
    own, mean_share = batch_shares(m, batch_size, sampler)
    H = x.T @ x / m
    if np.linalg.matrix_rank(x) < D:
        raise InputError(
            f"expected {D} independent features, got a rank of {np.linalg.matrix_rank(x)}; along what is left SGD never settles"
        )
    best = np.linalg.solve(H, x.T @ y / m)
    r = x @ best - y
    eye = np.eye(D)
    fourth = np.einsum("ki,kj,kp,kq->ijpq", x, x, x, x).reshape(D * D, D * D) / m
    kept = np.kron(H, eye) + np.kron(eye, H) - lr * (own * fourth + mean_share * np.kron(H, H))
    source = own * (x.T * r**2) @ x / m
    S = np.linalg.solve(kept, lr * source.ravel()).reshape(D, D)
    step = np.eye(D * D) - lr * kept
    if float(np.abs(np.linalg.eigvals(step)).max()) >= 1:
        raise InputError(f"expected a step at which second moments stay finite, got {lr}; take a smaller one")
    scatter = own * ((x.T * (np.einsum("ki,ij,kj->k", x, S, x) + r**2)) @ x / m) + mean_share * H @ S @ H
    return Stationary(best, S, float(np.trace(H @ S)), 0.5 * lr * float(np.trace(scatter)))


def quadratic_covariance(hessian: Array, noise_covariance: Array, *, lr: float) -> Array:
    r"""$\Sigma$ of $\theta'=\theta-\gamma(H\theta+\xi)$ in the end: $H\Sigma+\Sigma H-\gamma H\Sigma H=\gamma C$.

    C is the covariance of $\xi$. In the eigenbasis of H, $\Sigma_{ij}=\gamma C_{ij}/(h_i+h_j-\gamma h_ih_j)$.
    Source: mandt2017 (for small steps).

    >>> quadratic_covariance(np.array([[2.0]]), np.array([[1.0]]), lr=0.5)
    array([[0.25]])
    """
    not_negative(lr=lr)
    h, U = np.linalg.eigh(hessian)
    if not (lr * h.max() < 2 and h.min() > 0):
        raise InputError(f"expected curvatures between 0 and 2/lr = {2 / lr:g}, got {h.min():g} to {h.max():g}")
    rotated = U.T @ noise_covariance @ U
    return np.asarray(U @ (lr * rotated / (h[:, None] + h - lr * np.outer(h, h))) @ U.T)


def valley_fluctuation(curvature: float, *, lr: float, noise_to_curvature: float) -> float:
    r"""$\langle\bar\theta_i^2\rangle=\alpha\gamma/(2-\gamma h_i)$ for $L=\frac12\sum h_i\bar\theta_i^2$.

    For noise of covariance $\alpha\nabla^2L$, $\alpha$ = ``noise_to_curvature``.
    Nearly the same in every direction: $\alpha\gamma/2$. Source: wei2019.
    Differs from the source: which has $\alpha\gamma/4$, with $\lambda_i=h_i/2$ taken for the Hessian.

    >>> round(valley_fluctuation(1.0, lr=0.05, noise_to_curvature=0.3), 5)
    0.00769
    """
    not_negative(noise_to_curvature=noise_to_curvature)
    if not 0 <= lr * curvature < 2:
        raise InputError(f"expected a step below 2/curvature = {2 / curvature:g}, got {lr}")
    return noise_to_curvature * lr / (2 - lr * curvature)


def entropic_drift(trace_gradient: Array, *, lr: float, noise_to_curvature: float) -> float:
    r"""$-\frac{\alpha\gamma^2}4|\nabla\sum h_i|^2$: what noise adds a step to the Hessian's trace in a valley.

    For $L=\frac12\sum h_i(\hat\theta)\bar\theta_i^2$ with noise $\alpha\nabla^2_{\bar\theta}L$ across the valley, none along it,
    and ``trace_gradient`` $=\nabla_{\hat\theta}\sum h_i$. Source: wei2019. Differs from the source: which has half of it.

    >>> entropic_drift(np.array([2.0, 0.0]), lr=0.1, noise_to_curvature=0.5)
    -0.005000000000000001
    """
    not_negative(lr=lr, noise_to_curvature=noise_to_curvature)
    return -0.25 * noise_to_curvature * lr**2 * float(trace_gradient @ trace_gradient)


def circle_mass(sites: int) -> float:
    r"""The share of time that a walk on a circle of N sites spends where it steps by one and not by two, half of the circle each.

    $4N/(5N+4)$ for N a multiple of 4, $4(N-2)/(5(N-2)+4)$ for other even N; $\frac45$ as $N\to\infty$: the density of an Itô
    diffusion without drift is one over its variance. Source: wei2019. Differs from the source: which has $\sqrt2/(\sqrt2+1)$.

    >>> circle_mass(40) == 40 / 51
    True
    """
    if sites < 8 or sites % 2:
        raise InputError(f"expected an even number of at least 8 sites, got {sites}")
    n = sites if sites % 4 == 0 else sites - 2
    return 4 * n / (5 * n + 4)
