"""The largest eigenvalue of the tangent kernel, in all and layer by layer: on given inputs, or on imagined ones."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from theodolite.core.checks import InputError
from theodolite.theory import Mlp
from theodolite.theory.kernels._duals.maps import Pairs
from theodolite.theory.kernels._map_sequences import diagonal_of, pair_layers, program_of
from theodolite.theory.kernels._tiled_pairs import mean_squares, points_of
from theodolite.theory.kernels._whole_kernels import whole_kernels
from theodolite.theory.kernels.layer_shares import Share, tangent_shares

MOST_ROWS = 512
"""Rows whose kernel is formed (of single layers an eighth); fewer rows err upward, to the safe side."""


@dataclass(frozen=True)
class LayerTop:
    """Largest eigenvalues over m of what a layer's weights (over fan-in) and biases add, and its share in the whole."""

    weights: float
    biases: float
    share: float


@dataclass(frozen=True)
class Tops:
    r"""The largest eigenvalue over m of the whole kernel, how many directions share it, and those of its parts.

    ``directions`` is $\sum_i\lambda_i^2/\lambda_{\max}^2$.
    """

    largest: float
    directions: float
    layers: tuple[LayerTop, ...]


def fans_of(spec: Mlp, inputs: int, width: int) -> list[int]:
    """The fan-in of each weight matrix."""
    return [inputs, *[width] * (spec.hidden_layers or 0)]


