"""Spectra of noise (Marchenko-Pastur, its edge, spikes above it) and of power laws (two exponents, condition numbers)."""

import math
from functools import lru_cache
from typing import Any

import numpy as np

from theodolite.core.checks import InputError, at_least, positive, real_values, within

TRACY_WIDOM = (46.446, 0.186054, 9.84801)
"""Shape, scale and shift of the gamma law that approximates Tracy-Widom's for real matrices. Source: chiani2014."""


def marchenko_pastur_edges(ratio: float, *, variance: float = 1.0) -> tuple[float, float]:
    r"""The ends $v(1\mp\sqrt q)^2$ of the spectrum of $X^\top X/n$, X of n by p entries of variance v, $q=p/n$.

    Source: marchenko1967.

    >>> marchenko_pastur_edges(0.25)
    (0.25, 2.25)
    """
    within(0, math.inf, variance=variance)  # squares of stored weights may overflow
    _check(ratio)
    return variance * (1 - math.sqrt(ratio)) ** 2, variance * (1 + math.sqrt(ratio)) ** 2


def marchenko_pastur_density(eigenvalue: Any, ratio: float, *, variance: float = 1.0) -> Any:
    r"""$\sqrt{(\lambda_+-x)(x-\lambda_-)}/(2\pi vqx)$ between the edges; for $q>1$ a mass $1-1/q$ at 0 comes beside it.

    Source: marchenko1967.

    >>> round(float(marchenko_pastur_density(1.0, 1.0)), 6) == round(math.sqrt(3) / (2 * math.pi), 6)
    True
    """
    real_values(eigenvalue=eigenvalue)
    if not variance > 0:
        raise InputError(f"expected a positive variance, got {variance}; all mass is then at 0")
    low, high = marchenko_pastur_edges(ratio, variance=variance)
    eigenvalue = np.asarray(eigenvalue, dtype=np.float64)
    inside = np.clip((high - eigenvalue) * (eigenvalue - low), 0.0, None)
    return np.sqrt(inside) / (2 * math.pi * variance * ratio * np.where(eigenvalue > 0, eigenvalue, np.inf))


def marchenko_pastur_cdf(eigenvalue: Any, ratio: float, *, variance: float = 1.0) -> Any:
    r"""The share of eigenvalues up to x, in closed form; for $q>1$ zeros count, $F_q(x)=1-1/q+F_{1/q}(x/q)/q$.

    >>> [round(float(F), 4) for F in marchenko_pastur_cdf([0.0, 1.0, 4.0], 1.0)]
    [0.0, 0.609, 1.0]
    """
    within(0, math.inf, variance=variance)  # squares of stored weights may overflow
    real_values(eigenvalue=eigenvalue)
    _check(ratio)
    eigenvalue = np.asarray(eigenvalue, dtype=np.float64) / variance
    if ratio > 1:
        inner = 1 - 1 / ratio + marchenko_pastur_cdf(eigenvalue / ratio, 1 / ratio) / ratio
        return np.where(eigenvalue < 0, 0.0, inner)
    low, high = marchenko_pastur_edges(ratio)
    y = np.clip(eigenvalue, low, high)
    angle = 2 * np.arctan2(np.sqrt(y - low), np.sqrt(high - y))  # x = 1 + q - 2 sqrt(q) cos(angle)
    inner = (angle + _angle_terms(angle, math.sqrt(ratio))) / math.pi
    return np.where(eigenvalue <= low, 0.0, np.where(eigenvalue >= high, 1.0, inner))


