r"""Deep linear networks with Gaussian noise on the targets: one integral, over the scale $\tau$, is left to quadrature.

Given $\tau$ the targets are $N(0,\tau^2XX^\top+\nu)$ with noise variance $\nu$, whatever the depth; the prior of $\ln\tau^2$ is
a sum of log-Gammas (see `theory.meijer`). Any number of samples, repeated and dependent ones too.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from theodolite.core.checks import not_negative, real_values
from theodolite.core.reading import Estimate
from theodolite.theory.bayes._meijer import log_meijers
from theodolite.theory.bayes.linear_networks import LinearNet

Array = NDArray[np.float64]
DEEP = 40.0
"""Where the integrand is below e^-40 of its top it is left out."""


@dataclass(frozen=True)
class ScalePosterior:
    r"""Values of $\ln\tau^2$, their posterior weights (of sum 1), and the log evidence with its error of quadrature."""

    log_tau2: Array
    weights: Array
    evidence: Estimate


def log_scale_prior(net: LinearNet, log_tau2: Array) -> Array:
    r"""The log density of $\ln\tau^2$ a priori: that of $\sum\ln\gamma_l$, $\gamma_l\sim\mathrm{Gamma}(n_l/2)$, shifted."""
    real_values(log_tau2=log_tau2)
    rest = net.log_scale - math.log(2)
    return log_meijers(log_tau2 - rest, [n / 2 for n in net.widths])[0] - sum(math.lgamma(n / 2) for n in net.widths)


def log_likelihood(log_tau2: Array, spectrum: Array, squares: Array, *, noise_variance: float) -> Array:
    r"""$\ln N(y;0,\tau^2XX^\top+\nu)$ at many scales: ``spectrum`` of $XX^\top$, ``squares`` of the targets in its basis.

    >>> one = log_likelihood(np.zeros(1), np.array([1.0]), np.array([4.0]), noise_variance=1.0)
    >>> abs(float(one[0]) - (-0.5 * math.log(4 * math.pi) - 1.0)) < 1e-14
    True
    """
    not_negative(noise_variance=noise_variance)
    power = np.exp(log_tau2)[:, None] * spectrum + noise_variance
    return np.asarray(-0.5 * (np.log(2 * math.pi * power) + squares / power).sum(1))


def noisy_scale_posterior(net: LinearNet, spectrum: Array, squares: Array, *, noise_variance: float) -> ScalePosterior:
    """The posterior of the scale and the evidence, by the trapezoidal rule, which is exponentially exact here.

    The grid is narrowed to where the integrand is above e^-40 of its top and then halved until the log evidence stands to
    1e-9; its last change is the stated error.
    """
    not_negative(noise_variance=noise_variance)
    if not net.widths:
        known = np.array([math.log(net.prior_variance / net.inputs)])
        value = float(log_likelihood(known, spectrum, squares, noise_variance=noise_variance)[0])
        return ScalePosterior(known, np.ones(1), Estimate(value, 16 * math.ulp(abs(value))))

    def joint(u: Array) -> Array:
        return log_scale_prior(net, u) + log_likelihood(u, spectrum, squares, noise_variance=noise_variance)

    low, high = _first_range(net, spectrum, squares, noise_variance)
    for _ in range(40):
        u = np.linspace(low, high, 33)
        logs = joint(u)
        inside = np.flatnonzero(logs > logs.max() - DEEP)
        first, last = max(0, int(inside[0]) - 1), min(32, int(inside[-1]) + 1)
        step = u[1] - u[0]
        edges = (first == 0 and logs[0] > logs.max() - DEEP, last == 32 and logs[-1] > logs.max() - DEEP)
        if last - first > 16 and not any(edges):
            break
        low, high = u[first] - step * 8 * edges[0], u[last] + step * 8 * edges[1]
    return _refined(joint, u, logs)


def _refined(joint: Callable[[Array], Array], u: Array, logs: Array) -> ScalePosterior:
    """Halve the grid until the integral stands."""
    value, error = _log_integral(u, logs), math.inf
    for _ in range(6):
        middle = 0.5 * (u[1:] + u[:-1])
        order = np.argsort(np.concatenate([u, middle]))
        u, logs = np.concatenate([u, middle])[order], np.concatenate([logs, joint(middle)])[order]
        before, value = value, _log_integral(u, logs)
        error = abs(value - before)
        if error < 1e-9:
            break
    weights = np.exp(logs - logs.max())
    return ScalePosterior(u, weights / weights.sum(), Estimate(value, error + 1e-12 * (1 + abs(value))))


def _log_integral(u: Array, logs: Array) -> float:
    top = logs.max()
    return float(top + np.log(np.exp(logs - top).sum() * (u[1] - u[0])))


def _first_range(net: LinearNet, spectrum: Array, squares: Array, noise: float) -> tuple[float, float]:
    """From the prior's bulk to where the likelihood is largest, generously: the posterior lies between them."""
    from scipy.special import digamma, polygamma

    halves = np.array([n / 2 for n in net.widths])
    center = net.log_scale - math.log(2) + float(digamma(halves).sum())
    spread = math.sqrt(float(polygamma(1, halves).sum()))
    wide = center + np.linspace(-60, 60, 481)
    best = float(wide[np.argmax(log_likelihood(wide, spectrum, squares, noise_variance=noise))])
    return min(center, max(best, center - 40)) - 8 * spread, max(center, min(best, center + 40)) + 8 * spread
