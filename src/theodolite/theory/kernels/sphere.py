r"""Gram matrices of random features on the sphere: $E\,\sigma(w\cdot x)\sigma(w\cdot x')=\sum_j\sigma_j^2(x\cdot x')^j$."""

import math

import numpy as np
import torch
from numpy.typing import NDArray

from theodolite.core.checks import InputError, real_values
from theodolite.theory import activation_of
from theodolite.theory._quadrature import filled, panel_nodes
from theodolite.theory.kernels._duals.maps import Pairs
from theodolite.theory.kernels._map_sequences import dual_of
from theodolite.theory.propagation.critical_points import Source

Array = NDArray[np.float64]
EDGE = 14.0


def hermite_coefficients(activation: Source, *, order: int) -> Array:
    r"""$\sigma_0,\dots,\sigma_J$ of $\sigma(t)=\sum_j\sigma_jHe_j(t)/\sqrt{j!}$, by panels of Gauss-Legendre nodes.

    Panels meet at every kink and jump, wherever it lies. Source: schoenberg1942 for the use.

    >>> hermite_coefficients("relu", order=3).round(6).tolist()
    [0.398942, 0.5, 0.282095, 0.0]
    """
    if order < 0:
        raise InputError(f"expected an order of at least 0, got {order}; 0 asks for the mean alone")
    sigma = activation_of(activation)
    edges = np.concatenate([[-EDGE], sigma._resolution.edges(EDGE), sigma._resolution.breaks(EDGE), [0.0, EDGE]])
    edges = filled(np.unique(edges), min(0.25, 4 / math.sqrt(order + 1)))
    nodes, weights = panel_nodes(edges[:-1], edges[1:])
    t = nodes.ravel()
    weight = weights.ravel() * np.exp(-0.5 * t * t) / math.sqrt(2 * math.pi)
    values = sigma._values(t) * weight
    found = np.empty(order + 1)
    before, now = np.zeros_like(t), np.ones_like(t)  # He_j / sqrt(j!), by its three-term recursion
    for j in range(order + 1):
        found[j] = values @ now
        before, now = now, (t * now - math.sqrt(j) * before) / math.sqrt(j + 1)
    return np.where(np.abs(found) < 1e-14, 0.0, found)


def sphere_gram(activation: Source, x: Array, *, order: int | None = None) -> Array:
    r"""$G_{\alpha\beta}=E\,\sigma(w\cdot x_\alpha)\sigma(w\cdot x_\beta)$, w Gaussian, for rows of unit norm.

    Exact by default, also for rows that are nearly parallel. With an ``order`` the series is cut behind it, on the diagonal
    too: a cut beside an exact diagonal would lift the least eigenvalue.

    >>> sphere_gram("identity", np.eye(2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    real_values(x=x)
    rows = _unit_rows(x)
    if order is not None:
        dots = np.clip(rows @ rows.T, -1.0, 1.0)
        np.fill_diagonal(dots, 1.0)
        gram = np.zeros_like(dots)
        for square in (hermite_coefficients(activation, order=order) ** 2)[::-1]:
            gram = gram * dots + square
        return gram
    sigma, points = activation_of(activation), torch.from_numpy(rows)
    less = torch.stack([0.5 * (points - row).square().sum(1) for row in points])
    more = torch.stack([0.5 * (points + row).square().sum(1) for row in points])
    ones = torch.ones_like(less)
    less, more = torch.where(less < 1, less, 2 - more), torch.where(less < 1, 2 - less, more)
    exact = dual_of(sigma, 1.0, 1.0).pairs(Pairs(ones, ones, less, more))[0].numpy()
    np.fill_diagonal(exact, sigma.moment(1.0))
    return np.asarray(0.5 * (exact + exact.T))


def _unit_rows(x: Array) -> Array:
    rows = np.asarray(x, dtype=np.float64)
    if rows.ndim != 2 or rows.size == 0:
        raise InputError(f"expected points as the rows of a matrix, (n, d), got shape {rows.shape}")
    norms = np.linalg.norm(rows, axis=1)
    if not np.abs(norms - 1).max() <= 1e-6:
        raise InputError(
            f"expected rows of unit norm, got norms from {norms.min():.6g} to {norms.max():.6g}; divide each row by its norm"
        )
    return np.asarray(rows / norms[:, None])


def sphere_gram_rank(activation: Source, x: Array, *, order: int = 24) -> int:
    r"""The rank of the Gram matrix: that of all monomials in the rows whose order has a coefficient $\sigma_j\neq0$.

    Full for generic points when $\sigma$ is no polynomial; points x and -x cost a rank each where only one parity (or too
    few orders of the other) has coefficients.

    >>> sphere_gram_rank("tanh", np.array([[1.0, 0.0], [-1.0, 0.0]]))
    1
    """
    real_values(x=x)
    x = _unit_rows(x)
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
    real_values(x=x)
    x = _unit_rows(x)
    squares = hermite_coefficients(activation, order=order) ** 2
    dots = np.clip(x @ x.T, -1.0, 1.0)
    np.fill_diagonal(dots, 1.0)
    delta = float(np.abs(dots - np.eye(len(x))).max())
    schur = sum(float(s * max(0.0, np.linalg.eigvalsh(dots**k)[0])) for k, s in enumerate(squares) if s > 0)
    single = max(float(s * (1 - (len(x) - 1) * delta**k)) for k, s in enumerate(squares))
    return schur, single
