"""Does another law describe the tail better than a power law? Likelihood ratios on the same values."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from theodolite.core.checks import InputError, one_of, real_values
from theodolite.measure.spectra.tails import PowerLaw, _sorted_values

Floats = NDArray[np.float64]

Rival = Literal["exponential", "log-normal", "truncated power law"]
PANELS, NODES, DEPTH = 16, 24, 40.0


@dataclass(frozen=True, slots=True)
class TailComparison:
    r"""A rival's likelihood beside the power law's on one tail.

    ``ratio`` is $\sum_j(\ell^{PL}_j-\ell^{rival}_j)$ over $\sqrt n$ times its spread: positive speaks for the power law.
    ``p_value`` is small where the sign of the ratio can be trusted; ``parameters`` are the rival's.
    """

    rival: Rival
    ratio: float
    p_value: float
    parameters: tuple[float, ...]


def likelihood_ratio(eigenvalues: Any, fit: PowerLaw, *, rival: Rival) -> TailComparison:
    r"""Vuong's normalized log-likelihood ratio of the power law against a rival, both on the values from xmin on.

    With $y=\log(x/x_{\min})\ge0$ the rivals are: exponential in x, rate $\lambda$, parameters $(\lambda,)$; log-normal
    cut at xmin, $e^{-by-cy^2}$, parameters $(\mu,\sigma)$; truncated power law, $x^{-\alpha}e^{-\lambda x}$, parameters
    $(\alpha,\lambda)$. The last two contain the power law at the edge of their parameters ($c=0$, $\lambda=0$), so they
    never fit worse: their p-value is half that of $\chi^2_1$ at twice the gain, 1 where they gain nothing. Exponential:
    $\mathrm{erfc}(|ratio|/\sqrt2)$. Source: clauset2009, section 5; vuong1989.

    Differs from the source: log-normal is treated as nested, and both nested p-values are halved for the edge.
    """
    real_values(eigenvalues=eigenvalues)
    one_of(get_args(Rival), rival=rival)
    if fit.reason:
        raise InputError(f"expected a fitted power law, got none ({fit.reason}); compare only where there is a fit")
    values = _sorted_values(eigenvalues)
    x = values[values >= fit.xmin] / fit.xmin
    y, a = np.log(x), fit.alpha - 1
    power = math.log(a) - a * y  # log-densities of y
    if rival == "exponential":
        rate = 1 / float(x.mean() - 1)
        ratio = _normalized(power - (math.log(rate) - rate * (x - 1) + y))
        return TailComparison(rival, ratio, math.erfc(abs(ratio) / math.sqrt(2)), (rate / fit.xmin,))
    shape = np.square if rival == "log-normal" else np.expm1
    b, c, log_total = _tilted_exponential(y, shape, a)
    gain = float(np.sum(-b * y - c * shape(y) - log_total - power))
    p_value = 0.5 * math.erfc(math.sqrt(max(gain, 0.0))) if c > 0 else 1.0
    ratio = _normalized(power + b * y + c * shape(y) + log_total)
    return TailComparison(rival, ratio, p_value, _named(rival, b, c, fit))


def _named(rival: Rival, b: float, c: float, fit: PowerLaw) -> tuple[float, ...]:
    if rival == "log-normal":
        spread = math.sqrt(0.5 / c) if c > 0 else math.inf
        return (math.log(fit.xmin) - b * spread**2 if c > 0 else -math.inf, spread)
    return (1 + b, c / fit.xmin)


def _normalized(differences: Floats) -> float:
    spread = float(differences.std())
    size = float(np.abs(differences).max())
    return float(differences.sum() / (math.sqrt(differences.size) * spread)) if spread > 1e-12 * (1 + size) else 0.0


def _tilted_exponential(y: Floats, shape: Callable[[Any], Any], start: float) -> tuple[float, float, float]:
    """The most likely (b, c >= 0) of the density exp(-b y - c shape(y)) on y >= 0, and the log of its integral.

    The log-likelihood of an exponential family is concave: damped Newton steps from the power law (c = 0) find it.
    """
    seen = np.array([y.mean(), shape(y).mean()])
    scale = 1 / seen
    b, c = start, 1e-3 * scale[1]
    value, mean, spread = _family(b, c, shape, seen)
    for _ in range(100):
        step = np.linalg.solve(spread * np.outer(scale, scale) + 1e-12 * np.eye(2), scale * (mean - seen)) * scale
        damp = 1.0
        while damp > 1e-10:
            new_b, new_c = b + damp * step[0], c + damp * step[1]
            if new_c > 0:
                trial = _family(new_b, new_c, shape, seen)
                if trial[0] >= value:
                    break
            damp /= 2
        else:
            break
        gained = trial[0] - value
        (b, c), (value, mean, spread) = (new_b, new_c), trial
        if gained < 1e-13 * y.size or c < 1e-9 * scale[1]:
            break
    at_edge = math.log(start) - start * seen[0]
    if value <= at_edge + 1e-12:  # nothing gained over the power law itself
        return float(start), 0.0, -math.log(start)
    return float(b), float(c), -(value + b * seen[0] + c * seen[1])


def _family(b: float, c: float, shape: Callable[[Any], Any], seen: Floats) -> tuple[float, Floats, Floats]:
    """Mean log-likelihood, and mean and covariance of (y, shape(y)) under the density, by quadrature."""
    end = float(seen[0])

    def exponent(y: Any) -> Any:
        return -b * y - c * shape(y)

    peak = 0.0
    for _ in range(200):  # the exponent is concave: double until it lies far below its peak
        peak = max(peak, float(exponent(end)))
        if exponent(end) < peak - DEPTH:
            break
        end = min(1.5 * end, 600.0)
    knots, weights = np.polynomial.legendre.leggauss(NODES)
    width = end / PANELS
    y = (width * (np.arange(PANELS)[:, None] + 0.5 * (knots + 1))).ravel()
    mass = np.tile(0.5 * width * weights, PANELS)
    height = exponent(y)
    top = height.max()
    mass = mass * np.exp(height - top)
    total = mass.sum()
    statistics = np.stack([y, shape(y)])
    mean = statistics @ mass / total
    centered = statistics - mean[:, None]
    spread = (centered * (mass / total)) @ centered.T
    return float(-b * seen[0] - c * seen[1] - math.log(total) - top), mean, spread
