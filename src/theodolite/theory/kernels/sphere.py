r"""Gram matrices of random features on the sphere: $E\,\sigma(w\cdot x)\sigma(w\cdot x')=\sum_j\sigma_j^2(x\cdot x')^j$."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from theodolite.theory import activation_of
from theodolite.theory.propagation.critical_points import Source

Array = NDArray[np.float64]
EDGE, PANELS, NODES = 14.0, 112, 20


def hermite_coefficients(activation: Source, *, order: int) -> Array:
    r"""$\sigma_0,\dots,\sigma_J$ of $\sigma(t)=\sum_j\sigma_jHe_j(t)/\sqrt{j!}$, by panels of Gauss-Legendre nodes.

    Panels meet at 0, where activations have their kinks. Source: schoenberg1942 for the use.

    >>> hermite_coefficients("relu", order=3).round(6).tolist()
    [0.398942, 0.5, 0.282095, 0.0]
    """
    sigma = activation_of(activation)
    x, w = np.polynomial.legendre.leggauss(NODES)
    edges = np.linspace(-EDGE, EDGE, PANELS + 1)
    half = 0.5 * (edges[1] - edges[0])
    t = (edges[:-1, None] + half * (x + 1)).ravel()
    weight = np.tile(half * w, PANELS) * np.exp(-0.5 * t * t) / math.sqrt(2 * math.pi)
    values = sigma._values(t) * weight
    found = np.empty(order + 1)
    before, now = np.zeros_like(t), np.ones_like(t)  # He_j / sqrt(j!), by its three-term recursion
    for j in range(order + 1):
        found[j] = values @ now
        before, now = now, (t * now - math.sqrt(j) * before) / math.sqrt(j + 1)
    return np.where(np.abs(found) < 1e-14, 0.0, found)


def sphere_gram(activation: Source, x: Array, *, order: int = 60) -> Array:
    r"""$G_{\alpha\beta}=\sum_{j\leq J}\sigma_j^2(x_\alpha\cdot x_\beta)^j$ for rows of unit norm.

    The diagonal is $\langle\sigma^2\rangle_1$, without the error of cutting the series.

    >>> sphere_gram("identity", np.eye(2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    squares = hermite_coefficients(activation, order=order) ** 2
    dots = np.clip(x @ x.T, -1.0, 1.0)
    gram = np.zeros_like(dots)
    for square in squares[::-1]:
        gram = gram * dots + square
    np.fill_diagonal(gram, activation_of(activation).moment(1.0))
    return gram


def sphere_gram_rank(activation: Source, x: Array, *, order: int = 24) -> int:
    r"""The rank of the Gram matrix: that of all monomials in the rows whose order has a coefficient $\sigma_j\neq0$.

    Full for generic points when $\sigma$ is no polynomial; points x and -x cost a rank each where only one parity (or too
    few orders of the other) has coefficients.

    >>> sphere_gram_rank("tanh", np.array([[1.0, 0.0], [-1.0, 0.0]]))
    1
    """
    coefficients = hermite_coefficients(activation, order=order)
    dots = np.clip(x @ x.T, -1.0, 1.0)
    whole = sum((dots**j for j, c in enumerate(coefficients) if abs(c) > 1e-10), np.zeros_like(dots))
    values = np.linalg.eigvalsh(whole)
    return int((values > 1e-9 * values[-1]).sum())


def smallest_eigenvalue_bounds(activation: Source, x: Array, *, order: int = 60) -> tuple[float, float]:
    r"""Two lower bounds of $\lambda_{\min}(G)$: $\sum_k\sigma_k^2\lambda_{\min}((XX^\top)^{\circ k})$ and the best single k's.

    By Schur's product theorem every Hadamard power is positive semidefinite; of a single one,
    $\lambda_{\min}\geq1-(m-1)\delta^k$ with $\delta=\max_{\alpha\neq\beta}|x_\alpha\cdot x_\beta|$. Source: du2019.

    >>> smallest_eigenvalue_bounds("identity", np.eye(3))
    (1.0, 1.0)
    """
    squares = hermite_coefficients(activation, order=order) ** 2
    dots = np.clip(x @ x.T, -1.0, 1.0)
    np.fill_diagonal(dots, 1.0)
    delta = float(np.abs(dots - np.eye(len(x))).max())
    schur = sum(float(s * max(0.0, np.linalg.eigvalsh(dots**k)[0])) for k, s in enumerate(squares) if s > 0)
    single = max(float(s * (1 - (len(x) - 1) * delta**k)) for k, s in enumerate(squares))
    return schur, single