def _angle_terms(angle: Any, root: float) -> Any:
    r"""$\sum_{j\geq1}\frac{r^j}j\sin j\theta-\frac1{r^2}\sum_{j\geq2}\frac{r^j}j\sin j\theta$, r the root of the ratio.

    $\int_0^\theta\frac{2\sin^2\phi\,d\phi}{1+r^2-2r\cos\phi}-\theta$, in closed form unless that cancels.
    """
    if root > 0.1:
        whole = np.arctan2(root * np.sin(angle), (1 - root) + 2 * root * np.sin(angle / 2) ** 2)
        return np.sin(angle) / root - whole * (1 - root**2) / root**2
    double, last, before = 2 * np.cos(angle), 0.0, 0.0
    for j in range(16, 0, -1):  # Clenshaw's recurrence for a sum of sines; 0.1**16 is below rounding
        here = (root**j if j < 15 else 0.0) / j - (root ** (j - 2) / j if j > 1 else 0.0)
        last, before = here + double * last - before, last
    return last * np.sin(angle)


def marchenko_pastur_moment(order: int, ratio: float) -> float:
    r"""$m_k=\sum_{r<k}\frac{q^r}{r+1}\binom kr\binom{k-1}r$: 1, 1, 1+q, 1+3q+q^2, ... at unit variance.

    >>> [marchenko_pastur_moment(k, 0.5) for k in range(4)]
    [1.0, 1.0, 1.5, 2.75]
    """
    at_least(0, order=order)
    terms = (ratio**r / (r + 1) * math.comb(order, r) * math.comb(order - 1, r) for r in range(order))
    return float(sum(terms)) if order else 1.0


def marchenko_pastur_quantile(probability: float, ratio: float) -> float:
    """The value that a share ``probability`` of the eigenvalues does not exceed, at unit variance.

    >>> round(marchenko_pastur_quantile(0.609, 1.0), 3)
    1.0
    """
    if not 0 <= probability <= 1:
        raise InputError(f"expected a probability, got {probability}; pass a number from 0 to 1")
    if ratio > 1 and probability <= 1 - 1 / ratio:
        return 0.0
    low, high = marchenko_pastur_edges(ratio)
    if probability in (0.0, 1.0):
        return high if probability else low
    return float(_quantiles(np.array([probability]), ratio)[0])


def _quantiles(probabilities: Any, ratio: float) -> Any:
    """The quantiles of several probabilities between 0 and 1 at once, by halving."""
    wanted = np.asarray(probabilities, dtype=np.float64)
    low, high = (np.full(wanted.shape, edge) for edge in marchenko_pastur_edges(ratio))
    for _ in range(60):
        middle = 0.5 * (low + high)
        less = marchenko_pastur_cdf(middle, ratio) < wanted
        low, high = np.where(less, middle, low), np.where(less, high, middle)
    return 0.5 * (low + high)


def noise_edge(rows: int, columns: int, *, variance: float = 1.0) -> tuple[float, float]:
    r"""Where the largest eigenvalue of $W^\top W$ lies for noise of this shape, and the scale of its fluctuation.

    $\mu=v(\sqrt{n-\frac12}+\sqrt{p-\frac12})^2$ and $s=\sqrt{v\mu}(1/\sqrt{n-\frac12}+1/\sqrt{p-\frac12})^{1/3}$:
    $(\lambda_{\max}-\mu)/s$ has the Tracy-Widom law, of mean -1.2065. Source: johnstone2001; ma2012 (the halves).

    >>> [round(value, 2) for value in noise_edge(400, 100)]
    [897.75, 15.93]
    """
    at_least(1, rows=rows, columns=columns)
    within(0, math.inf, variance=variance)  # squares of stored weights may overflow
    a, b = math.sqrt(rows - 0.5), math.sqrt(columns - 0.5)
    return variance * (a + b) ** 2, variance * (a + b) * (1 / a + 1 / b) ** (1 / 3)


def tracy_widom_cdf(value: float) -> float:
    """The Tracy-Widom distribution of real matrices, right to 0.002 by a shifted gamma law. Source: chiani2014.

    One less its value at the scaled largest eigenvalue is the p-value of "nothing but noise".

    >>> round(tracy_widom_cdf(0.9793), 3)
    0.95
    """
    from scipy.special import gammainc

    shape, scale, shift = TRACY_WIDOM
    return float(gammainc(shape, max(value + shift, 0.0) / scale))


