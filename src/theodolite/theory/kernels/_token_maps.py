"""The maps of attention and of normalization on the kernels of pairs of images or of sequences."""

from dataclasses import replace

import torch
from torch import Tensor

from theodolite.core.checks import InputError
from theodolite.theory.kernels._image_signals import PixelKernels, Sides
from theodolite.theory.kernels._map_sequences import Dense, Normalized
from theodolite.theory.kernels._memory_blocks import constant
from theodolite.theory.kernels.image_layers import Attention


def weighted(layer: Dense, signal: PixelKernels, sides: Sides, tangent: bool, *, terms: int = 1) -> PixelKernels:
    """A layer of weights on what its windows see: the mean of so many ``terms``, of which the signal is the sum."""
    weight, bias = layer.rates
    scale, new = layer.weight_variance / terms, sides.scratch.like
    k = torch.add(constant(layer.bias_variance, signal.k), signal.k, alpha=scale, out=new(signal.k))
    t = None
    if tangent:
        plain = (weight, bias) == (layer.weight_variance, layer.bias_variance)
        t = k if plain else torch.add(constant(bias, k), signal.k, alpha=weight / terms, out=new(k))
        t = t if signal.t is None else torch.add(t, signal.t, alpha=scale, out=new(k) if plain else t)
    return replace(signal, k=k, t=t, distance=None if signal.distance is None else scale * signal.distance)


def normalized(layer: Normalized, signal: PixelKernels, sides: Sides) -> PixelKernels:
    """Every pixel over its own deviation, or the whole image over that of all its pixels."""

    def inverse(variances: Tensor) -> Tensor:
        own = variances
        if layer.whole and signal.space:
            own = variances.mean(tuple(range(signal.space)), keepdim=True).expand_as(variances)
        own = own + layer.epsilon
        return torch.where(own > 0, own, torch.inf).rsqrt()

    place = sides.position
    s, u = sides.at(signal, inverse)
    distance = None
    if signal.distance is not None:  # of scaled vectors, without the digits that a + b - 2k would lose
        a, b = replace(sides, position=place).at(signal)
        distance = s * u * signal.distance + (s - u) * (s * a - u * b)
    t = None if signal.t is None else signal.t * s * u
    return replace(signal, k=signal.k * s * u, t=t, distance=distance)


def attended(layer: Attention, signal: PixelKernels, sides: Sides, tangent: bool) -> PixelKernels:
    """Every position takes up the values of all positions of its own image, or sequence."""
    if not signal.space:
        raise InputError("expected attention over positions, got one behind a Linear layer; average behind it")
    if signal.flat:
        raise InputError("expected attention before positions are flattened, got one behind; flatten behind it")
    shape, p = signal.k.shape, signal.pixels
    n, m = shape[signal.space], shape[-1]
    tokens = signal.mapped(lambda b: b.reshape(p, n, p, m).permute(1, 3, 0, 2))
    mixed = (
        _by_chance(layer, tokens, sides, tangent) if layer.key else _by_likeness(layer, tokens, signal, sides, tangent)
    )
    return weighted(layer.output, mixed.mapped(lambda b: b.permute(2, 0, 3, 1).reshape(shape)), sides, tangent)


def _by_likeness(
    layer: Attention, tokens: PixelKernels, signal: PixelKernels, sides: Sides, tangent: bool
) -> PixelKernels:
    """Keys are the queries and logits their mean products: numbers, the same in every draw of the weights."""
    own, other = (layer.query.bias_variance + layer.query.weight_variance * v for v in sides.whole(signal))
    if layer.weighting == "softmax":
        own, other = own.softmax(-1), other.softmax(-1)
    values = weighted(layer.value, tokens, sides, tangent)
    return values.mapped(lambda block: own @ block @ other.mT)


def _by_chance(layer: Attention, tokens: PixelKernels, sides: Sides, tangent: bool) -> PixelKernels:
    """Keys of their own: logits are products of Gaussians, and the mean of three kernels' product is theirs."""
    assert layer.key is not None
    query, key, value = (weighted(part, tokens, sides, tangent) for part in (layer.query, layer.key, layer.value))
    seen = (key.k * value.k).sum((-2, -1), keepdim=True)
    t = None
    if query.t is not None and key.t is not None and value.t is not None:
        moved = (key.t * value.k + key.k * value.t).sum((-2, -1), keepdim=True)
        t = query.t * seen + query.k * moved
    return replace(tokens, k=query.k * seen, t=t)
