"""The variances of weights and biases at which signals neither explode nor vanish, whatever the depth."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import pairwise
from typing import Literal

import numpy as np
import torch

from theodolite.core.checks import InputError
from theodolite.theory import Activation, activation_of
from theodolite.theory._roots import root

_Kind = Literal["scale-invariant", "zero fixed point", "half-stable", "none"]
Source = str | Callable[[torch.Tensor], torch.Tensor] | Activation


UNSEEN = 1e-8
"""A relative difference of chi_par and chi_perp below this may be rounding (tiny variances, kinks far out)."""


@dataclass(frozen=True)
class Criticality:
    """A critical initialization; its numbers are None where there is none, and ``fixed_point`` where any variance is.

    ``reason`` is one sentence that says why.
    """

    weight_variance: float | None
    bias_variance: float | None
    fixed_point: float | None
    chi_parallel: float | None
    chi_perpendicular: float | None
    kind: _Kind
    reason: str


def criticality(activation: Source) -> Criticality:
    r"""Critical means $K^*=C_b+C_w\langle\sigma^2\rangle_{K^*}$ and $\chi_\parallel=\chi_\perp=1$ there, with $C_b\ge0$.

    Equivalently $\langle\sigma\sigma''\rangle_{K^*}=0$, $C_w=1/\langle\sigma'^2\rangle_{K^*}$ and
    $C_b=K^*-C_w\langle\sigma^2\rangle_{K^*}$. Four kinds:

    - scale-invariant: $\sigma$ is positively homogeneous, $C_b=0$, and every variance is a fixed point;
    - zero fixed point: $\sigma(0)=0$ with a slope there, $C_b=0$, $C_w=2/(\sigma'(0^-)^2+\sigma'(0^+)^2)$, and the
      variance decreases to 0 (were it to grow, as for GELU, this would be no criticality);
    - half-stable: $K^*>0$, found as a root of $\langle\sigma\sigma''\rangle$ by bracketing. Iterating the variance map
      instead finds a neighboring fixed point (3.035 for GELU, whose critical one is 3.562). Of several roots the
      smallest counts;
    - none: the numbers are None.

    Source: roberts2022, chapter 5.

    >>> point = criticality("gelu")
    >>> round(point.weight_variance, 8), round(point.bias_variance, 8), round(point.fixed_point, 8)
    (1.98305826, 0.17292239, 3.56155281)
    """
    return _criticality(activation_of(activation))


@lru_cache(maxsize=256)
def _criticality(sigma: Activation) -> Criticality:
    if sigma.is_homogeneous:
        return _scale_invariant(sigma)
    if sigma.jumps():
        places = ", ".join(f"{place:.4g}" for place in sigma.jumps()[:3])
        return _none(f"{sigma.name} jumps (at z = {places}), so the mean square of its slope is infinite.")
    return _zero_fixed_point(sigma) or _half_stable(sigma)


def _none(reason: str) -> Criticality:
    return Criticality(None, None, None, None, None, "none", reason)


def _scale_invariant(sigma: Activation) -> Criticality:
    slope = sigma.slope_moment(1.0)
    if slope == 0.0:
        return _none(f"{sigma.name} is zero everywhere: no signal passes.")
    reason = f"{sigma.name} is positively homogeneous, so with C_w = {1 / slope:.7g} every variance is a fixed point."
    return Criticality(1 / slope, 0.0, None, 1.0, 1.0, "scale-invariant", reason)


def _zero_fixed_point(sigma: Activation) -> Criticality | None:
    left, right = sigma.slopes_at_zero()
    slope = 0.5 * (left**2 + right**2)
    if abs(sigma.mean(0.0)) > 1e-14 or slope < 1e-12:
        return None
    growth = [sigma.moment(K) / (slope * K) - 1 for K in np.geomspace(1e-6, 1.0, 37).tolist()]
    seen = [value for value in growth if abs(value) > 1e-10]
    if not seen or seen[0] > 0:  # the smallest variance at which the map is seen to bend decides
        return None
    reason = (
        f"{sigma.name} is 0 at 0 with a slope there and damps larger signals, so at C_w = {1 / slope:.7g} the variance falls "
        "as a power of depth at most, not exponentially."
    )
    return Criticality(1 / slope, 0.0, 0.0, 1.0, 1.0, "zero fixed point", reason)


def _half_stable(sigma: Activation) -> Criticality:
    grid = np.geomspace(1e-4, 1e4, 129).tolist()
    finite = [(K, value) for K in grid if math.isfinite(value := _excess(sigma, K))]
    clear = [(K, value) for K, value in finite if abs(value) > UNSEEN]
    if not finite:
        return _none(f"The slope of {sigma.name} is zero almost everywhere, or its square too large: χ⊥ is never 1.")
    if not clear:
        found = _critical_at(sigma, 1.0)
        said = f"{sigma.name} bends only where it is 0, so χ∥ = χ⊥ at every variance"
        return replace(found, reason=f"{said}; K* = 1 stands for all of them.") if found else _none(f"{said}, never 1.")
    refused = []
    for (low, before), (high, after) in pairwise(clear):
        if before * after < 0:
            place = root(partial(_excess, sigma), low, high, xtol=1e-13 * low)
            found = _critical_at(sigma, place)
            if found is not None:
                return found
            refused.append(f"{place:.4g}")
    if refused:
        return _none(f"For {sigma.name} χ∥ = χ⊥ = 1 only at K = {', '.join(refused)}, with C_b < 0.")
    sign, order = ("negative", "below") if clear[0][1] < 0 else ("positive", "above")
    bias = 1.0 - sigma.moment(1.0) / sigma.slope_moment(1.0)
    extra = f"; with χ⊥ = 1 at K = 1 it would also take C_b = {bias:.3g} < 0" if bias < 0 else ""
    return _none(
        f"For {sigma.name} the mean of σσ″ is {sign} at every variance, so χ∥ stays {order} χ⊥ and "
        f"they are never both 1{extra}."
    )


def _excess(sigma: Activation, K: float) -> float:
    r"""$\langle\sigma\sigma''\rangle_K$ over $\langle\sigma'^2\rangle_K$."""
    slope = sigma.slope_moment(K)
    return (sigma.curvature_moment(K) - slope) / slope if 0 < slope < math.inf else math.nan


