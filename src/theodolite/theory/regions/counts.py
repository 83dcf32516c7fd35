"""How many linear regions a ReLU network has: at most, in general position, and on average at initialization."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from theodolite.core.checks import InputError, at_least, each_at_least, real_values
from theodolite.core.reading import Estimate


def hyperplane_cells(hyperplanes: int, dimension: int) -> int:
    r"""The cells $\sum_{i\le d}\binom ni$ into which n hyperplanes in general position cut $\mathbb R^d$.

    Source: zaslavsky1975.

    >>> hyperplane_cells(3, 2), hyperplane_cells(5, 1), hyperplane_cells(4, 9)
    (7, 6, 16)
    """
    at_least(0, hyperplanes=hyperplanes, dimension=dimension)
    return sum(math.comb(hyperplanes, i) for i in range(dimension + 1))


def region_bound(widths: Sequence[int], inputs: int) -> int:
    r"""No ReLU network has more regions than $\prod_l\sum_{i\le d_l}\binom{n_l}{i}$, $d_l=\min(n_0,\dots,n_{l-1})$.

    Each cell of the layers in front is convex, and the next layer's units are affine on it, through at most $d_l$
    dimensions. Source: montufar2014; raghu2017.

    >>> region_bound((3, 3), 2), region_bound((4,), 9)
    (49, 16)
    """
    each_at_least(1, widths=widths)
    at_least(0, inputs=inputs)
    bound, through = 1, inputs
    for width in widths:
        bound *= hyperplane_cells(width, through)
        through = min(through, width)
    return bound


def sawtooth_pieces(folds: int, *, whole: bool = False) -> int:
    r"""The linear pieces of Telgarsky's tent map folded L times: $2^L$ on [0, 1] (of $2^{L-1}$ teeth), two more on the line.

    Source: telgarsky2016. Without its outer ReLU a single tent (L = 1) has 3 pieces on the line, and not 4.

    >>> [sawtooth_pieces(folds) for folds in (1, 2, 10)], sawtooth_pieces(3, whole=True)
    ([2, 4, 1024], 10)
    """
    at_least(0, folds=folds)
    return int(2**folds) + 2 * whole


def line_regions(widths: Sequence[int], *, with_bias: bool = True) -> float:
    r"""The mean number of activation regions of a random ReLU network along any whole line.

    $$E=1+\sum_l n_l\prod_{k<l}(1-2^{-n_k})$$ for independent symmetric continuous weights and biases, of whatever scale.
    By the formula of Kac and Rice the count needs the gates at one point at a time, which are independent fair coins;
    with frozen coins every unit is affine along the line and has one zero, unless a layer in front is wholly off. Without
    biases, on a line that misses the origin, two units on are needed: $1-(n_k+1)2^{-n_k}$.
    Source: hanin2019. Differs from the source: it bounds the number per length; the exact mean on the line is derived here.

    >>> line_regions((2, 2, 2))
    5.625
    """
    each_at_least(1, widths=widths)
    return 1.0 + sum(width * math.prod(_alive(w, with_bias) for w in widths[:k]) for k, width in enumerate(widths))


def line_pieces(widths: Sequence[int], *, with_bias: bool = True) -> float:
    r"""The mean number of linear pieces of a random ReLU network of one output along any whole line.

    As `line_regions`, and the kink shows in the output unless a layer behind is wholly off:
    $E=1+\sum_l n_l\prod_{k\ne l}(1-2^{-n_k})$.

    >>> line_pieces((2, 2, 2))
    4.375
    """
    each_at_least(1, widths=widths)
    front = [math.prod(_alive(w, with_bias) for w in widths[:k]) for k in range(len(widths))]
    behind = [math.prod(_alive(w, True) for w in widths[k + 1 :]) for k in range(len(widths))]
    return 1.0 + sum(w * a * b for w, a, b in zip(widths, front, behind, strict=True))


def _alive(width: int, biases: bool) -> float:
    return 1 - 2.0**-width * (1 if biases else width + 1)


def interval_breakpoints(width: int, *, bias_variance: float, low: float, high: float, layer: int = 1) -> float:
    r"""The mean number of zeros in [low, high] of the units of a layer of a net of one input at He initialization.

    $$\frac{n}{\pi}\Big[\arctan\frac{\sqrt2x}{\sqrt l\,\sigma_b}\Big]$$: exact for l = 1, the limit of wide layers for l > 1.

    >>> round(interval_breakpoints(10, bias_variance=1.0, low=-1e9, high=1e9), 6)
    10.0
    """
    at_least(0, width=width)
    at_least(1, layer=layer)
    if not bias_variance > 0 or not low <= high:
        raise InputError(
            f"expected a positive bias_variance and low <= high, got {bias_variance} and [{low}, {high}]; "
            "without biases every unit is zero at the origin alone"
        )
    scale = math.sqrt(2.0 / (layer * bias_variance))
    return width / math.pi * (math.atan(scale * high) - math.atan(scale * low))


def interval_bound(neurons: int, *, bias_variance: float, length: float) -> float:
    r"""At most $N|I|/(\sqrt\pi\,\sigma_b)$ breakpoints on average in an interval, at He initialization, for any depth.

    The largest density of a bias times $E|z'|\le\sqrt2$. Source: hanin2019, here with its constant.

    >>> round(interval_bound(1, bias_variance=1.0, length=math.sqrt(math.pi)), 12)
    1.0
    """
    at_least(1, neurons=neurons)
    if not bias_variance > 0:
        raise InputError(f"expected a positive bias_variance, got {bias_variance}; without biases there is no bound")
    return neurons * length / math.sqrt(math.pi * bias_variance)


def frozen_gate_breakpoints(
    widths: Sequence[int], *, bias_variance: float, low: float, high: float, draws: int = 4000, seed: int = 0
) -> Estimate:
    r"""The mean number of breakpoints in [low, high] of a net of one input at He initialization: exact at any widths.

    It is the sum over units of the chance that the unit's zero lies there when every gate in front is an independent
    frozen fair coin. Given the layer in front, value and slope of a unit are Gaussian with some covariance $K$, and the
    chance is the angle between $K^{1/2}(1, x)$ at both ends over $\pi$; the mean over $K$ is taken over ``draws`` chains.

    >>> one = frozen_gate_breakpoints((7,), bias_variance=1.0, low=-1, high=1).value
    >>> math.isclose(one, interval_breakpoints(7, bias_variance=1.0, low=-1, high=1))
    True
    """
    each_at_least(1, widths=widths)
    if not bias_variance > 0 or draws < 2:
        raise InputError(f"expected a positive bias_variance and at least 2 draws, got {bias_variance} and {draws}")
    random = np.random.default_rng(seed)
    covariance = np.broadcast_to(np.diag([bias_variance, 2.0]), (draws, 2, 2))
    total = np.zeros(draws)
    ends = np.array([[1.0, low], [1.0, high]])
    for width in widths:
        total += width * swept_angle(covariance, ends) / math.pi
        root = _roots(covariance)
        units = random.standard_normal((draws, width, 2)) @ root.swapaxes(1, 2)
        units *= random.integers(0, 2, (draws, width, 1))
        covariance = 2.0 / width * units.swapaxes(1, 2) @ units + np.diag([bias_variance, 0.0])
    return Estimate(float(total.mean()), float(total.std(ddof=1) / math.sqrt(draws)))


def _roots(covariance: Any) -> Any:
    """Lower triangular roots of 2 x 2 covariances whose first entry is positive."""
    first = np.sqrt(covariance[:, 0, 0])
    cross = covariance[:, 0, 1] / first
    rest = np.sqrt(np.maximum(covariance[:, 1, 1] - cross**2, 0.0))
    return np.stack([np.stack([first, 0 * first], 1), np.stack([cross, rest], 1)], 1)


def swept_angle(covariance: Any, ends: Any) -> Any:
    r"""The angle that $K^{1/2}v$ turns through as v goes straight from one end to the other, for covariances (..., 2, 2).

    Over $\pi$ it is the chance that a Gaussian function, linear in v, has a zero on the way: the Buffon-Crofton formula.
    """
    a, b = np.asarray(ends)
    aa, ab, bb = (np.einsum("i,...ij,j->...", u, covariance, v) for u, v in ((a, a), (a, b), (b, b)))
    return np.arctan2(np.sqrt(np.maximum(aa * bb - ab**2, 0.0)), ab)


def curve_zeros(curve: Any) -> float:
    r"""The mean number of zeros of $\sum_ig_i\gamma_i(t)$, g standard Gaussian: the length of $\gamma/|\gamma|$ over $\pi$.

    ``curve`` (T, d) are points along $\gamma$; between two of them it is taken as straight. Source: edelman1995.

    >>> round(curve_zeros([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]), 12)
    1.0
    """
    real_values(curve=curve)
    points = np.asarray(curve, dtype=np.float64)
    if points.ndim != 2 or not np.isfinite(points).all() or not np.linalg.norm(points, axis=1).all():
        raise InputError(
            "expected finite points (T, d), none of them 0, got others; a curve through 0 has no direction there"
        )
    points = points / np.linalg.norm(points, axis=1, keepdims=True)
    half = np.linalg.norm(points[1:] - points[:-1], axis=1) / 2
    return float(2 * np.arcsin(np.clip(half, 0, 1)).sum() / math.pi)


def segment_breakpoints(
    widths: Sequence[int], gram: Any, *, weight_variances: Sequence[float], bias_variances: Sequence[float]
) -> list[float]:
    r"""The mean number of zeros of each layer's units between two inputs, for wide random ReLU layers.

    $n_l\theta_l/\pi$, $\theta_l$ the angle under $K_1=C_b+C_wx\cdot x'/n_0$, $K_{l+1}=C_b+\tfrac12C_wK_l$: linear, since the
    gates at one point are shared along it. ``gram`` is (2, 2) of products $x\cdot x'/n_0$, or (N, 2, 2): then the mean.
    Exact for the first layer at any width. Without biases every layer has as many as the first.

    >>> segment_breakpoints((6, 4), np.eye(2), weight_variances=(2, 2), bias_variances=(0, 0))
    [3.0, 2.0]
    """
    each_at_least(1, widths=widths)
    real_values(gram=gram)
    kernel, found, factor = np.asarray(gram, dtype=np.float64), [], 1.0
    if kernel.shape[-2:] != (2, 2):
        raise InputError(f"expected products of two inputs, (2, 2) or (N, 2, 2), got shape {kernel.shape}")
    for width, weight, bias in zip(widths, weight_variances, bias_variances, strict=True):
        kernel = bias + weight * factor * kernel
        aa, ab, bb = kernel[..., 0, 0], kernel[..., 0, 1], kernel[..., 1, 1]
        angle = np.arctan2(np.sqrt(np.maximum(aa * bb - ab**2, 0.0)), ab)
        found.append(float(width * np.mean(angle) / math.pi))
        factor = 0.5
    return found


def origin_cell_sides() -> float:
    r"""The mean number of sides, in the limit $\pi^2/2$, of the cell about the origin of many lines in the plane.

    The lines $w\cdot x+b=0$ of a wide first layer of two inputs: isotropic w, and b with a positive density at zero; near
    the origin they are a Poisson process of lines, and this its zero cell. Source: matheron1975.

    >>> round(origin_cell_sides(), 4)
    4.9348
    """
    return math.pi**2 / 2
