r"""The Meijer function $G^{m,0}_{0,m}$: the density of a sum of independent log-Gamma variables, by one contour integral."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from theodolite.core.checks import InputError
from theodolite.core.reading import Estimate

FLOOR = 42.0
"""Terms below e^-42 of the largest are left out, and the step lets no more than that fold back: 1e-18."""
CELLS = 1 << 21
"""How many points of the contour are held at once."""
FAR = 1e9
"""A saddle beyond this has relative corrections below 1e-9, while lnΓ there carries rounding of 1e-6."""
Array = NDArray[np.float64]


def log_meijer(log_x: float, parameters: Sequence[float]) -> Estimate:
    r"""$\ln G^{m,0}_{0,m}(x\,|\,b_1,\dots,b_m)$ and, as ``stderr``, a bound on its rounding error.

    $G(x|b)=\frac{1}{2\pi i}\int\prod_j\Gamma(b_j+s)x^{-s}ds$. With $v=\ln x$ it is $\prod\Gamma(b_j)$ times the density at v
    of $\sum_j\ln\gamma_j$, $\gamma_j\sim\mathrm{Gamma}(b_j)$. The contour runs through the saddle $\sum\psi(b_j+s)=v$,
    where nothing cancels, and the trapezoidal rule on it is exact up to the tilted density one period $2\pi/h$ away: the
    step h puts that below $e^{-42}$. All in logarithms, so widths of thousands do not overflow.

    >>> import math
    >>> found = log_meijer(math.log(3.0), [0.5])  # one parameter: x^b e^-x
    >>> abs(found.value - (0.5 * math.log(3.0) - 3.0)) < 1e-13
    True
    >>> from scipy.special import kve  # two: 2 x^((a+b)/2) K_(a-b)(2 sqrt x)
    >>> found, x = log_meijer(math.log(5.0), [2.0, 70.0]), 5.0
    >>> abs(found.value - (math.log(2 * kve(68.0, 2 * x**0.5)) - 2 * x**0.5 + 36 * math.log(x))) < 1e-10
    True
    """
    value, error = log_meijers(np.array([log_x]), parameters)
    return Estimate(float(value[0]), float(error[0]))


def log_meijers(log_x: Any, parameters: Sequence[float]) -> tuple[Array, Array]:
    """`log_meijer` at many points at once: values and bounds on their errors."""
    points = np.atleast_1d(np.asarray(log_x, dtype=np.float64))
    if not np.isfinite(points).all():
        raise InputError("expected finite logarithms of the argument, got others; scale the problem")
    b, counts = np.unique(np.asarray(parameters, dtype=np.float64), return_counts=True)
    if not b.size or not np.isfinite(b).all():
        raise InputError(f"expected at least one finite parameter, got {list(parameters)}; pass halves of widths")
    values, errors = np.empty_like(points), np.empty_like(points)
    shifts, spreads = _saddles(points, b, counts)
    for i, (point, shift, spread) in enumerate(zip(points, shifts, spreads, strict=True)):
        values[i], errors[i] = _integral(point, shift, spread, b, counts)
    return values, errors


def _saddles(points: Array, b: Array, counts: Any) -> tuple[Array, Array]:
    r"""$d=s+\min b$ at the saddle and the spread $\sqrt{\sum\psi'}$ there, by bisection in ln d (the slope is monotone).

    >>> from scipy.special import digamma
    >>> (d,), _ = _saddles(np.array([1.0]), np.array([0.5, 2.0]), np.array([1, 1]))
    >>> round(float(digamma(d) + digamma(1.5 + d)), 9)
    1.0
    """
    from scipy.special import digamma, polygamma

    gaps = (b - b.min())[:, None]
    low, high = np.full(points.size, -700.0), np.full(points.size, 700.0)
    for _ in range(64):
        middle = 0.5 * (low + high)
        slope = (counts[:, None] * digamma(gaps + np.exp(middle))).sum(0)
        low, high = np.where(slope < points, middle, low), np.where(slope < points, high, middle)
    d = np.exp(0.5 * (low + high))
    return d, np.sqrt((counts[:, None] * polygamma(1, gaps + d)).sum(0))


def _integral(point: float, shift: float, spread: float, b: Array, counts: Any) -> tuple[float, float]:
    """The trapezoidal sum along the vertical line through the saddle; only its upper half is needed."""
    from scipy.special import gammaln, loggamma

    a = b - b.min() + shift  # the arguments of the Gamma functions at the saddle
    s = shift - b.min()
    base = gammaln(a)
    if shift > FAR:  # so far out the peak is a Gaussian to more digits than the logarithm has left
        value = (counts * base).sum() - s * point - np.log(np.sqrt(2 * np.pi) * spread)
        return float(value), float(16 * np.finfo(np.float64).eps * ((counts * np.abs(base)).sum() + abs(s * point)))
    step = 2 * np.pi / (9.2 * spread + FLOOR / shift)
    end = 8 * step
    while (counts * (loggamma(a + 1j * end).real - base)).sum() > -FLOOR:
        end *= 1.5
    total, absolute, largest = 0.5, 0.5, 0.0
    size = max(1, CELLS // len(a))
    for first in range(1, int(end / step) + 2, size):
        t = step * np.arange(first, min(first + size, int(end / step) + 2))
        logs = (counts[:, None] * (loggamma(a[:, None] + 1j * t) - base[:, None])).sum(0)
        terms = np.exp(logs.real) * np.cos(logs.imag - t * point)
        total, absolute = total + terms.sum(), absolute + np.exp(logs.real).sum()
        largest = max(largest, float(np.abs(logs.imag * np.exp(logs.real)).max(initial=0.0)))
    value = (counts * base).sum() - s * point + np.log(step / np.pi * total)
    rounding = (counts * np.abs(base)).sum() + abs(s * point) + (1 + largest) * absolute / total
    return float(value), float(16 * np.finfo(np.float64).eps * (1 + rounding))
