r"""Layers whose weights are differences of squares, and self-attention whose infinitely wide limit is known.

Plain gradient descent on $w=u^2-v^2$ acts multiplicatively: descent of rate $\eta$ on u and v changes the logarithms of
$u^2$ and $v^2$ by $\mp4\eta g$, to first order the exponentiated gradient of rate $4\eta$ (`theodolite.optim.EGUpm`, with
$\beta=2\alpha^2$ where u = v = alpha at the start). Source: amid2020.
"""

from typing import Any, Literal, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from theodolite.core.checks import InputError

Module = TypeVar("Module", bound=nn.Module)


class Spindly(nn.Module):
    r"""A linear layer with weight $u^2-v^2$, or $u^2$ where it is to be ``positive``: two parallel edges for each weight.

    ``scale`` is the start of every entry of u and v (called alpha in the literature), so the weight starts at zero, or at
    ``scale``$^2$; the default, ``in_features ** -0.5``, makes ``scale``$^2$ one over the inputs. A smaller one gives sparser
    solutions and a longer start. The bias starts at zero. Two layers in a row that start at zero do not move: give
    the second one random weights and `spindly`.

    >>> layer = Spindly(4, 2)
    >>> layer.weight.abs().max().item(), sorted(layer.state_dict())
    (0.0, ['bias', 'minus', 'plus'])
    """

    minus: nn.Parameter | None
    bias: nn.Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        scale: float | None = None,
        positive: bool = False,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        scale = in_features**-0.5 if scale is None else scale
        _check_scale(scale)
        self.in_features, self.out_features, self.scale = in_features, out_features, scale
        start = torch.full((out_features, in_features), scale, device=device, dtype=dtype)
        self.plus = nn.Parameter(start)
        self.register_parameter("minus", None if positive else nn.Parameter(start.clone()))
        zeros = torch.zeros(out_features, device=device, dtype=dtype) if bias else None
        self.register_parameter("bias", None if zeros is None else nn.Parameter(zeros))

    @property
    def weight(self) -> Tensor:
        """The matrix that is applied, (out_features, in_features)."""
        return _difference(self.plus, self.minus)

    def forward(self, x: Tensor) -> Tensor:
        """The inputs times the weight, plus the bias."""
        return nn.functional.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        """What a print of the layer shows."""
        kind = f"bias={self.bias is not None}, scale={self.scale:g}, positive={self.minus is None}"
        return f"in_features={self.in_features}, out_features={self.out_features}, {kind}"


class Squares(nn.Module):
    """The parametrization behind `spindly`, for ``torch.nn.utils.parametrize``."""

    def __init__(self, scale: float, positive: bool = False) -> None:
        super().__init__()
        _check_scale(scale)
        self.scale, self.positive = scale, positive

    def forward(self, plus: Tensor, minus: Tensor | None = None) -> Tensor:
        """The weight."""
        return _difference(plus, minus)

    def right_inverse(self, weight: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        r"""The u and v of this weight for which $uv$ is ``scale`` squared everywhere."""
        w = weight.detach()
        if self.positive:
            if w.numel() and not float(w.min()) > 0:
                raise InputError(f"expected positive weights, got {float(w.min()):g}; leave out positive=True")
            return w.sqrt()
        wide = w.to(torch.promote_types(w.dtype, torch.float32))
        large = ((wide.abs() + torch.hypot(wide, torch.full_like(wide, 2 * self.scale**2))) / 2).sqrt()
        small = self.scale**2 / large  # the other one by the product: a difference would cancel
        plus, minus = torch.where(wide >= 0, large, small), torch.where(wide >= 0, small, large)
        return plus.to(w.dtype), minus.to(w.dtype)


def spindly(module: Module, name: str = "weight", *, scale: float | None = None, positive: bool = False) -> Module:
    r"""Give a parameter of any module the form $u^2-v^2$; its present value stays, to rounding. The module is changed.

    ``scale`` as in `Spindly`, by default one over the root of the fan-in. The module's state dict then holds
    ``parametrizations.<name>.original0`` and ``original1``; ``parametrize.remove_parametrizations`` undoes it.

    >>> layer = spindly(nn.Linear(3, 2))
    >>> sorted(n for n, _ in layer.named_parameters())
    ['bias', 'parametrizations.weight.original0', 'parametrizations.weight.original1']
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, nn.Parameter):
        raise InputError(
            f"expected the name of a parameter, got {name!r}; {type(module).__name__} has none of that name"
        )
    if scale is None:
        scale = max(1, weight[0].numel() if weight.ndim > 1 else weight.numel()) ** -0.5
    parametrize.register_parametrization(module, name, Squares(scale, positive))
    return module


class SelfAttention(nn.Module):
    r"""Self-attention of a sequence (n, length, features) in one of the forms that `theodolite.kernel_of` can read.

    ``tied`` keys are the queries, and logits are divided by the channels of a head: as these grow the logits tend to fixed
    numbers. Untied keys have weights of their own, logits are divided by the root of the channels, and then only the
    ``weighting`` "identity", which takes the logits themselves for weights, has a closed kernel, as heads grow in number.
    Source: hron2020.

    >>> SelfAttention(6, heads=2)(torch.zeros(1, 4, 6)).shape
    torch.Size([1, 4, 6])
    """

    def __init__(
        self,
        features: int,
        *,
        heads: int = 1,
        channels: int | None = None,
        tied: bool = True,
        weighting: Literal["softmax", "identity"] = "softmax",
        bias: bool = False,
    ) -> None:
        super().__init__()
        inner = features if channels is None else heads * channels
        if heads < 1 or inner < 1 or inner % heads:
            raise InputError(
                f"expected features to be a multiple of heads, got {features} and {heads}; give the channels of a head"
            )
        if weighting not in ("softmax", "identity"):
            raise InputError(f"expected weighting 'softmax' or 'identity', got {weighting!r}")
        self.heads, self.tied, self.weighting = heads, tied, weighting
        self.query = nn.Linear(features, inner, bias=bias)
        self.key = None if tied else nn.Linear(features, inner, bias=bias)
        self.value = nn.Linear(features, inner, bias=bias)
        self.output = nn.Linear(inner, features, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """What each position takes up of all positions, (n, length, features)."""
        query, value = (self._apart(layer(x)) for layer in (self.query, self.value))
        key = query if self.key is None else self._apart(self.key(x))
        channels = query.shape[-1]
        logits = query @ key.mT / (channels if self.key is None else channels**0.5)
        weights = logits.softmax(-1) if self.weighting == "softmax" else logits
        return self.output((weights @ value).transpose(1, 2).flatten(2))

    def _apart(self, x: Tensor) -> Tensor:
        """(n, length, heads * channels) as (n, heads, length, channels)."""
        return x.reshape(*x.shape[:2], self.heads, -1).transpose(1, 2)


def _difference(plus: Tensor, minus: Tensor | None) -> Tensor:
    # The product of sum and difference is exact to rounding, also where squares would fall below half precision.
    return plus.square() if minus is None else (plus - minus) * (plus + minus)


def _check_scale(scale: float) -> None:
    if not scale > 0:
        raise InputError(f"expected a positive scale, got {scale}; from zero the squares never move")
