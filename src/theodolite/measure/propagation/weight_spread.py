"""The variances with which a network's weights and biases are spread, layer by layer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite.core.checks import positive
from theodolite.core.lazy_torch import array_of, is_tensor, kind_of, torch
from theodolite.core.reading import Estimate
from theodolite.io.weights import Weight

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor, nn

NOT_SUMS = ("Embedding", "EmbeddingBag", "Bilinear", "LayerNorm", "RMSNorm")
"""Modules of torch.nn whose weights do not sum inputs."""

BLOCK = 1 << 16
"""Entries in double precision at a time: they stay in the cache."""


def sums_inputs(name: str, weight: Weight | Tensor | NDArray[Any], owner: nn.Module | None = None) -> bool:
    """Whether a layer multiplies its inputs by this: by its module where that is known, else by its name and shape."""
    if len(weight.shape) < 2 or "weight" not in name or "float" not in kind_of(weight.dtype):
        return False
    if owner is None:
        return "embed" not in name.lower()
    return not isinstance(owner, _not_sums())


def _not_sums() -> tuple[type[nn.Module], ...]:
    """The modules of torch whose weights do not sum inputs."""
    return tuple(getattr(torch.nn, kind) for kind in NOT_SUMS)


@np.errstate(over="ignore", invalid="ignore")  # squares beyond double precision are infinite, and said to be so
def mean_square(tensor: Tensor | NDArray[Any], scale: float = 1.0) -> Estimate:
    """The mean square times ``scale`` with its standard error; initializations have mean zero. NaN of no numbers.

    Of complex numbers the squared modulus.
    """
    positive(scale=scale)
    if is_tensor(tensor) and tensor.device.type not in ("cpu", "mps"):
        parts = torch.view_as_real(tensor.detach()) if tensor.is_complex() else tensor.detach()[..., None]
        squares = parts.to(torch.float64).square().sum(-1).flatten() * scale
        error = squares.std(correction=0) / squares.numel() ** 0.5 if squares.numel() > 1 else squares.new_tensor(0.0)
        return Estimate(squares.mean().item(), error.item())
    flat = array_of(tensor).reshape(-1)
    if not flat.size:
        return Estimate(math.nan, 0.0)
    # fourth powers are numbers of float64: each entry is read once
    if flat.dtype.kind != "c" and flat.dtype.itemsize < 8:
        second = fourth = 0.0
        for part in _squares(flat, 1.0):
            second, fourth = second + float(part.sum()), fourth + float(part @ part)
        mean, spread = second / flat.size, fourth / flat.size - (second / flat.size) ** 2
        if spread > 1e-3 * mean**2:  # else they cancel
            return Estimate(scale * mean, abs(scale) * math.sqrt(spread / flat.size))
    mean = sum(float(part.sum()) for part in _squares(flat, scale)) / flat.size
    spread = sum(float(np.square(part - mean).sum()) for part in _squares(flat, scale)) / flat.size
    return Estimate(mean, math.sqrt(spread / flat.size))


def _squares(flat: NDArray[Any], scale: float) -> Iterator[NDArray[np.float64]]:
    """In double precision, a block at a time."""
    for start in range(0, flat.size, BLOCK):
        part = flat[start : start + BLOCK]
        if part.dtype.kind == "c":
            yield (np.square(part.real.astype(np.float64)) + np.square(part.imag.astype(np.float64))) * scale
        else:
            yield np.square(part.astype(np.float64)) * scale


def fan_in(shape: tuple[int, ...], owner: nn.Module | None = None, *, outputs: int | None = None) -> int:
    """How many inputs each output sums: all axes but the first, except in a transposed convolution or matrix.

    A matrix lies transposed in the Conv1D layers of GPT-2, and where there are as many ``outputs`` (the length of its bias) as
    columns, not rows.
    """
    if len(shape) == 2 and shape[0] != shape[1] and outputs == shape[1]:
        return shape[0]
    if len(shape) == 2 and type(owner).__name__ == "Conv1D" and getattr(owner, "nf", None) == shape[1]:
        return shape[0]
    if owner is not None and isinstance(
        owner, (torch.nn.ConvTranspose1d, torch.nn.ConvTranspose2d, torch.nn.ConvTranspose3d)
    ):
        taps = math.prod(shape[2:]) / math.prod(owner.stride)  # an output meets only some taps
        return max(1, round(shape[0] / owner.groups * taps))
    return math.prod(shape[1:])