def tracy_widom_quantile(probability: float) -> float:
    """The inverse of `tracy_widom_cdf`; infinite at 1.

    >>> round(tracy_widom_quantile(0.99), 1)
    2.0
    """
    within(0, 1, probability=probability)
    _, scale, shift = TRACY_WIDOM
    return math.inf if probability == 1 else _gamma_quantile(probability) * scale - shift


@lru_cache(maxsize=256)
def _gamma_quantile(probability: float) -> float:
    """That of the gamma law of the shape above, by halving its series: no library is worth loading for two numbers a shape."""
    low, high = 0.0, 400.0
    for _ in range(70):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _gamma_cdf(middle) < probability else (low, middle)
    return 0.5 * (low + high)


def _gamma_cdf(value: float) -> float:
    r"""$x^ae^{-x}\sum_kx^k/\Gamma(a+k+1)$."""
    shape = TRACY_WIDOM[0]
    term = math.exp(shape * math.log(value) - value - math.lgamma(shape + 1)) if value > 0 else 0.0
    total, k = term, 1
    while term > 1e-18 * total:
        term *= value / (shape + k)
        total, k = total + term, k + 1
    return total


def bbp_threshold(ratio: float) -> float:
    r"""The strength $\theta^2=\sqrt q$ from which a direction planted in noise shows. Source: baik2005; benaych2012.

    W is noise of n by p entries of unit variance plus $\theta\sqrt n\,uv^\top$, u and v of unit length, $q=p/n$.

    >>> bbp_threshold(0.25)
    0.5
    """
    _check(ratio)
    return math.sqrt(ratio)


def spike_location(strength: float, ratio: float) -> float:
    r"""Where a planted direction of strength $\theta^2$ shows in $W^\top W/n$: $(1+\theta^2)(q+\theta^2)/\theta^2$.

    At and below the threshold it hides at the edge, $(1+\sqrt q)^2$. Source: baik2005; benaych2012, section 3.1.

    >>> spike_location(2.0, 0.5), spike_location(0.1, 0.25) == marchenko_pastur_edges(0.25)[1]
    (3.75, True)
    """
    if strength <= bbp_threshold(ratio):
        return marchenko_pastur_edges(ratio)[1]
    return (1 + strength) * (ratio + strength) / strength


def density_exponent(rank_exponent: float) -> float:
    r"""A spectrum $\lambda_k\propto k^{-b}$ has density $\rho(\lambda)\propto\lambda^{-a}$ with $a=1+1/b$.

    Steeper decay means a *smaller* density exponent.

    >>> density_exponent(1.0), density_exponent(0.5)
    (2.0, 3.0)
    """
    positive(rank_exponent=rank_exponent)
    return 1 + 1 / rank_exponent


def rank_exponent(density_exponent: float) -> float:
    r"""A density $\rho(\lambda)\propto\lambda^{-a}$, $a>1$, decays with rank as $\lambda_k\propto k^{-b}$, $b=1/(a-1)$.

    >>> rank_exponent(2.0), rank_exponent(4.0) == 1 / 3
    (1.0, True)
    """
    if not density_exponent > 1:
        raise InputError(
            f"expected a density exponent above 1, got {density_exponent}; smaller ones have no finite mass"
        )
    return 1 / (density_exponent - 1)


def power_law_condition_number(exponent: float, count: int) -> float:
    r"""$\kappa=m^{b/2}$ for eigenvalues of $A^\top A$ exactly $ck^{-b}$, k = 1..m: only the two ends matter.

    >>> power_law_condition_number(2.0, 10)
    10.0
    """
    at_least(1, count=count)
    return float(count ** (exponent / 2))


def _check(ratio: float) -> None:
    if not ratio > 0:
        raise InputError(f"expected a positive ratio of columns to rows, got {ratio}; pass p / n")
