r"""Learning rates from the tangent kernel: which layer may move how fast, and how width, depth and data enter.

One step of size $\eta$ on $L=\frac{1}{2m}\sum(z-y)^2$ moves the outputs by $-\frac{\eta}{m}\Theta(z-y)$: it is stable while
$\eta\lambda_{\max}(\Theta)/m<2$, and an eigenvector of eigenvalue $\lambda$ is learned in $m/\eta\lambda$ steps.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from theodolite.core.checks import InputError, at_least, symmetric
from theodolite.theory import Mlp
from theodolite.theory.dynamics import step_size_edge
from theodolite.theory.kernels._top_directions import data_tops, fans_of, imagined_tops
from theodolite.theory.kernels.layer_shares import tangent_shares

Array = NDArray[np.float64]


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
    the largest one rate for all parameters that a network of this width bears, ``width_exponent`` and the depth exponents
    say how it moves with size.
    """

    layers: tuple[LayerRate, ...]
    single: float
    largest: float
    width_exponent: float
    weight_depth_exponent: float
    bias_depth_exponent: float


def learning_rates(
    spec: Mlp,
    *,
    inputs: int | Tensor,
    width: int,
    mean_square: float = 1.0,
    cosine: float = 0.5,
    samples: int | None = None,
) -> LearningRates:
    r"""Step sizes for a network of hidden layers of ``width`` on inputs that are given, or known by three numbers.

    With ``inputs`` (samples, features) the largest eigenvalue is that of the kernel on (at most 512 of) them. With a number
    of inputs they are thought of as a common part and Gaussian parts of their own, of ``mean_square`` $|x|^2/n_0$ and
    ``cosine`` c, and the top direction is one of two: the constant, $\lambda/m=\Theta(c)+(\Theta(1)-\Theta(c))/m$, which
    wins when inputs have much in common, or the linear functions, $\Theta'(c)(1-c)(1+\sqrt{n_0/m})^2/n_0$ and what is left
    over m, which win for centered inputs and odd activations. Weights may move as 1/fan-in, biases as 1: so the single rate
    falls as 1/width. Of the r directions that share the top, random layers of n units stretch the longest by about
    $(1+\sqrt{r/n})^2$, and between draws it varies by about $\sqrt{L/n}$: the single rate is divided by
    $(1+\sqrt{\max(r,L)/n})^2$, while ``largest`` is that of infinite width. Where the kernel overflows, or the activation
    jumps, no step is stable and rates are 0; a depth exponent is NaN where a share vanishes. Depth: shares of critical ReLU
    layers are equal (all rates as 1/depth), those of tanh weights fade. Source: roberts2022, chapter 9; jacot2018.

    >>> rates = learning_rates(Mlp(3, "relu", 2.0), inputs=64, width=256)
    >>> round(rates.layers[0].weight_lr * 64 / (rates.layers[1].weight_lr * 256), 6)
    1.0
    """
    at_least(1, width=width, samples=samples)
    if isinstance(inputs, Tensor):
        rows = inputs.flatten(1)[: samples or None]
        mean_square, count = float(rows.double().square().mean()), rows.shape[1]
        parts = data_tops(spec, rows, width=width)
    else:
        count = inputs
        parts = imagined_tops(spec, (mean_square, cosine), fans=fans_of(spec, inputs, width), samples=samples or 1)
    each = 1.0 / len(parts.layers)
    layers = tuple(
        LayerRate(place + 1, fan, _rate(0.5 * each, fan * top.weights), _rate(0.5 * each, top.biases), top.share)
        for place, (fan, top) in enumerate(zip(fans_of(spec, count, width), parts.layers, strict=True))
    )
    C_w, C_b = spec.variances_of(1)[0]
    weight_exponent, bias_exponent = depth_exponents(spec, C_b + C_w * mean_square)
    stretch = (1 + math.sqrt(max(parts.directions, spec.hidden_layers or 0) / width)) ** 2
    return LearningRates(
        layers, _rate(2.0, stretch * parts.largest), parts.largest, -1.0, weight_exponent, bias_exponent
    )


def depth_exponents(spec: Mlp, variance: float, *, depths: tuple[int, int] = (32, 64)) -> tuple[float, float]:
    r"""Local powers of depth by which the weights' and the biases' share of $\Theta(x,x)$ grow, between two depths.

    Critical ReLU: 1 and 1. Critical tanh: 0 and 1, so that its weights need no smaller rate in deeper networks. NaN where a
    share vanishes or overflows, or variances differ from layer to layer: it then has no power.

    >>> [round(power, 2) for power in depth_exponents(Mlp(1, "relu", 2.0), 1.0)]
    [1.0, 1.0]
    """
    if len(set(spec.variances_of(None))) > 1:  # how such a network would go on is not said
        return math.nan, math.nan
    found = []
    for depth in depths:
        shares = tangent_shares(Mlp(depth - 1, spec.sigma, *spec.common_variances), (variance, variance, variance))
        found.append((sum(s.weights[0] for s in shares), sum(s.biases[0] for s in shares)))
    ratio = math.log(depths[1] / depths[0])
    pairs = [(found[0][i], found[1][i]) for i in (0, 1)]
    weights, biases = (
        math.log(after / before) / ratio if 0 < before < math.inf and 0 < after < math.inf else math.nan
        for before, after in pairs
    )
    return weights, biases


def _rate(most: float, eigenvalue: float) -> float:
    """``most`` over the eigenvalue: any step where nothing moves, none where the kernel is infinite."""
    return math.inf if eigenvalue == 0 else 0.0 if not math.isfinite(eigenvalue) else most / eigenvalue


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
    are (m,) or (m, C), each column learned by the same ``kernel`` (m, m). Source: lee2019.

    >>> [round(loss, 12) for loss in kernel_learning(np.eye(2), np.ones(2), times=(0.0, 0.5)).losses]
    [1.0, 0.367879441171]
    """
    symmetric(kernel=kernel)
    if not np.any(targets):
        raise InputError(
            "expected targets that are not all 0, got zeros; the loss relative to its start is then undefined"
        )
    values, vectors = np.linalg.eigh(0.5 * (kernel + kernel.T))
    largest = float(values[-1])
    floor = len(values) * np.finfo(np.float64).eps * largest
    energy = ((vectors.T @ targets.reshape(len(targets), -1)) ** 2).sum(1)
    losses = tuple(float(energy @ np.exp(-2 * t * np.clip(values, 0, None) / largest) / energy.sum()) for t in times)
    condition = largest / float(values[0]) if values[0] > floor else math.inf
    limit = step_size_edge(largest / len(targets))
    return KernelLearning(largest, condition, limit, tuple(float(t) for t in times), losses)
