"""How far one random layer of finite width strays from the infinitely wide prediction."""

import math

from theodolite.core.checks import at_least, not_negative
from theodolite.theory import activation_of
from theodolite.theory.propagation.critical_points import Source
from theodolite.theory.propagation.signal_maps import next_variance


def signal_spread(
    activation: Source, variance: float, *, weight_variance: float, bias_variance: float, width: int, units: int
) -> float:
    r"""The standard deviation over random weights of $|z'|^2/m$ in a layer of m ``units`` behind ``width`` of variance K.

    $\sqrt{V(1+2/m)+2F(K)^2/m}$ with $V=C_w^2(\langle\sigma^4\rangle-\langle\sigma^2\rangle^2)/n$: the n units in front are
    a sample of their Gaussian, which gives S of mean F and variance V; given them the m units behind are independent Gaussians
    of variance S, and their mean square has the variance $2S^2/m$. Exact for Gaussian units in front. Source: roberts2022,
    section 4.3. Differs from the source: its leading order leaves $2V/m$ out.

    >>> round(signal_spread("identity", 1.0, weight_variance=1.0, bias_variance=0.0, width=100, units=100), 3)
    0.201
    """
    not_negative(weight_variance=weight_variance, bias_variance=bias_variance)
    at_least(1, width=width, units=units)
    sigma = activation_of(activation)
    inside = weight_variance**2 * (sigma.fourth_moment(variance) - sigma.moment(variance) ** 2) / width
    mean = next_variance(sigma, variance, weight_variance=weight_variance, bias_variance=bias_variance)
    return math.sqrt(inside + 2 * (mean**2 + inside) / units)


def correlation_spread(correlation: float, *, width: int, units: int) -> float:
    r"""About the standard deviation over random weights of a correlation c between two signals behind a layer.

    $(1-c^2)\sqrt{s+\frac{11}2c^2s^2-\frac3{nm}}$ with $s=1/n+1/m$: each of the two layers gives a sample correlation r of n
    pairs, with $E\,r=c-c(1-c^2)/2n$ and variance $(1-c^2)^2(1+11c^2/2n)/n$. Put one behind the other, to second order, they make
    this. Source: fisher1915.

    >>> correlation_spread(1.0, width=10, units=10)
    0.0
    """
    at_least(1, width=width, units=units)
    total = 1 / width + 1 / units
    less = min(3 / (width * units), total / 2)  # a few units: second order says less than nothing
    return (1 - correlation**2) * math.sqrt(total + 5.5 * correlation**2 * total**2 - less)


def critical_band(critical: float, *, hidden_layers: int) -> tuple[float, float]:
    r"""The weight variances for which a signal changes by less than a factor e over the whole depth.

    $\chi\propto C_w$, and $|\ln\chi|\le1/L$ keeps $\chi^L$ between 1/e and e: $C_w^*e^{\pm1/L}$.

    >>> [round(end, 4) for end in critical_band(2.0, hidden_layers=10)]
    [1.8097, 2.2103]
    """
    at_least(1, hidden_layers=hidden_layers)
    half = math.exp(1 / hidden_layers)
    return critical / half, critical * half
