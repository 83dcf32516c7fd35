r"""Bayesian deep linear networks without noise: evidence and posterior, exact at any widths.

The network is $f(x)=W^{(L+1)}\cdots W^{(1)}x=\theta\cdot x$ with priors $W^{(l)}\sim N(0,\sigma^2/n_{l-1})$, one output. Its
$\theta$ is Gaussian given a scale: $\theta=\tau g$, $\tau^2=\frac{\sigma^2}{n_0}\prod_{l=1}^L\frac{\sigma^2}{n_l}\chi^2_{n_l}$.
P samples fix its part in their span, $\theta_*$ (the least interpolant); what is left is $\tau$ and the part across.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from theodolite.core.checks import InputError, at_least, each_at_least, finite
from theodolite.core.reading import Estimate
from theodolite.theory.bayes._meijer import log_meijer, log_meijers

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LinearNet:
    r"""A deep linear network: ``inputs`` $n_0$, hidden ``widths`` $n_1..n_L$ (maybe none), ``prior_variance`` $\sigma^2$."""

    inputs: int
    widths: tuple[int, ...] = ()
    prior_variance: float = 1.0

    def __post_init__(self) -> None:
        if self.inputs < 1 or any(n < 1 for n in self.widths):
            raise InputError(f"expected widths of at least 1, got {(self.inputs, *self.widths)}; pass positive numbers")
        if not 0 < self.prior_variance < math.inf:
            raise InputError(
                f"expected a positive prior variance, got {self.prior_variance}; 1 keeps norms of wide nets"
            )

    @property
    def log_scale(self) -> float:
        r"""$\ln M$ with $M=\prod_{l=0}^L2\sigma^2/n_l$: the Meijer function's unit of squared length."""
        return sum(math.log(2 * self.prior_variance / n) for n in (self.inputs, *self.widths))

    def parameters(self, first: float) -> list[float]:
        """The Meijer function's parameters: ``first``, then halves of the widths."""
        return [first, *(n / 2 for n in self.widths)]


def log_evidence(net: LinearNet, *, samples: int, norm2: float, log_det: float = 0.0) -> Estimate:
    r"""The log evidence, with a bound on its rounding error.

    $\ln Z=-\frac12\ln\det XX^\top-\frac P2\ln\pi\|\theta_*\|^2-\sum_l\ln\Gamma(\frac{n_l}2)
    +\ln G(\|\theta_*\|^2/M\,|\,\frac P2,\frac{n_1}2,\dots)$ is the density of the P targets under the prior.
    ``samples`` is P, ``norm2`` $\|\theta_*\|^2=y^\top(XX^\top)^{-1}y$, ``log_det`` $\ln\det XX^\top$.
    Source: hanin2023.
    Differs from the source: normalized as a density of the targets, argument $\|\theta_*\|^2/M$ with M as above.

    >>> found = log_evidence(LinearNet(4), samples=2, norm2=3.0)  # no hidden layer: a Gaussian of variance 1/4
    >>> abs(found.value - (-math.log(2 * math.pi / 4) - 3.0 / (2 / 4))) < 1e-13
    True
    """
    _check(samples, norm2)
    G = log_meijer(math.log(norm2) - net.log_scale, net.parameters(samples / 2))
    parts = [-0.5 * log_det, -samples / 2 * math.log(math.pi * norm2), -sum(math.lgamma(n / 2) for n in net.widths)]
    rounding = 4 * math.ulp(1.0) * sum(abs(part) for part in parts)
    return Estimate(G.value + sum(parts), G.stderr + rounding)


def scale_moment(net: LinearNet, order: float, *, samples: int, norm2: float) -> float:
    r"""$E[\tau^{2k}\mid y]=(\|\theta_*\|^2/2)^kG(x|\frac P2-k,\dots)/G(x|\frac P2,\dots)$, $x=\|\theta_*\|^2/M$.

    >>> round(scale_moment(LinearNet(8, (), 2.0), 1.0, samples=3, norm2=5.0), 12)  # no hidden layer: tau is known
    0.25
    """
    _check(samples, norm2)
    log_x = math.log(norm2) - net.log_scale
    top = log_meijer(log_x, net.parameters(samples / 2 - order)).value
    return math.exp(order * math.log(norm2 / 2) + top - log_meijer(log_x, net.parameters(samples / 2)).value)


