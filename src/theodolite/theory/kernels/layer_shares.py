r"""What each layer adds to the tangent kernel of two inputs."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from theodolite.core.checks import InputError, not_negative
from theodolite.theory import Mlp
from theodolite.theory.propagation import covariance_trajectory
from theodolite.theory.propagation.signal_maps import Covariance


@dataclass(frozen=True)
class Share:
    r"""What one layer adds to $\Theta_{11},\Theta_{22},\Theta_{12}$ for rates 1: by weights (over fan-in) and by biases."""

    weights: Covariance
    biases: Covariance


def tangent_shares(spec: Mlp, covariance: Covariance) -> tuple[Share, ...]:
    r"""The share of each layer in the tangent kernel of two inputs, first layer first.

    Layer l adds $P_l(\lambda_b+\lambda_wE[\sigma\sigma]_{K^{(l-1)}})$ with $P_l=\prod_{k\geq l}C_wE[\dot\sigma\dot\sigma]$,
    the first with $x\cdot x'/n_0=(K^{(1)}-C_b)/C_w$ for $E[\sigma\sigma]$. ``covariance`` is $K^{(1)}$. Source: jacot2018.

    >>> [share.weights[0] for share in tangent_shares(Mlp(2, "relu", 2.0), (1.0, 1.0, 0.0))]
    [0.5, 0.5, 0.5]
    """
    trajectory = covariance_trajectory(spec, covariance)
    sigma, variances = spec.sigma, spec.variances_of(None)
    if min(spec.weight_variances) == 0.0:
        raise InputError("expected a positive weight variance, got 0; nothing reaches the output")
    behind = (1.0, 1.0, 1.0)
    found = []
    for place in range(len(trajectory) - 1, -1, -1):
        K, (C_w, C_b) = trajectory[place], variances[place]
        fed = tuple((k - C_b) / C_w for k in K)  # E[sigma sigma] of the layer in front, or x.x'/n_0
        found.append(Share(_triple(f * b for f, b in zip(fed, behind, strict=True)), behind))
        if place:
            K11, K22, K12 = trajectory[place - 1]
            slopes = (math.inf,) * 3  # behind a variance that has overflowed
            if max(K11, K22) < math.inf:
                slopes = sigma.slope_moment(K11), sigma.slope_moment(K22), sigma.slope_covariance(K11, K22, K12)
            behind = _triple(C_w * s * b for s, b in zip(slopes, behind, strict=True))
    return tuple(found[::-1])


def tangent_pair(
    spec: Mlp, covariance: Covariance, *, weight_rate: float | None = None, bias_rate: float | None = None
) -> Covariance:
    r"""$(\Theta_{11},\Theta_{22},\Theta_{12})$ of two inputs; rates default to $C_w$ and $C_b$ (NTK parametrization).

    >>> tangent_pair(Mlp(2, "relu", 2.0), (1.0, 1.0, 1.0))
    (3.0, 3.0, 3.0)
    """
    not_negative(weight_rate=weight_rate, bias_rate=bias_rate)
    rates = [
        (C_w if weight_rate is None else weight_rate, C_b if bias_rate is None else bias_rate)
        for C_w, C_b in spec.variances_of(None)
    ]
    shares = tuple(zip(tangent_shares(spec, covariance), rates, strict=True))
    return _triple(sum(weight * s.weights[i] + bias * s.biases[i] for s, (weight, bias) in shares) for i in range(3))


def _triple(values: Iterable[float]) -> Covariance:
    first, second, third = values
    return float(first), float(second), float(third)
