"""Signals in infinitely wide random networks: the maps of variance and covariance from layer to layer."""

import math
from functools import lru_cache

import numpy as np

from theodolite.core.checks import InputError, at_least, not_negative
from theodolite.theory import Activation, Mlp, activation_of
from theodolite.theory._closed_forms import geometric_mean
from theodolite.theory.propagation.critical_points import Source

Covariance = tuple[float, float, float]
"""The variances of two inputs and their covariance, $(K_{11},K_{22},K_{12})$."""


def next_variance(activation: Source, variance: float, *, weight_variance: float, bias_variance: float = 0.0) -> float:
    r"""The variance map $F(K)=C_b+C_w\langle\sigma^2\rangle_K$. Source: poole2016, equation 3.

    >>> next_variance("relu", 3.0, weight_variance=2.0)
    3.0
    """
    not_negative(weight_variance=weight_variance, bias_variance=bias_variance)
    return bias_variance + weight_variance * activation_of(activation).moment(variance)


def next_covariance(
    activation: Source, covariance: Covariance, *, weight_variance: float, bias_variance: float = 0.0
) -> Covariance:
    r"""The map of $(K_{11},K_{22},K_{12})$ to $C_b+C_wE\,\sigma(u)\sigma(v)$ for each pair. Source: poole2016, equation 5.

    >>> next_covariance("identity", (1.0, 2.0, 0.5), weight_variance=2.0, bias_variance=0.25)
    (2.25, 4.25, 1.25)
    """
    not_negative(weight_variance=weight_variance, bias_variance=bias_variance)
    sigma = activation_of(activation)
    K11, K22, K12 = covariance
    first = bias_variance + weight_variance * sigma.moment(K11)
    second = first if K11 == K22 else bias_variance + weight_variance * sigma.moment(K22)
    return first, second, bias_variance + weight_variance * sigma.covariance(K11, K22, K12)


def chi_parallel(activation: Source, variance: float, *, weight_variance: float) -> float:
    r"""$\chi_\parallel=C_wh_\parallel(K)=F'(K)$: by how much a change of the variance grows in a layer.

    >>> chi_parallel("relu", 1.0, weight_variance=2.0)
    1.0
    """
    not_negative(weight_variance=weight_variance)
    return weight_variance * activation_of(activation).curvature_moment(variance)


def chi_perpendicular(activation: Source, variance: float, *, weight_variance: float) -> float:
    r"""$\chi_\perp=C_w\langle\sigma'^2\rangle_K$: by how much a small difference of two inputs grows in a layer.

    Gradients grow by the same factor on their way back. Infinite where the activation jumps. Source: schoenholz2017, equation 5.

    >>> chi_perpendicular("tanh", 0.0, weight_variance=1.5)
    1.5
    """
    not_negative(weight_variance=weight_variance)
    return weight_variance * activation_of(activation).slope_moment(variance)


