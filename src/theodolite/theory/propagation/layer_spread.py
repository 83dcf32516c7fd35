"""How far one random layer of finite width strays from the infinitely wide prediction."""

from __future__ import annotations

import math

from theodolite.theory import activation_of
from theodolite.theory.propagation.critical_points import Source
from theodolite.theory.propagation.signal_maps import next_variance


def signal_spread(
    activation: Source, variance: float, *, weight_variance: float, bias_variance: float, width: int, units: int
) -> float:
    r"""The standard deviation over random weights of $|z'|^2/m$ in a layer of m ``units`` behind ``width`` of variance K.

    $\sqrt{C_w^2(\langle\sigma^4\rangle-\langle\sigma^2\rangle^2)/n+2F(K)^2/m}$: the n units in front are a sample of
    their Gaussian, and given them the m units behind are independent Gaussians. Source: roberts2022, section 4.3.

    >>> round(signal_spread("identity", 1.0, weight_variance=1.0, bias_variance=0.0, width=100, units=100), 3)
    0.2
    """
    sigma = activation_of(activation)
    inside = weight_variance**2 * (sigma.fourth_moment(variance) - sigma.moment(variance) ** 2) / width
    mean = next_variance(sigma, variance, weight_variance=weight_variance, bias_variance=bias_variance)
    return math.sqrt(inside + 2 * mean**2 / units)


def correlation_spread(correlation: float, *, width: int, units: int) -> float:
    r"""About the standard deviation over random weights of a correlation c between two signals behind a layer.

    $(1-c^2)\sqrt{1/n+1/m}$: each of the two layers gives a sample correlation, whose standard deviation for n pairs of
    Gaussians is $(1-c^2)/\sqrt n$. Source: fisher1915.

    >>> correlation_spread(1.0, width=10, units=10)
    0.0
    """
    return (1 - correlation**2) * math.sqrt(1 / width + 1 / units)


def critical_band(critical: float, *, hidden_layers: int) -> tuple[float, float]:
    r"""The weight variances for which a signal changes by less than a factor e over the whole depth.

    $\chi\propto C_w$, and $|\ln\chi|\le1/L$ keeps $\chi^L$ between 1/e and e: $C_w^*e^{\pm1/L}$.

    >>> [round(end, 4) for end in critical_band(2.0, hidden_layers=10)]
    [1.8097, 2.2103]
    """
    half = math.exp(1 / hidden_layers)
    return critical / half, critical * half
