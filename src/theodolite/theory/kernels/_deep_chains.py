"""Single pairs through very deep chains of homogeneous layers: numbers alone, no tensor is made in any layer."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from theodolite.theory._quadrature import Array

SERIES_BELOW = 0.3


def chain_kernels(
    layers: Sequence[Any], slopes: Sequence[tuple[float, float]], size: Array, apart: tuple[Array, Array]
) -> tuple[Array, Array]:
    r"""NNGP and NTK of pairs behind linear layers without bias variance and homogeneous functions between them.

    Only the angle changes from layer to layer, so that $1-c$ and $1+c$ (``apart``) and one factor are all that is carried.
    """
    less, more = apart
    scale, position = 1.0, 0
    ntk = np.zeros_like(less)
    for layer in layers:
        if hasattr(layer, "rates"):
            weight, bias = layer.rates
            ntk = bias + (weight * scale) * (size * cosine_of(less, more)) + layer.weight_variance * ntk
            scale *= layer.weight_variance
            continue
        right, left = slopes[position]
        position += 1
        square, product, gap = 0.5 * (right * right + left * left), right * left, (right - left) ** 2
        theta = 2 * np.arctan2(np.sqrt(less), np.sqrt(more))
        ntk = (product + gap * (0.5 - theta / (2 * math.pi))) * ntk
        bow = bow_of(theta) / math.pi
        less = np.maximum((product * less + 0.5 * gap * (less - bow)) / square, 0.0)
        more = np.maximum((product * more + 0.5 * gap * (more + bow)) / square, 0.0)
        near = less <= more
        less, more = np.where(near, less, 2 - more), np.where(near, 2 - less, more)
        scale *= square
    return scale * (size * cosine_of(less, more)), ntk


def cosine_of(less: Array, more: Array) -> Array:
    """c from 1 - c and 1 + c, of which the smaller one is exact."""
    return np.asarray(np.where(less < 1, 1 - less, more - 1))


def bow_of(theta: Array) -> Array:
    r"""$\sin\theta-\theta\cos\theta$, by its series where the difference would lose digits."""
    t = np.minimum(theta, SERIES_BELOW)
    u = t * t
    series = t * u * (1 / 3 - u * (1 / 30 - u * (1 / 840 - u * (1 / 45360 - u * (1 / 3991680 - u / 518918400)))))
    if theta.size and theta.max() < SERIES_BELOW:
        return np.asarray(series)
    return np.asarray(np.where(theta < SERIES_BELOW, series, np.sin(theta) - theta * np.cos(theta)))