def data_tops(spec: Mlp, rows: Tensor, *, width: int) -> Tops:
    """The largest eigenvalues of the kernel on rows, and those of each layer's part."""
    x = points_of(rows[:MOST_ROWS]).to("cpu", torch.float64)
    if len(x) == 0:
        raise InputError("expected at least one input, got none; pass some data")
    fans = fans_of(spec, x.shape[1], width)
    layers: tuple[Any, ...] = program_of(spec)
    rated: list[Any] = [replace(layers[0], weight_rate=float(fans[0]), bias_rate=1.0)]
    for fan, (between, dense) in zip(fans[1:], zip(layers[1::2], layers[2::2], strict=True), strict=True):
        rated += [between, replace(dense, weight_rate=float(fan), bias_rate=1.0)]
    whole = whole_kernels(tuple(rated), x, None).ntk
    largest, _ = _top(whole)
    directions = float(whole.square().sum()) / (largest * len(x)) ** 2 if 0 < largest < math.inf else 1.0
    few = x[: MOST_ROWS // 8]
    parts = _parts(spec, few)
    top, direction = _top(sum((fan * w + b for fan, (w, b) in zip(fans, parts, strict=True)), torch.zeros(1, 1)))
    found = []
    for fan, (weights, biases) in zip(fans, parts, strict=True):
        part = float(direction @ (fan * weights + biases).numpy() @ direction) / len(few)
        found.append(LayerTop(_top(weights)[0], _top(biases)[0], _share(part, top, len(fans))))
    return Tops(largest, directions, tuple(found))


def _parts(spec: Mlp, x: Tensor) -> list[tuple[Tensor, Tensor]]:
    """What each layer's weights and biases add to the kernel for rates 1, (m, m) each, first layer first."""
    squares = mean_squares(x)
    root = torch.where(squares > 0, squares, 1.0).sqrt()
    unit = x / root[:, None]
    cosine = (unit @ unit.T / x.shape[1]).clamp(-1.0, 1.0)
    cosine = torch.where((squares[:, None] == 0) | (squares == 0), 0.0, cosine).fill_diagonal_(1.0)
    a, b = squares[:, None].expand_as(cosine), squares.expand_as(cosine)
    program = program_of(spec)
    fed, slopes = pair_layers(program, diagonal_of(program, squares).steps, Pairs(a, b, 1 - cosine, 1 + cosine))
    behind, weights = torch.ones_like(cosine), spec.weight_variances
    found: list[tuple[Tensor, Tensor]] = []
    for place in range(len(fed) - 1, -1, -1):
        found.append((fed[place] * behind, behind))
        if place:
            behind = torch.where(behind == 0, 0.0, weights[place] * slopes[place - 1] * behind)
    return found[::-1]


def _top(matrix: Tensor) -> tuple[float, np.ndarray]:
    """The largest eigenvalue over the number of rows, and its vector."""
    dense = matrix.numpy()
    n = len(dense)
    if not np.isfinite(dense).all():  # the activation jumps, or the kernel overflows
        return math.inf, np.full(n, n**-0.5)
    if n < 32:
        values, vectors = np.linalg.eigh(dense)
        return float(values[-1]) / n, vectors[:, -1]
    if not dense.any():
        return 0.0, np.full(n, n**-0.5)
    start = dense @ np.random.default_rng(0).standard_normal(n)  # in the range, and not blind to odd directions
    from scipy.sparse.linalg import eigsh  # a third of a second to load

    values, vectors = eigsh(dense, k=1, which="LA", v0=start, tol=1e-10)
    return float(values[0]) / n, vectors[:, 0]


def imagined_tops(spec: Mlp, signal: tuple[float, float], *, fans: list[int], samples: int) -> Tops:
    r"""The same for ``samples`` inputs of a mean square and a cosine, each a common part and a Gaussian part of its own.

    Two directions come into question: the constant one, and the linear functions of the inputs' own parts, which the
    Marchenko-Pastur edge $(1+\sqrt{n_0/m})^2/n_0$ measures. In place of $\Theta(c)$ stands $|\Theta(c)|$: then the
    largest sum of a row, which no eigenvalue exceeds, is asked of inputs at obtuse angles.
    """
    mean_square, cosine = signal
    if not (math.isfinite(mean_square) and mean_square >= 0 and -1 <= cosine <= 1 and samples >= 1):
        raise InputError(
            "expected a finite mean_square of at least 0, a cosine within [-1, 1] and at least 1 sample, "
            f"got {mean_square}, {cosine} and {samples}"
        )
    step = 1e-3 * (1 - cosine)
    low, high = max(-1.0, cosine - step), min(1.0, cosine + step)
    at, below, above = (_shares(spec, mean_square, c) for c in (cosine, low, high))
    own = 1 - max(cosine, 0.0)
    edge = min(1.0, (1 + math.sqrt(fans[0] / samples)) ** 2 / fans[0])

    def directions(which: str, place: int) -> tuple[float, float]:
        alone, _, pair = getattr(at[place], which)
        slope = abs(getattr(above[place], which)[2] - getattr(below[place], which)[2]) / (high - low) if step else 0.0
        linear = slope * own * edge + max(0.0, alone - abs(pair) - slope * own) / samples
        constant = abs(pair) + (alone - abs(pair)) / samples
        return (constant, linear) if math.isfinite(constant + linear) else (math.inf, math.inf)

    parts = [(directions("weights", place), directions("biases", place)) for place in range(len(at))]
    totals = [sum(fan * w[i] + b[i] for fan, (w, b) in zip(fans, parts, strict=True)) for i in (0, 1)]
    top = 0 if totals[0] >= totals[1] else 1
    layers = tuple(
        LayerTop(max(w), max(b), _share(fan * w[top] + b[top], totals[top], len(fans)))
        for fan, (w, b) in zip(fans, parts, strict=True)
    )
    ratio = fans[0] / samples
    sharing = max(1.0, fans[0] * (1 + ratio) / (1 + math.sqrt(ratio)) ** 4) if top == 1 else 1.0
    return Tops(totals[top], sharing, layers)


def _share(part: float, whole: float, layers: int) -> float:
    return part / whole if 0 < whole < math.inf else 1 / layers


def _shares(spec: Mlp, mean_square: float, cosine: float) -> tuple[Share, ...]:
    C_w, C_b = spec.variances_of(1)[0]
    start, across = C_b + C_w * mean_square, C_b + C_w * mean_square * cosine
    return tangent_shares(spec, (start, start, across))