def perpendicular_moment(net: LinearNet, order: int = 1, *, samples: int, norm2: float) -> float:
    r"""$E[\|\theta_\perp\|^{2k}\mid y]=\frac{\Gamma(\frac{n_0-P}2+k)}{\Gamma(\frac{n_0-P}2)}2^kE[\tau^{2k}\mid y]$.

    The part of $\theta$ across the samples: its direction is uniform, and this is its length. Zero where P is $n_0$.

    >>> round(perpendicular_moment(LinearNet(8, (), 2.0), samples=3, norm2=5.0), 12)
    1.25
    """
    at_least(0, order=order)
    at_least(1, samples=samples)
    free = (net.inputs - samples) / 2
    if free <= 0:
        return 0.0
    ratio = math.exp(math.lgamma(free + order) - math.lgamma(free))
    return ratio * 2.0**order * scale_moment(net, order, samples=samples, norm2=norm2)


def log_scale_density(net: LinearNet, log_tau2: Array, *, samples: int, norm2: float) -> Array:
    r"""The posterior log density of $\ln\tau^2$ at many points: a Meijer function times $\tau^{-P}e^{-\|\theta_*\|^2/2\tau^2}$.

    Needs a hidden layer: without one $\tau^2=\sigma^2/n_0$ is known.
    """
    at_least(1, samples=samples)
    if not net.widths:
        raise InputError("expected a hidden layer, got none; without one the scale is known, prior_variance / inputs")
    rest = net.log_scale - math.log(2)
    prior = log_meijers(log_tau2 - rest, [n / 2 for n in net.widths])[0] - sum(math.lgamma(n / 2) for n in net.widths)
    likelihood = -samples / 2 * (math.log(2 * math.pi) + log_tau2) - norm2 / 2 * np.exp(-log_tau2)
    return prior + likelihood - log_evidence(net, samples=samples, norm2=norm2).value


def best_variance(net: LinearNet, *, samples: int, norm2: float) -> float:
    r"""$\sigma_*^2$, the prior variance of largest evidence: the root of $G(x|\frac P2+1,\dots)/G(x|\frac P2,\dots)=\frac P2$.

    The evidence is log-concave in $\ln\sigma^2$ (a density of a sum of log-Gammas), so there is one. As all sizes grow
    $\sigma_*^{2(L+1)}\to\|\theta_*\|^2n_0/P$: see `limiting_best_variance`. ``net.prior_variance`` is not used.

    >>> round(best_variance(LinearNet(10), samples=5, norm2=3.0), 10)  # exact without hidden layers
    6.0
    """
    _check(samples, norm2)
    from scipy.optimize import brentq

    layers = len(net.widths) + 1
    unit = LinearNet(net.inputs, net.widths).log_scale

    def excess(log_variance: float) -> float:
        log_x = math.log(norm2) - unit - layers * log_variance
        top = log_meijer(log_x, net.parameters(samples / 2 + 1)).value
        return top - log_meijer(log_x, net.parameters(samples / 2)).value - math.log(samples / 2)

    start = math.log(limiting_best_variance(net, samples=samples, norm2=norm2))
    low, high = start - 1.0, start + 1.0
    while excess(low) < 0:  # too small a prior leaves the targets too far out
        low -= 2.0
    while excess(high) > 0:
        high += 2.0
    return math.exp(brentq(excess, low, high, xtol=1e-12, rtol=1e-14))


def limiting_best_variance(net: LinearNet, *, samples: int, norm2: float) -> float:
    r"""$\sigma_*^2\to(\|\theta_*\|^2n_0/P)^{1/(L+1)}$ as samples and widths grow in proportion.

    >>> limiting_best_variance(LinearNet(40, (60,)), samples=20, norm2=2.0)
    2.0
    """
    _check(samples, norm2)
    return float((norm2 * net.inputs / samples) ** (1 / (len(net.widths) + 1)))