def first_covariance(spec: Mlp, first: object, second: object) -> Covariance:
    r"""The covariances of the first preactivations, $C_b+C_w\,x\cdot y/n_0$, for two input vectors.

    >>> first_covariance(Mlp(1, "relu", 2.0), [1.0, 0.0], [1.0, 1.0])
    (1.0, 2.0, 1.0)
    """
    x, y = np.asarray(first, dtype=np.float64).ravel(), np.asarray(second, dtype=np.float64).ravel()
    if x.shape != y.shape or x.size == 0:
        raise InputError(f"expected two input vectors of one length, got lengths {x.size} and {y.size}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise InputError("expected finite input vectors, got NaN or infinity among them")
    dots = [float(a @ b) / x.size for a, b in ((x, x), (y, y), (x, y))]
    C_w, C_b = spec.variances_of(1)[0]
    K11, K22, K12 = (C_b + C_w * dot for dot in dots)
    return K11, K22, K12


def variance_trajectory(spec: Mlp, variance: float, *, weight_layers: int | None = None) -> tuple[float, ...]:
    r"""$K^{(1)},K^{(2)},\dots$: the variance of each layer of preactivations, beginning with the one given.

    ``weight_layers`` defaults to the number of weight matrices. A variance that overflows stays infinite.

    >>> variance_trajectory(Mlp(2, "identity", 0.5), 1.0)
    (1.0, 0.5, 0.25)
    """
    found = [float(variance)]
    for C_w, C_b in _variances(spec, weight_layers)[1:]:
        last = found[-1]
        after = next_variance(spec.sigma, last, weight_variance=C_w, bias_variance=C_b) if last < LARGEST else math.inf
        found.append(after)
    return tuple(found)


LARGEST = 1e100


def _variances(spec: Mlp, weight_layers: int | None) -> tuple[tuple[float, float], ...]:
    at_least(1, weight_layers=weight_layers)
    return spec.variances_of(weight_layers)


def covariance_trajectory(
    spec: Mlp, covariance: Covariance, *, weight_layers: int | None = None
) -> tuple[Covariance, ...]:
    r"""$(K_{11},K_{22},K_{12})$ of each layer of preactivations, beginning with the one given.

    This is the recursion of the Gaussian process that a network becomes as its width grows. Source: lee2018. What is carried
    from layer to layer is $1-c$, so that the distance of nearly parallel inputs keeps its digits; a variance that overflows
    stays infinite.

    >>> covariance_trajectory(Mlp(1, "relu", 2.0), (1.0, 1.0, 1.0))
    ((1.0, 1.0, 1.0), (1.0, 1.0, 1.0))
    """
    K11, K22, K12 = covariance
    if not (K11 >= 0 and K22 >= 0 and abs(K12) <= geometric_mean(K11, K22) * (1 + 1e-9)):
        raise InputError(
            f"expected variances of at least 0 and |K12| of at most their root, got {covariance}; pass a covariance"
        )
    found = [covariance]
    state = covariance[0], covariance[1], _distance(covariance)
    for variances in _variances(spec, weight_layers)[1:]:
        if not max(state[:2]) < LARGEST:
            found.append((math.inf, math.inf, math.copysign(math.inf, 1 - state[2])))
            continue
        state = _next_apart(spec.sigma, variances, *state)
        found.append((state[0], state[1], geometric_mean(state[0], state[1]) * (1 - state[2])))
    return tuple(found)


def _distance(covariance: Covariance) -> float:
    r"""$1-c$ of two inputs; 1 where one has no variance."""
    K11, K22, K12 = covariance
    size = geometric_mean(K11, K22)
    return min(2.0, max(0.0, (size - K12) / size)) if size > 0 else 1.0


def _next_apart(sigma: Activation, variances: tuple[float, float], K11: float, K22: float, apart: float) -> Covariance:
    r"""The map of $(K_{11},K_{22},1-c)$: the last keeps its digits however alike two inputs become.

    $\sqrt{qq'}-(C_b+C_wk)$ is a sum of positive terms, and $\sqrt{E\sigma^2E\sigma'^2}-E\sigma\sigma'$ close to c = 1 the
    covariance of slopes half-way (Price) times the distance in k; for homogeneous functions it is known exactly.
    """
    C_w, C_b = variances
    first, second = sigma.moment(K11), sigma.moment(K22)
    size, inner = geometric_mean(K11, K22), geometric_mean(first, second)
    K = C_b + C_w * first, C_b + C_w * second
    whole = geometric_mean(*K)
    if whole == 0.0 or not math.isfinite(whole):
        return K[0], K[1], 1.0 if whole == 0.0 else 0.0
    if sigma.is_homogeneous:
        lost = size * _homogeneous_loss(sigma, apart)
    elif apart < CLOSE and math.isfinite(slope := sigma.slope_covariance(K11, K22, size * (1 - 0.5 * apart))):
        parallel = 0.0 if K11 == K22 else max(0.0, inner - sigma.covariance(K11, K22, size))
        lost = parallel + slope * size * apart
    else:
        lost = inner - sigma.covariance(K11, K22, size * (1 - apart))
    spread = C_b * C_w * (math.sqrt(first) - math.sqrt(second)) ** 2 / (whole + C_b + C_w * inner)
    return K[0], K[1], min(2.0, max(0.0, (spread + C_w * lost) / whole))


CLOSE = 1e-6


@lru_cache(maxsize=256)
def _slopes(sigma: Activation) -> tuple[float, float]:
    return sigma.slopes_at_zero()


def _homogeneous_loss(sigma: Activation, apart: float) -> float:
    r"""$(\sqrt{E\sigma^2E\sigma'^2}-E\sigma\sigma')/\sqrt{K_{11}K_{22}}$ of a function with one slope on each side of 0."""
    left, right = _slopes(sigma)
    theta = 2 * math.atan2(math.sqrt(apart), math.sqrt(2 - apart))
    u = theta * theta
    if theta < 0.3:
        bow = theta * u * (1 / 3 - u * (1 / 30 - u * (1 / 840 - u * (1 / 45360 - u * (1 / 3991680 - u / 518918400)))))
    else:
        bow = math.sin(theta) - theta * math.cos(theta)
    return right * left * apart + 0.5 * (right - left) ** 2 * (apart - bow / math.pi)


def covariance_jacobian(activation: Source, variance: float, *, weight_variance: float) -> tuple[Covariance, ...]:
    r"""The derivative of the map of $(K_{11},K_{22},K_{12})$ where all three are equal.

    Lower triangular, with $\chi_\parallel,\chi_\parallel,\chi_\perp$ on the diagonal and
    $\frac12(\chi_\parallel-\chi_\perp)$ twice in the last row. Infinite entries where the activation jumps.

    >>> covariance_jacobian("identity", 1.0, weight_variance=1.0)[2]
    (0.0, 0.0, 1.0)
    """
    not_negative(weight_variance=weight_variance)
    parallel = chi_parallel(activation, variance, weight_variance=weight_variance)
    perpendicular = chi_perpendicular(activation, variance, weight_variance=weight_variance)
    half = 0.5 * (parallel - perpendicular)
    return (parallel, 0.0, 0.0), (0.0, parallel, 0.0), (half, half, perpendicular)
