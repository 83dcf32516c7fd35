"""A random multilayer perceptron, specified by its depth or widths, nonlinearity and variances."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from theodolite.core.checks import InputError
from theodolite.theory.activations import Activation


@dataclass(frozen=True)
class Mlp:
    r"""Weights $N(0,C_w/\mathrm{fan\,in})$, biases $N(0,C_b)$, one nonlinearity behind every hidden layer.

    ``hidden_layers=L`` has L + 1 weight matrices. Give ``hidden_layers`` or the ``widths`` of the hidden layers, of
    which their number follows. ``activation`` may be a name, a callable or an `Activation`. A variance is one number for
    all layers, or one for each weight matrix, first layer first.

    >>> Mlp(widths=(64, 32), activation="tanh", weight_variance=1.0).hidden_layers
    2
    >>> Mlp(1, "relu", weight_variance=(2.0, 1.0), bias_variance=0.1).bias_variances
    (0.1, 0.1)
    """

    hidden_layers: int | None = None
    activation: str | Callable[[torch.Tensor], torch.Tensor] | Activation = "relu"
    weight_variance: float | tuple[float, ...] = math.nan
    bias_variance: float | tuple[float, ...] = 0.0
    widths: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("weight_variance", "bias_variance"):  # numbers of NumPy and torch too
            object.__setattr__(self, name, _plain_each(getattr(self, name)))
        widths = None if self.widths is None else tuple(_plain(n) for n in self.widths)
        object.__setattr__(self, "hidden_layers", _plain(self.hidden_layers))
        depth = self.hidden_layers if widths is None else len(widths)
        if depth is None:
            raise InputError("expected hidden_layers or widths, got neither; give Mlp(hidden_layers=3, ...)")
        if self.hidden_layers is not None and depth != self.hidden_layers:
            raise InputError(
                f"expected as many widths as hidden layers, got {depth} widths and hidden_layers={self.hidden_layers}; "
                "leave out one of the two"
            )
        if not _is_whole(depth) or depth < 0:
            raise InputError(f"expected a whole number of hidden layers of at least 0, got {depth!r}")
        if widths is not None and not all(_is_whole(n) and n > 0 for n in widths):
            raise InputError(f"expected widths that are positive whole numbers, got {widths}")
        if self.weight_variance != self.weight_variance:  # NaN, whatever type was given
            raise InputError(
                "expected a weight_variance, got none; give C_w, the variance of a weight times its fan-in "
                "(criticality(activation).weight_variance for the critical one)"
            )
        for name in ("weight_variance", "bias_variance"):
            _check_variances(name, getattr(self, name), depth + 1)
        object.__setattr__(self, "widths", widths)
        object.__setattr__(self, "hidden_layers", depth)
        object.__setattr__(self, "activation", activation_of(self.activation))

    @property
    def sigma(self) -> Activation:
        """The nonlinearity, as an `Activation` with its moments."""
        return activation_of(self.activation)

    @property
    def weight_layers(self) -> int:
        """The number of weight matrices: one more than hidden layers."""
        return (self.hidden_layers or 0) + 1

    @property
    def weight_variances(self) -> tuple[float, ...]:
        r"""$C_w$ of each weight matrix, first layer first."""
        return _each(self.weight_variance, self.weight_layers)

    @property
    def bias_variances(self) -> tuple[float, ...]:
        r"""$C_b$ of each layer of weights, first layer first."""
        return _each(self.bias_variance, self.weight_layers)

    @property
    def common_variances(self) -> tuple[float, float]:
        r"""The $C_w$ and $C_b$ that all layers have in common; an error where they differ from layer to layer."""
        if len(set(self.weight_variances)) > 1 or len(set(self.bias_variances)) > 1:
            raise InputError(
                "expected one weight_variance and one bias_variance for all layers, got some that differ; "
                "give Mlp one number each"
            )
        return self.weight_variances[0], self.bias_variances[0]

    def variances_of(self, weight_layers: int | None) -> tuple[tuple[float, float], ...]:
        r"""$(C_w,C_b)$ of the first so many layers of weights; more than there are where all are alike."""
        own = tuple(zip(self.weight_variances, self.bias_variances, strict=True))
        if weight_layers is None or weight_layers <= len(own):
            return own[:weight_layers]
        if isinstance(self.weight_variance, tuple) or isinstance(self.bias_variance, tuple):
            raise InputError(
                f"expected at most {len(own)} weight_layers, as many as there are variances, got {weight_layers}"
            )
        return (own[0],) * weight_layers


def _each(variance: float | tuple[float, ...], layers: int) -> tuple[float, ...]:
    return variance if isinstance(variance, tuple) else (variance,) * layers


def _check_variances(name: str, variance: object, layers: int) -> None:
    values = variance if isinstance(variance, tuple) else (variance,)
    for value in values:
        if not (isinstance(value, int | float) and math.isfinite(value) and value >= 0):
            raise InputError(f"expected a finite {name} of at least 0, got {variance!r}")
    if isinstance(variance, tuple) and len(variance) != layers:
        raise InputError(
            f"expected one {name} for each of {layers} layers of weights, got {len(variance)}; or give one number for all"
        )


def _plain_each(value: Any) -> Any:
    """One number, or a tuple of them, of whatever they were made."""
    if getattr(value, "ndim", 0) == 1 or isinstance(value, list | tuple):
        return tuple(_plain(v) for v in value)
    return _plain(value)


def _plain(value: object) -> Any:
    """A number of NumPy or torch as Python's own; anything else as it is."""
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else value


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def activation_of(activation: str | Callable[[torch.Tensor], torch.Tensor] | Activation) -> Activation:
    """The `Activation` that a name or a callable stands for; one that is already made is returned as it is.

    One name is one object, so that what was integrated for it once is remembered.

    >>> activation_of("tanh") is activation_of("tanh")
    True
    """
    if isinstance(activation, Activation):
        return activation
    return _named(activation) if isinstance(activation, str) else Activation(activation)


@lru_cache(maxsize=256)
def _named(name: str) -> Activation:
    return Activation(name)