def posterior_ratio(net: LinearNet, *, samples: int, norm2: float) -> float:
    r"""The root z of $\kappa z=\sigma^{2(L+1)}\prod_l(1+\alpha_l(\frac1z-1))$, $\kappa=\|\theta_*\|^2n_0/P$, $\alpha_l=P/n_l$.

    $\|\theta_\perp\|^2\to\frac{1-\alpha}{\alpha}\|\theta_*\|^2z$ as samples and widths grow in proportion, $\alpha=P/n_0$: z is 1
    where the data outvote the prior, and $\sigma^2/\kappa$ without hidden layers. Source: hanin2023.

    >>> posterior_ratio(LinearNet(10), samples=5, norm2=2.0)
    0.25
    >>> posterior_ratio(LinearNet(10, (20, 20)), samples=5, norm2=0.5)  # kappa 1: the prior was right
    1.0
    """
    _check(samples, norm2)
    from scipy.optimize import brentq

    kappa = norm2 * net.inputs / samples
    shares = [samples / n for n in net.widths]
    target = (len(net.widths) + 1) * math.log(net.prior_variance) - math.log(kappa)
    if target == 0.0:
        return 1.0

    def excess(log_z: float) -> float:
        grown = math.expm1(-log_z)
        if any(share * grown <= -1 for share in shares):
            return math.inf
        return log_z - target - sum(math.log1p(share * grown) for share in shares)

    low = high = 0.0
    while excess(low) > 0:
        low -= 1.0
    while excess(high) < 0:
        high += 1.0
    if not math.isfinite(excess(high)):  # shares above one: z stays below the pole
        high = min(-math.log1p(-1 / share) for share in shares if share > 1) * (1 - 1e-12)
    return math.exp(brentq(excess, low, high, xtol=1e-14)) if shares else math.exp(target)


def effective_depth(net: LinearNet, *, samples: int) -> float:
    r"""$\lambda=P\sum_l1/n_l$: how far depth lets the data choose the scale; 0 keeps the prior's, large gives $\sigma_*$'s.

    In wide networks at $\sigma=1$ it alone decides: $\ln\kappa z=\lambda(1/z-1)$. Source: hanin2023.

    >>> effective_depth(LinearNet(10, (50, 50)), samples=5)
    0.2
    """
    at_least(1, samples=samples)
    return samples * sum(1 / n for n in net.widths)


def best_log_evidence(*, samples: int, norm2: float, log_det: float = 0.0) -> float:
    r"""No scale mixture of Gaussians has more: $\max_\tau\ln N(y;0,\tau^2XX^\top)$, at $\tau^2=\|\theta_*\|^2/P$.

    >>> abs(best_log_evidence(samples=30, norm2=3.0) + 15 * math.log(2 * math.pi * math.e / 10)) < 1e-12
    True
    """
    _check(samples, norm2)
    return -0.5 * log_det - samples / 2 * (math.log(2 * math.pi * norm2 / samples) + 1)


def log_norm_moments(sizes: Sequence[int]) -> tuple[float, float]:
    r"""Mean $\frac12\sum[\psi(\frac n2)+\ln\frac2n]$ and variance $\frac14\sum\psi'(\frac n2)$ of $\ln\|\theta\|$ a priori.

    $\|\theta\|^2=\prod_{l=0}^L\chi^2_{n_l}/n_l$ at $\sigma=1$, over ``sizes`` $n_0..n_L$, inputs included:
    about a log-normal of variance $\frac12\sum1/n_l$. Wide first, $\|\theta\|\to1$; deep first, 0: only $\sum1/n_l$ counts.

    >>> mean, variance = log_norm_moments((20,) * 11)
    >>> round(mean, 4), round(variance, 4)
    (-0.2796, 0.2892)
    """
    each_at_least(1, sizes=sizes)
    from scipy.special import digamma, polygamma

    n = np.asarray(sizes, dtype=np.float64)
    return float(0.5 * (digamma(n / 2) + np.log(2 / n)).sum()), float(0.25 * polygamma(1, n / 2).sum())


def _check(samples: int, norm2: float) -> None:
    at_least(1, samples=samples)
    finite(norm2=norm2)
    if norm2 <= 0:
        raise InputError(
            f"expected targets that are not all zero, got a squared norm of {norm2}; zeros say nothing of a scale"
        )
