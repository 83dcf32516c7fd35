r"""Learning rates from the tangent kernel: which layer may move how fast, and how width, depth and data enter.

One step of size $\eta$ on $L=\frac{1}{2m}\sum(z-y)^2$ moves the outputs by $-\frac{\eta}{m}\Theta(z-y)$: it is stable while
$\eta\lambda_{\max}(\Theta)/m<2$, and an eigenvector of eigenvalue $\lambda$ is learnt in $m/\eta\lambda$ steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from theodolite.theory import Mlp
from theodolite.theory.dynamics import step_size_edge
from theodolite.theory.propagation import covariance_trajectory
from theodolite.theory.propagation.signal_maps import Covariance

Array = NDArray[np.float64]


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
    sigma, C_w, C_b = spec.sigma, spec.weight_variance, spec.bias_variance
    if C_w == 0.0:
        raise ValueError("expected a positive weight variance, got 0; nothing reaches the output")
    behind = (1.0, 1.0, 1.0)
    found = []
    for place in range(len(trajectory) - 1, -1, -1):
        K = trajectory[place]
        fed = tuple((k - C_b) / C_w for k in K)  # E[sigma sigma] of the layer in front, or x.x'/n_0
        found.append(Share(_triple(f * b for f, b in zip(fed, behind, strict=True)), behind))
        if place:
            K11, K22, K12 = trajectory[place - 1]
            slopes = sigma.slope_moment(K11), sigma.slope_moment(K22), sigma.slope_covariance(K11, K22, K12)
            behind = _triple(C_w * s * b for s, b in zip(slopes, behind, strict=True))
    return tuple(found[::-1])


def tangent_pair(
    spec: Mlp, covariance: Covariance, *, weight_rate: float | None = None, bias_rate: float | None = None
) -> Covariance:
    r"""$(\Theta_{11},\Theta_{22},\Theta_{12})$ of two inputs; rates default to $C_w$ and $C_b$ (NTK parametrisation).

    >>> tangent_pair(Mlp(2, "relu", 2.0), (1.0, 1.0, 1.0))
    (3.0, 3.0, 3.0)
    """
    weight = spec.weight_variance if weight_rate is None else weight_rate
    bias = spec.bias_variance if bias_rate is None else bias_rate
    shares = tangent_shares(spec, covariance)
    return _triple(sum(weight * s.weights[i] + bias * s.biases[i] for s in shares) for i in range(3))


@dataclass(frozen=True)
class LayerRate:
    """Largest useful step sizes of one layer's weights and biases, and its share in the kernel under them."""

    layer: int
    fan_in: int
    weight_lr: float
    bias_lr: float
    share: float


@dataclass(frozen=True)
class LearningRates:
    r"""What theory advises for plain gradient descent on the mean squared error; see `learning_rates`.

    ``layers`` give rates so that each layer moves the function equally and $\lambda_{\max}/m$ is 1 in all; ``single`` is
    the largest one rate for all parameters, ``width_exponent`` and the depth exponents say how it moves with size.
    """

    layers: tuple[LayerRate, ...]
    single: float
    largest: float
    width_exponent: float
    weight_depth_exponent: float
    bias_depth_exponent: float


