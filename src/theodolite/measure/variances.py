"""The variances with which a network's weights and biases are spread, layer by layer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from theodolite.reading import Estimate
from theodolite.subject import Weights

NOT_SUMS = (nn.Embedding, nn.EmbeddingBag, nn.Bilinear, nn.LayerNorm, nn.RMSNorm)


@dataclass(frozen=True)
class LayerVariances:
    """A layer's fan-in, its weights' variance times the fan-in, and its biases' variance (None without biases)."""

    name: str
    fan_in: int
    weight: Estimate
    bias: Estimate | None


def layer_variances(weights: Weights, *, model: nn.Module | None = None) -> Iterator[LayerVariances]:
    """Every matrix of weights that sums its inputs, in the order of the parameters, one tensor in memory at a time.

    A checkpoint tells only names and shapes: a tensor of two or more axes whose name speaks of weights, but not of an
    embedding, counts; its fan-in is the product of all axes but the first. A ``model`` tells what its layers are.
    """
    owners = {} if model is None else _owners(model)
    for name, weight in weights.items():
        head, found, tail = name.rpartition("weight")
        owner = owners.get(name)
        is_sum = len(weight.shape) >= 2 and bool(found) and not isinstance(owner, NOT_SUMS)
        if not is_sum or (owner is None and "embed" in name.lower()) or not weight.dtype.is_floating_point:
            continue
        inputs = fan_in(weight.shape, owner)
        bias = weights.get(f"{head}bias{tail}")
        spread = None if bias is None or len(bias.shape) != 1 else _mean_square(bias.read(), 1)
        yield LayerVariances(name, inputs, _mean_square(weight.read(), inputs), spread)


def _mean_square(tensor: Tensor, scale: int) -> Estimate:
    """The mean square times ``scale`` with its standard error; initialisations have mean zero."""
    squares = tensor.detach().to(torch.float64).square().flatten() * scale
    error = squares.std(correction=0) / squares.numel() ** 0.5 if squares.numel() > 1 else squares.new_tensor(0.0)
    return Estimate(squares.mean().item(), error.item())


def fan_in(shape: tuple[int, ...], owner: nn.Module | None = None) -> int:
    """How many inputs each output sums: all axes but the first, except in a transposed convolution."""
    if isinstance(owner, nn.ConvTranspose1d | nn.ConvTranspose2d | nn.ConvTranspose3d):
        taps = torch.Size(shape[2:]).numel() / torch.Size(owner.stride).numel()  # an output meets only some taps
        return max(1, round(shape[0] / owner.groups * taps))
    return torch.Size(shape[1:]).numel()


def _owners(model: nn.Module) -> dict[str, nn.Module]:
    return {f"{prefix}.{name}" if prefix else name: module for prefix, module in model.named_modules()
            for name, _ in module.named_parameters(recurse=False)}  # fmt: skip
