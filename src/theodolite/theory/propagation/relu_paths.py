r"""Gradients of random ReLU networks, exactly: at one input the gates are fair coins, whatever the weights' sizes.

Weights are continuous and symmetric about zero, of variance 2 over fan-in, also in the last layer; one output is looked at.
Biases do not matter as long as they are symmetric. $n_0$ inputs, hidden widths $n_1..n_L$.
"""

import math
from collections.abc import Sequence

import numpy as np

from theodolite.core.checks import InputError, at_least, each_at_least, finite, not_negative, within
from theodolite.theory._closed_forms import exponential

MODERATE = 3.0
"""A ratio of large to small gradients between draws that a tuned step size bears."""
MOST_LAYERS = 10**6
NINETY = 1.6448536269514722
"""The 95th percentile of a standard normal."""


def jacobian_second_moment(inputs: int) -> float:
    r"""$E(\partial z_q/\partial x_p)^2=2/n_0$, exactly, at any depth and widths.

    >>> jacobian_second_moment(4)
    0.5
    """
    at_least(1, inputs=inputs)
    return 2 / inputs


def jacobian_fourth_moment(inputs: int, widths: Sequence[int], *, kurtosis: float = 3.0) -> float:
    r"""$E(\partial z_q/\partial x_p)^4$: for Gaussian weights $\frac{12}{n_0^2}\prod_l(1+\frac5{n_l})$.

    For weights of another ``kurtosis`` $\mu$ a recursion of $A=E|v|^4$, $B=E\sum v_i^4$ over the layers of a signal v:
    $q=3A+(\mu-3)B$, $B'=s^2nq/2$, $A'=B'+s^2n(n-1)A/4$, $s=2/n_{l-1}$. Source: hanin2018.
    Differs from the source: exact, with its constant; there it is an exponential of $5\sum1/n_l$ up to constants.
    Infinite where a double cannot hold it.

    >>> round(jacobian_fourth_moment(4, (10, 10, 10)), 5)
    2.53125
    >>> round(jacobian_fourth_moment(4, (6, 6), kurtosis=1.8), 5)
    1.43283
    """
    at_least(1, inputs=inputs)
    each_at_least(1, widths=widths)
    not_negative(kurtosis=kurtosis)
    A = B = 1.0  # one unit of input
    fan_in, log = inputs, 0.0
    for n in widths:
        A, B = _gated(A, B, n, fan_in, kurtosis)
        A, B, log = 1.0, B / A, log + math.log(A)  # narrow layers multiply by up to 6 each: only the ratio is carried
        fan_in = n
    last = (2 / fan_in) ** 2 * (3 * A + (kurtosis - 3) * B)
    return exponential(log + math.log(last)) if last > 0 else 0.0


def gradient_second_moment(inputs: int, widths: Sequence[int], *, kurtosis: float = 3.0) -> float:
    r"""$E\|\nabla_xz_q\|^4/(E\|\nabla_xz_q\|^2)^2$: for Gaussian weights $(1+\frac2{n_0})\prod_l(1+\frac5{n_l})$.

    >>> round(gradient_second_moment(4, (10, 20)), 6)
    2.8125
    """
    at_least(1, inputs=inputs)
    each_at_least(1, widths=widths)
    finite(kurtosis=kurtosis)
    A = B = 1.0  # one unit of output, and backwards from it
    log = 0.0
    for n in reversed(widths):
        A, B = _gated(A, B, n, n, kurtosis)
        A, B, log = 1.0, B / A, log + math.log(A)
    q = 3 * A + (kurtosis - 3) * B
    last = (inputs * q + inputs * (inputs - 1) * A) / inputs**2
    return exponential(log + math.log(last)) if last > 0 else 0.0


def log_gradient_moments(
    inputs: int, widths: Sequence[int], *, entry: bool = False, on_probability: float = 0.5
) -> tuple[float, float]:
    r"""Mean and variance of $\ln r$, $r=\|\nabla_xz_q\|^2/E\|\nabla_xz_q\|^2$, for Gaussian weights.

    $r=\frac{\chi^2_{n_0}}{n_0}\prod_l\frac{2S_l}{n_l}$, where $S_l=\sum_{i\le n_l}\xi_ig_i^2$ is chi-squared
    with a binomial number of degrees of freedom; dead layers (S = 0) are left out. About a normal of
    mean $-\beta/2$, variance $\beta=5\sum1/n_l+2/n_0$. With ``entry`` of one derivative
    instead of the gradient: $\chi^2_1$ in place of $\chi^2_{n_0}/n_0$.
    ``on_probability`` is the chance that a unit is on: 1 for linear networks.
    Source: hanin2020products. Differs from the source: exact; lecture notes leave out the factor of the inputs.

    >>> mean, variance = log_gradient_moments(10, (20,) * 10)
    >>> round(mean, 3), round(variance, 3)
    (-1.475, 3.339)
    """
    at_least(1, inputs=inputs)
    each_at_least(1, widths=widths)
    within(0, 1, on_probability=on_probability)
    means, variances = zip(*(_log_factor(n, on_probability) for n in widths), strict=True) if widths else ((), ())
    first = _log_factor(1 if entry else inputs, 1.0)
    return sum(means) + first[0], sum(variances) + first[1]