def learning_rates(
    spec: Mlp, *, inputs: int, width: int, mean_square: float = 1.0, cosine: float = 0.5, samples: int = 1
) -> LearningRates:
    r"""Step sizes for a network of hidden layers of ``width`` on data of ``mean_square`` $|x|^2/n_0$ and ``cosine``.

    The largest eigenvalue is that of the constant direction, $\lambda_{\max}/m=\Theta_{12}+(\Theta_{11}-\Theta_{12})/m$, which
    dominates when inputs have a common part. Weights may move as 1/fan-in, biases as 1: so the single rate falls as
    1/width. Depth: shares of critical ReLU layers are equal (all rates as 1/depth), those of tanh weights fade.
    Source: roberts2022, chapter 9; jacot2018.

    >>> rates = learning_rates(Mlp(3, "relu", 2.0), inputs=64, width=256)
    >>> round(rates.layers[0].weight_lr * 64 / (rates.layers[1].weight_lr * 256), 6)
    1.0
    """
    start = spec.bias_variance + spec.weight_variance * mean_square
    across = spec.bias_variance + spec.weight_variance * mean_square * cosine
    shares = tangent_shares(spec, (start, start, across))
    fans = [inputs, *[width] * (len(shares) - 1)]

    def top(triple: Covariance) -> float:
        return triple[2] + (triple[0] - triple[2]) / samples

    parts = [(top(s.weights), top(s.biases)) for s in shares]
    largest = sum(fan * weights + biases for fan, (weights, biases) in zip(fans, parts, strict=True))
    each = 1.0 / len(parts)
    layers = tuple(
        LayerRate(
            place + 1,
            fan,
            0.5 * each / (fan * w) if w > 0 else math.inf,
            0.5 * each / b if b > 0 else math.inf,
            (fan * w + b) / largest,
        )
        for place, (fan, (w, b)) in enumerate(zip(fans, parts, strict=True))
    )
    weight_exponent, bias_exponent = depth_exponents(spec, start)
    return LearningRates(layers, 2.0 / largest, largest, -1.0, weight_exponent, bias_exponent)


def depth_exponents(spec: Mlp, variance: float, *, depths: tuple[int, int] = (32, 64)) -> tuple[float, float]:
    r"""Local powers of depth by which the weights' and the biases' share of $\Theta(x,x)$ grow, between two depths.

    Critical ReLU: 1 and 1. Critical tanh: 0 and 1, so that its weights need no smaller rate in deeper networks.

    >>> [round(power, 2) for power in depth_exponents(Mlp(1, "relu", 2.0), 1.0)]
    [1.0, 1.0]
    """
    found = []
    for depth in depths:
        shares = tangent_shares(
            Mlp(depth - 1, spec.sigma, spec.weight_variance, spec.bias_variance), (variance, variance, variance)
        )
        found.append((sum(s.weights[0] for s in shares), sum(s.biases[0] for s in shares)))
    ratio = math.log(depths[1] / depths[0])
    weights, biases = (math.log(found[1][i] / found[0][i]) / ratio for i in (0, 1))
    return weights, biases


@dataclass(frozen=True)
class KernelLearning:
    """What a kernel on data says of training: largest eigenvalue, condition number, and the loss over time."""

    largest: float
    condition: float
    limit: float
    times: tuple[float, ...]
    losses: tuple[float, ...]


def kernel_learning(
    kernel: Array, targets: Array, *, times: Sequence[float] = (1, 10, 100, 1_000, 10_000)
) -> KernelLearning:
    r"""Gradient flow of a fixed kernel: $L(t)=\sum_i(u_i\cdot y)^2e^{-2t\lambda_i/\lambda_{\max}}/\sum_i(u_i\cdot y)^2$.

    Time counts steps of size $m/\lambda_{\max}$, half the limit; the loss is relative to that of answering 0. ``targets``
    are (m,) or (m, C), each column learnt by the same ``kernel`` (m, m). Source: lee2019.

    >>> kernel_learning(np.eye(2), np.ones(2), times=(0.0, 0.5)).losses
    (1.0, 0.36787944117144233)
    """
    values, vectors = np.linalg.eigh(0.5 * (kernel + kernel.T))
    largest = float(values[-1])
    floor = len(values) * np.finfo(np.float64).eps * largest
    energy = ((vectors.T @ targets.reshape(len(targets), -1)) ** 2).sum(1)
    losses = tuple(float(energy @ np.exp(-2 * t * np.clip(values, 0, None) / largest) / energy.sum()) for t in times)
    condition = largest / float(values[0]) if values[0] > floor else math.inf
    limit = step_size_edge(largest / len(targets))
    return KernelLearning(largest, condition, limit, tuple(float(t) for t in times), losses)


def _triple(values: Iterable[float]) -> Covariance:
    first, second, third = values
    return float(first), float(second), float(third)
