"""What finite width adds to the infinite-width theory: fluctuations, bias, kurtosis, dead networks."""

import math

from theodolite.core.checks import at_least
from theodolite.theory import Mlp
from theodolite.theory.propagation.signal_maps import variance_trajectory


def variance_vertices(spec: Mlp, variance: float, *, weight_layers: int | None = None) -> tuple[float, ...]:
    r"""$V^{(l)}=\lim n\,\mathrm{Var}\,\hat K^{(l)}$ for hidden layers of width n, from layer 1 on.

    $V^{(1)}=0$, $V^{(l+1)}=\chi_\parallel(K^{(l)})^2V^{(l)}+C_w^2(\langle\sigma^4\rangle-\langle\sigma^2\rangle^2)$, where
    $\hat K^{(l+1)}=C_b+(C_w/n)\sum_j\sigma(z_j^{(l)})^2$. Source: roberts2022, section 4.3.

    >>> variance_vertices(Mlp(2, "relu", 2.0), 1.0)
    (0.0, 5.0, 10.0)
    """
    sigma = spec.sigma
    found = [0.0]
    trajectory = variance_trajectory(spec, variance, weight_layers=weight_layers)
    for K, (weight, _) in zip(trajectory, spec.variances_of(len(trajectory))[1:], strict=False):
        spread = sigma.fourth_moment(K) - sigma.moment(K) ** 2
        found.append((weight * sigma.curvature_moment(K)) ** 2 * found[-1] + weight**2 * spread)
    return tuple(found)


def variance_biases(spec: Mlp, variance: float, *, weight_layers: int | None = None) -> tuple[float, ...]:
    r"""$\delta^{(l)}=\lim n(E\hat K^{(l)}-K^{(l)})$ for hidden layers of width n, from layer 1 on.

    $\delta^{(1)}=0$, $\delta^{(l+1)}=\chi_\parallel\delta^{(l)}+\frac12F''(K^{(l)})V^{(l)}$ with
    $F(K)=C_b+C_w\langle\sigma^2\rangle_K$: the map is curved, and its argument fluctuates. Zero for (leaky) ReLU.
    Source: roberts2022, section 4.5.

    >>> variance_biases(Mlp(2, "relu", 2.0), 1.0)
    (0.0, 0.0, 0.0)
    """
    sigma = spec.sigma
    vertices = variance_vertices(spec, variance, weight_layers=weight_layers)
    trajectory = variance_trajectory(spec, variance, weight_layers=weight_layers)
    found = [0.0]
    for K, V, (weight, _) in zip(trajectory, vertices, spec.variances_of(len(trajectory))[1:], strict=False):
        curved = 0.5 * weight * sigma.moment_curvature(K) * V if V else 0.0
        found.append(weight * sigma.curvature_moment(K) * found[-1] + curved)
    return tuple(found)


def leaky_relu_second_moment(negative_slope: float, *, width: int, hidden_layers: int) -> float:
    r"""$E\hat K^2/K^2=(1+(6\frac{1+a^4}{(1+a^2)^2}-1)/n)^L$ exactly, behind L critical layers of width n.

    (Leaky) ReLU of slope a at $C_b=0$, $C_w=2/(1+a^2)$: each layer multiplies $\hat K$ by an independent factor of mean
    1. ReLU $(1+5/n)^L$, linear $(1+2/n)^L$: depth over width governs fluctuations.

    >>> round(leaky_relu_second_moment(0.0, width=16, hidden_layers=3), 5)
    2.26099
    """
    at_least(1, width=width)
    at_least(0, hidden_layers=hidden_layers)
    a = negative_slope
    return (1 + (6 * (1 + a**4) / (1 + a**2) ** 2 - 1) / width) ** hidden_layers


def dead_network_probability(*, width: int, hidden_layers: int) -> float:
    r"""$1-(1-2^{-n})^L$: that one input finds some layer of a ReLU network without biases wholly switched off.

    >>> round(dead_network_probability(width=4, hidden_layers=5), 6)
    0.275804
    """
    at_least(0, width=width, hidden_layers=hidden_layers)
    return -math.expm1(hidden_layers * math.log1p(-(2.0**-width))) if width > 0 else 1.0


def excess_kurtosis(second_moment: float) -> float:
    r"""$\kappa=3(E\hat K^2/K^2-1)$: of one output unit over networks, given the relative second moment of its variance.

    What is left of width in the outputs at the start: `edgeworth_distance` turns it into a distance to the Gaussian process.

    >>> excess_kurtosis(1.0)
    0.0
    """
    return 3 * (second_moment - 1)


def edgeworth_distance(kurtosis: float) -> float:
    r"""$\frac{\kappa}{24}\max|He_3\varphi|=0.02294\,\kappa$: distance (Kolmogorov-Smirnov) to a Gaussian, to first order.

    To know from which width on the outputs of a random network may be taken for Gaussian.

    The largest $|z^3-3z|\varphi(z)$ is at $z^2=3-\sqrt6$.

    >>> round(edgeworth_distance(1.0), 5)
    0.02294
    """
    z = math.sqrt(3 - math.sqrt(6))
    return kurtosis / 24 * (3 * z - z**3) * math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
