r"""Squared ReLU, $\max(z,0)^2$. Source: so2021; its covariance is the arc-cosine kernel of order 2, cho2009, equation 7."""

import math

import torch

from theodolite.theory._closed_forms import ClosedForm, Nonlinearity, angle, homogeneous

_RELU = homogeneous(1.0, 0.0)


def _covariance(K11: float, K22: float, K12: float) -> float:
    theta, sine = angle(K11, K22, K12)
    scale = math.sqrt(K11) * math.sqrt(K22)
    return (3 * scale * sine * K12 + (math.pi - theta) * (K11 * K22 + 2 * K12 * K12)) / (2 * math.pi)


nonlinearity = Nonlinearity(
    function=lambda z: torch.relu(z).square(),
    closed_form=ClosedForm(
        moment=lambda K: 1.5 * K * K,
        slope_moment=lambda K: 2 * K,
        curvature_moment=lambda K: 3 * K,
        fourth_moment=lambda K: 52.5 * K * K * K * K,
        moment_curvature=lambda K: 3.0,
        covariance=_covariance,
        slope_covariance=lambda a, b, c: 4 * _RELU.covariance(a, b, c),
    ),
)
