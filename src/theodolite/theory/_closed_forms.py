"""Gaussian expectations that are known exactly: homogeneous functions, erf, sine, cosine, exponential, square, GELU."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

One = Callable[[float], float]
Two = Callable[[float, float, float], float]


@dataclass(frozen=True, kw_only=True)
class ClosedForm:
    """The exact expectations of one function; those that are None have no well-conditioned closed form."""

    moment: One
    slope_moment: One
    curvature_moment: One
    covariance: Two
    slope_covariance: Two
    fourth_moment: One | None = None
    moment_curvature: One | None = None
    homogeneous: bool = False


@dataclass(frozen=True, kw_only=True)
class Nonlinearity:
    """An elementwise function that torch has not, and its exact expectations where they are known."""

    function: Callable[[torch.Tensor], torch.Tensor]
    closed_form: ClosedForm | None = None


def exponential(x: float) -> float:
    """The exponential, infinite where it overflows."""
    return math.exp(x) if x < 709.0 else math.inf


def geometric_mean(a: float, b: float) -> float:
    """The root of the product: exactly ``a`` where both are ``a``, and safe where the product would overflow.

    >>> geometric_mean(2.0, 2.0)
    2.0
    """
    product = a * b
    return math.sqrt(product) if 1e-290 < product < 1e300 else math.sqrt(a) * math.sqrt(b)


def angle(K11: float, K22: float, K12: float) -> tuple[float, float]:
    r"""The angle $\theta$ between two Gaussians, $\cos\theta=K_{12}/\sqrt{K_{11}K_{22}}$, and $\sin\theta$.

    >>> angle(1.0, 4.0, 2.0)
    (0.0, 0.0)
    """
    scale = geometric_mean(K11, K22)
    if scale == 0.0:
        return math.pi / 2, 1.0
    cosine = K12 / scale
    sine = math.sqrt((1.0 - cosine) * (1.0 + cosine)) if abs(cosine) < 1 - 1e-15 else 0.0
    return math.atan2(sine, cosine), sine


def homogeneous(right: float, left: float) -> ClosedForm:
    r"""Positively homogeneous: $\sigma(z)=s_+z$ for $z>0$ and $s_-z$ for $z<0$; identity, ReLU, leaky ReLU, |z|.

    $E\sigma(u)\sigma(v)=s_+s_-K_{12}+(s_+-s_-)^2J$ with
    $2\pi J=\sqrt{K_{11}K_{22}}(\sin\theta+(\pi-\theta)\cos\theta)$. Source: cho2009, equation 6.

    >>> homogeneous(1.0, 0.0).covariance(1.0, 1.0, 1.0)
    0.5
    """
    square = 0.5 * (right**2 + left**2)
    product, gap = right * left, (right - left) ** 2

    def covariance(K11: float, K22: float, K12: float) -> float:
        theta, sine = angle(K11, K22, K12)
        scale = geometric_mean(K11, K22)
        return product * K12 + gap * (scale * sine + (math.pi - theta) * K12) / (2 * math.pi)

    def slope_covariance(K11: float, K22: float, K12: float) -> float:
        return product + gap * (math.pi - angle(K11, K22, K12)[0]) / (2 * math.pi)

    return ClosedForm(
        moment=lambda K: square * K,
        slope_moment=lambda K: square,
        curvature_moment=lambda K: square,
        fourth_moment=lambda K: 1.5 * K**2 * (right**4 + left**4),
        moment_curvature=lambda K: 0.0,
        covariance=covariance,
        slope_covariance=slope_covariance,
        homogeneous=True,
    )


def _erf_curvature(K: float) -> float:
    return -8 / math.pi * (1 / (1 + 2 * K) + 1 / (1 + 4 * K)) / ((1 + 2 * K) * math.sqrt(1 + 4 * K))


ERF = ClosedForm(  # Source: williams1997, equation 11
    moment=lambda K: 2 / math.pi * math.atan2(2 * K, math.sqrt(1 + 4 * K)),
    slope_moment=lambda K: 4 / math.pi / math.sqrt(1 + 4 * K),
    curvature_moment=lambda K: 4 / math.pi / ((1 + 2 * K) * math.sqrt(1 + 4 * K)),
    moment_curvature=_erf_curvature,
    covariance=lambda a, b, c: 2 / math.pi * math.atan2(2 * c, math.sqrt(1 + 2 * (a + b) + 4 * (a * b - c * c))),
    slope_covariance=lambda a, b, c: 4 / math.pi / math.sqrt(1 + 2 * (a + b) + 4 * (a * b - c * c)),
)


def _damped(K11: float, K22: float, K12: float) -> tuple[float, float]:
    """exp(-(K11 + K22) / 2) times the hyperbolic sine and cosine of K12, without overflow."""
    mean = 0.5 * (K11 + K22)
    if abs(K12) < 1.0:
        return math.exp(-mean) * math.sinh(K12), math.exp(-mean) * math.cosh(K12)
    up, down = exponential(K12 - mean), exponential(-K12 - mean)
    return 0.5 * (up - down), 0.5 * (up + down)


SINE = ClosedForm(
    moment=lambda K: -0.5 * math.expm1(-2 * K),
    slope_moment=lambda K: 0.5 * (1 + math.exp(-2 * K)),
    curvature_moment=lambda K: math.exp(-2 * K),
    moment_curvature=lambda K: -2 * math.exp(-2 * K),
    covariance=lambda a, b, c: _damped(a, b, c)[0],
    slope_covariance=lambda a, b, c: _damped(a, b, c)[1],
)

COSINE = ClosedForm(
    moment=lambda K: 0.5 * (1 + math.exp(-2 * K)),
    slope_moment=lambda K: -0.5 * math.expm1(-2 * K),
    curvature_moment=lambda K: -math.exp(-2 * K),
    moment_curvature=lambda K: 2 * math.exp(-2 * K),
    covariance=lambda a, b, c: _damped(a, b, c)[1],
    slope_covariance=lambda a, b, c: _damped(a, b, c)[0],
)

EXPONENTIAL = ClosedForm(
    moment=lambda K: exponential(2 * K),
    slope_moment=lambda K: exponential(2 * K),
    curvature_moment=lambda K: 2 * exponential(2 * K),
    fourth_moment=lambda K: exponential(8 * K),
    moment_curvature=lambda K: 4 * exponential(2 * K),
    covariance=lambda a, b, c: exponential(0.5 * (a + b) + c),
    slope_covariance=lambda a, b, c: exponential(0.5 * (a + b) + c),
)

SQUARE = ClosedForm(
    moment=lambda K: 3 * K * K,
    slope_moment=lambda K: 4 * K,
    curvature_moment=lambda K: 6 * K,
    fourth_moment=lambda K: 105 * K * K * K * K,
    moment_curvature=lambda K: 6.0,
    covariance=lambda a, b, c: a * b + 2 * c * c,
    slope_covariance=lambda a, b, c: 4 * c,
)


def _gelu_parts(K11: float, K22: float, K12: float) -> tuple[float, float, float]:
    r"""$\det(1+K)$, $E\Phi(u)\Phi(v)$ and $E\varphi(u)\varphi(v)$ for the normal density and distribution."""
    determinant = 1 + K11 + K22 + _gelu_rest(K11, K22, K12)
    root = math.sqrt(determinant)
    return determinant, 0.25 + math.atan2(K12, root) / (2 * math.pi), 1 / (2 * math.pi * root)


def _gelu_rest(K11: float, K22: float, K12: float) -> float:
    r"""$K_{11}K_{22}-K_{12}^2$ as a product, which keeps its digits and its sign."""
    size = geometric_mean(K11, K22)
    return max(0.0, size - K12) * (size + K12)


def _gelu_covariance(K11: float, K22: float, K12: float) -> float:
    _, both, density = _gelu_parts(K11, K22, K12)
    return K12 * both + density * (_gelu_rest(K11, K22, K12) + K12 * K12 * (1 / (1 + K11) + 1 / (1 + K22)))


def _gelu_slope_covariance(K11: float, K22: float, K12: float) -> float:
    determinant, both, density = _gelu_parts(K11, K22, K12)
    return both + density * K12 * (1 / (1 + K11) + 1 / (1 + K22) + 1 / determinant)


def _gelu_excess(K: float) -> float:
    r"""$\langle\sigma\sigma''\rangle_K$, which vanishes at $K=(3+\sqrt{17})/2$."""
    return K * (2 + 3 * K - K * K) / (2 * math.pi * (1 + K) ** 2 * (1 + 2 * K) * math.sqrt(1 + 2 * K))


GELU = ClosedForm(  # by Stein's lemma, E u f(u, v) = K11 E f_u + K12 E f_v
    moment=lambda K: _gelu_covariance(K, K, K),
    slope_moment=lambda K: _gelu_slope_covariance(K, K, K),
    curvature_moment=lambda K: _gelu_slope_covariance(K, K, K) + _gelu_excess(K),
    covariance=_gelu_covariance,
    slope_covariance=_gelu_slope_covariance,
)

CLOSED_FORMS = {"erf": ERF, "sin": SINE, "cos": COSINE, "exp": EXPONENTIAL, "quadratic": SQUARE, "gelu": GELU}
