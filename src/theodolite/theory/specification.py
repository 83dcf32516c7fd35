"""A random multilayer perceptron, specified by its depth or widths, nonlinearity and variances."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from theodolite.theory.activations import Activation


@dataclass(frozen=True)
class Mlp:
    r"""Weights $N(0,C_w/\mathrm{fan\,in})$, biases $N(0,C_b)$, one nonlinearity behind every hidden layer.

    ``hidden_layers=L`` has L + 1 weight matrices. Give ``hidden_layers`` or the ``widths`` of the hidden layers, of
    which their number follows. ``activation`` may be a name, a callable or an `Activation`.

    >>> Mlp(widths=(64, 32), activation="tanh", weight_variance=1.0).hidden_layers
    2
    """

    hidden_layers: int | None = None
    activation: str | Callable[[torch.Tensor], torch.Tensor] | Activation = "relu"
    weight_variance: float = math.nan
    bias_variance: float = 0.0
    widths: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("weight_variance", "bias_variance"):  # numbers of NumPy and torch too
            object.__setattr__(self, name, _plain(getattr(self, name)))
        widths = None if self.widths is None else tuple(_plain(n) for n in self.widths)
        object.__setattr__(self, "hidden_layers", _plain(self.hidden_layers))
        depth = self.hidden_layers if widths is None else len(widths)
        if depth is None:
            raise ValueError("expected hidden_layers or widths, got neither; give Mlp(hidden_layers=3, ...)")
        if self.hidden_layers is not None and depth != self.hidden_layers:
            raise ValueError(
                f"expected as many widths as hidden layers, got {depth} widths and hidden_layers={self.hidden_layers}; "
                "leave out one of the two"
            )
        if not _is_whole(depth) or depth < 0:
            raise ValueError(f"expected a whole number of hidden layers of at least 0, got {depth!r}")
        if widths is not None and not all(_is_whole(n) and n > 0 for n in widths):
            raise ValueError(f"expected widths that are positive whole numbers, got {widths}")
        if self.weight_variance != self.weight_variance:  # NaN, whatever type was given
            raise ValueError(
                "expected a weight_variance, got none; give C_w, the variance of a weight times its fan-in "
                "(criticality(activation).weight_variance for the critical one)"
            )
        for name in ("weight_variance", "bias_variance"):
            value = getattr(self, name)
            if not (isinstance(value, int | float) and math.isfinite(value) and value >= 0):
                raise ValueError(f"expected a finite {name} of at least 0, got {value!r}")
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
