"""The layers of a convolutional network, as its kernel sees them: variances, windows, averages."""

from dataclasses import dataclass
from typing import Literal

from theodolite.core.checks import InputError, one_of
from theodolite.theory.kernels._map_sequences import Dense, Nonlinear, Normalized, Sum


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


@dataclass(frozen=True)
class Attention:
    r"""Self-attention of the positions of an image or a sequence, in one of the two forms whose kernel is closed.

    Without ``key`` the keys are the queries and logits are divided by the channels of a head: they tend to
    $G=C_b^q+C_w^qK(x,x)$, and $K\to C_b^o+C_w^o\,\zeta(G)\,K^v\zeta(G')^\top$ with $K^v=C_b^v+C_w^vK$ and $\zeta$ the softmax
    of each row, or the identity. $\Theta$ goes as K does: what queries learn moves nothing. With a ``key`` of its own and logits
    divided by the root of the channels they stay random, and for the identity and many heads
    $K\to C_b^o+C_w^oK^q\sum_{ab}K^k_{ab}K^v_{ab}$, $\Theta$ by the rule of products; a softmax then has no closed form.
    Positions are not told apart; masks are not known. Source: hron2020, sections 3 and 4.
    """

    query: Dense
    value: Dense
    output: Dense
    key: Dense | None = None
    weighting: Literal["softmax", "identity"] = "softmax"

    def __post_init__(self) -> None:
        one_of(("softmax", "identity"), weighting=self.weighting)
        if self.key is not None and self.weighting == "softmax":
            raise InputError(
                "expected weighting 'identity' where keys have weights of their own, got 'softmax', whose kernel has no "
                "closed form; leave out key, or give weighting='identity'"
            )


ImageProgram = tuple[Convolution | Average | Attention | Flatten | Dense | Nonlinear | Normalized | Sum, ...]
"""Layers in order."""
