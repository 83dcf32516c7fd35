"""The layers of a convolutional network, as its kernel sees them: variances, windows, averages."""

from __future__ import annotations

from dataclasses import dataclass

from theodolite.theory.kernels._programs import Dense, Nonlinear, Normalised, Sum


@dataclass(frozen=True)
class Convolution:
    r"""A convolution: weights $N(0,C_w/\mathrm{fan\,in})$ over channels and window, biases $N(0,C_b)$, zeros around the image.

    $K_{pp'}\to C_b+C_w\,\mathrm{mean}_\delta K_{p+\delta,p'+\delta}$; ``dense`` holds the variances and the rates. Where it is
    ``circular`` the image goes on at its other side in place of the zeros, and no pixel is nearer the edge than another.
    """

    dense: Dense
    window: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    circular: bool = False


@dataclass(frozen=True)
class Average:
    """Average pooling over windows, zeros around the image counted; without a window over the whole image."""

    window: tuple[int, ...] = ()
    stride: tuple[int, ...] = ()
    padding: tuple[int, ...] = ()


@dataclass(frozen=True)
class Flatten:
    """Pixels become channels: a dense layer behind takes the mean of their covariances."""


ImageProgram = tuple[Convolution | Average | Flatten | Dense | Nonlinear | Normalised | Sum, ...]
"""Layers in order."""