def log_gradient_variance(inputs: int, widths: Sequence[int], *, kurtosis: float = 3.0) -> float:
    r"""The variance of $\ln\|\nabla_xz_q\|^2$ between draws; for weights of another kurtosis scaled as $\ln E\,r^2$ is.

    >>> round(log_gradient_variance(10, (20,) * 10), 3)
    3.339
    """
    at_least(1, inputs=inputs)
    each_at_least(1, widths=widths)
    finite(kurtosis=kurtosis)
    gauss = log_gradient_moments(inputs, widths)[1]
    if kurtosis == 3.0:
        return gauss
    ratio = math.log(gradient_second_moment(inputs, widths, kurtosis=kurtosis))
    return gauss * ratio / math.log(gradient_second_moment(inputs, widths))


def spread_factor(log_variance: float) -> float:
    r"""How many times larger the gradient's norm is at its 95th than at its 5th percentile, if $\ln\|\nabla\|^2$ is normal.

    >>> spread_factor(0.0)
    1.0
    """
    not_negative(log_variance=log_variance)
    return math.exp(NINETY * math.sqrt(log_variance))


def width_for_spread(hidden_layers: int, *, factor: float = MODERATE) -> int:
    """The least width of this many equal hidden layers at which they spread the gradient's norm by at most ``factor``.

    >>> width_for_spread(10), width_for_spread(50)
    (116, 565)
    """
    at_least(0, hidden_layers=hidden_layers)
    if not 1.01 <= factor <= 1e6 or hidden_layers > MOST_LAYERS:
        raise InputError(
            f"expected a factor from 1.01 to 1e6 and at most {MOST_LAYERS} hidden layers, got {factor} and {hidden_layers}"
        )
    low, high = 1, 2
    while spread_factor(hidden_layers * _log_factor(high, 0.5)[1]) > factor:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        wide = spread_factor(hidden_layers * _log_factor(middle, 0.5)[1]) <= factor
        low, high = (low, middle) if wide else (middle, high)
    return high


def spread_words(hidden_layers: int, width: float, log_variance: float, *, relu: bool = True) -> str:
    """What a log variance of gradients between draws means for a network of this shape, and how wide to make it.

    For ReLU the width is exact; for others it is scaled up from this one, as the variance falls as 1 over the width.
    """
    at_least(0, hidden_layers=hidden_layers)
    finite(width=width)
    not_negative(log_variance=log_variance)
    factor = spread_factor(log_variance)
    seen = (
        f"Between random initializations the size of a gradient varies by a factor of {factor:.3g} (5th to 95th percentile): "
        f"it grows exponentially with the root of depth over width, here {hidden_layers}/{width:.4g}."
    )
    if factor <= MODERATE:
        return f"{seen} One learning rate works for every seed."
    wide = (
        width_for_spread(hidden_layers)
        if relu
        else math.ceil(width * log_variance * (NINETY / math.log(MODERATE)) ** 2)
    )
    if wide <= width:
        return f"{seen} The layers are wide enough; the small number of inputs spreads it."
    return f"{seen} The stable learning rate will differ between seeds; widen to {wide}, use normalization or skip connections."


def _gated(A: float, B: float, n: int, fan_in: int, kurtosis: float) -> tuple[float, float]:
    """E|v|^4 and E sum v^4 behind a matrix of variance 2 / fan_in and n fair gates."""
    q, s2 = 3 * A + (kurtosis - 3) * B, (2 / fan_in) ** 2
    return s2 * (n * q / 2 + n * (n - 1) * A / 4), s2 * n * q / 2


def _log_factor(n: int, on: float) -> tuple[float, float]:
    r"""Mean and variance of $\ln(S/(n\,p))$, S chi-squared with Binomial(n, p) degrees of freedom, given that it is not 0."""
    from scipy.special import digamma, gammaln, polygamma

    if on == 1.0:
        k, weight = np.array([n]), np.array([1.0])
    else:
        half = 12 * math.sqrt(n * on * (1 - on)) + 2
        k = np.arange(max(1, math.floor(n * on - half)), min(n, math.ceil(n * on + half)) + 1)
        log = k * math.log(on) + (n - k) * math.log1p(-on) - gammaln(k + 1) - gammaln(n - k + 1)
        weight = np.exp(log - log.max())
        weight = weight / weight.sum()
    means = digamma(k / 2) + math.log(2 / (n * on))
    mean = float((weight * means).sum())
    return mean, float((weight * (polygamma(1, k / 2) + (means - mean) ** 2)).sum())