def _critical_at(sigma: Activation, K: float) -> Criticality | None:
    slope = sigma.slope_moment(K)
    if slope == 0.0:
        return None
    weight = 1 / slope
    bias = K - weight * sigma.moment(K)
    if bias < -1e-10 * K:
        return None
    reason = (
        f"At K* = {K:.7g} the mean of σσ″ vanishes for {sigma.name}, so χ∥ = χ⊥ = 1 with "
        f"C_w = {weight:.7g} and C_b = {bias:.7g}; the fixed point attracts from one side only."
    )
    chi = weight * sigma.curvature_moment(K)
    return Criticality(weight, max(bias, 0.0), K, chi, 1.0, "half-stable", reason)


@dataclass(frozen=True)
class Decay:
    r"""How the variance dies at a zero fixed point, $K^{(l)}\sim$ ``coefficient`` $/\,l^{\,exponent}$.

    ``exponent`` is 0 and the coefficient infinite where it dies more slowly than any power (hard tanh).
    """

    coefficient: float
    exponent: int


def critical_decay(activation: Source) -> Decay:
    r"""With $C_b=0$ and $C_w$ critical, $K^{(l)}\sim1/(a_1l)$, or $\sim A/l^2$ where the second derivative jumps at 0.

    Smooth: $a_1=-(\sigma_3/\sigma_1+\frac34(\sigma_2/\sigma_1)^2)$ with $\sigma_k=\sigma^{(k)}(0)$. Else with one-sided
    $s_\pm=\sigma'(0^\pm)$, $q_\pm=\sigma''(0^\pm)$ the map is $K-bK^{3/2}$,
    $b=-C_w\sqrt{2/\pi}(s_+q_+-s_-q_-)$, and $A=4/b^2$. Source: roberts2022, section 5.3.3, for the smooth case.

    >>> critical_decay("tanh")
    Decay(coefficient=0.5, exponent=1)
    >>> critical_decay("elu").exponent
    2
    """
    sigma = activation_of(activation)
    point = criticality(sigma)
    if point.kind != "zero fixed point" or point.weight_variance is None:
        raise InputError(
            f"expected an activation with a zero fixed point, got {sigma.name}, whose kind is {point.kind}"
        )
    _, slopes, bends, thirds = sigma.derivatives_at_zero(order=3)
    half = -point.weight_variance * math.sqrt(2 / math.pi) * (slopes[1] * bends[1] - slopes[0] * bends[0])
    if half > 1e-12:
        return Decay(4 / half**2, 2)
    whole = (
        -point.weight_variance * 0.5 * sum(s * t + 0.75 * q * q for s, q, t in zip(slopes, bends, thirds, strict=True))
    )
    return Decay(1 / whole, 1) if whole > 1e-12 else Decay(math.inf, 0)
