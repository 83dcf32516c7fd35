"""Torch networks built and initialized as a specification says."""

import math

import torch
from torch import Tensor, nn

from theodolite.core.checks import InputError
from theodolite.theory import Activation, Mlp
from theodolite.theory._elementwise import MODULES


class Elementwise(nn.Module):
    """A layer that applies an activation.

    >>> Elementwise(Activation("relu"))(torch.tensor([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    def __init__(self, activation: Activation) -> None:
        super().__init__()
        self.activation = activation

    def forward(self, z: Tensor) -> Tensor:
        """The activation of each entry."""
        return self.activation(z)

    def extra_repr(self) -> str:
        """The activation's name, for printing."""
        return self.activation.name


LAYERS = {name: layer for layer, name in MODULES.items() if layer is not nn.PReLU}
"""The layers of torch that apply an activation as it is; the slope of a PReLU is learned."""


@torch.no_grad()
def network(
    spec: Mlp,
    inputs: int,
    outputs: int,
    *,
    width: int | None = None,
    generator: torch.Generator | None = None,
    dtype: torch.dtype = torch.float32,
) -> nn.Sequential:
    r"""Linear layers and activations in turn: weights $N(0,C_w/\mathrm{fan\,in})$, biases $N(0,C_b)$.

    The hidden widths are those of the specification, or ``width`` for each of its hidden layers.

    >>> net = network(Mlp(2, "relu", 2.0), 10, 3, width=400, generator=torch.Generator().manual_seed(0))
    >>> [type(layer).__name__ for layer in net]
    ['Linear', 'ReLU', 'Linear', 'ReLU', 'Linear']
    >>> round(400 * net[2].weight.var().item(), 1)
    2.0
    """
    widths = _widths(spec, width)
    if inputs < 1 or outputs < 1:
        raise InputError(f"expected at least one input and one output, got {inputs} and {outputs}")
    layers: list[nn.Module] = []
    for fan_in, fan_out, (C_w, C_b) in zip((inputs, *widths), (*widths, outputs), spec.variances_of(None), strict=True):
        layer = _empty_linear(fan_in, fan_out, dtype)
        layer.weight.normal_(0.0, math.sqrt(C_w / fan_in), generator=generator)
        layer.bias.normal_(0.0, math.sqrt(C_b), generator=generator)
        layers += [layer, _module(spec.sigma)]
    return nn.Sequential(*layers[:-1])


def _empty_linear(fan_in: int, fan_out: int, dtype: torch.dtype) -> nn.Linear:
    """A layer whose weights are not drawn: torch's own skip_init takes as long as drawing them twice."""
    layer = nn.Linear.__new__(nn.Linear)
    nn.Module.__init__(layer)
    layer.in_features, layer.out_features = fan_in, fan_out
    layer.weight = nn.Parameter(torch.empty(fan_out, fan_in, dtype=dtype))
    layer.bias = nn.Parameter(torch.empty(fan_out, dtype=dtype))
    return layer


def _widths(spec: Mlp, width: int | None) -> tuple[int, ...]:
    if (spec.widths is None) == (width is None) and spec.hidden_layers:
        raise InputError(
            f"expected the widths of the hidden layers once, got {'both' if width else 'neither'} a specification's "
            "widths and a width; give Mlp(widths=...) or width=..."
        )
    return spec.widths if spec.widths is not None else (width or 0,) * (spec.hidden_layers or 0)


def _module(activation: Activation) -> nn.Module:
    """Torch's own module where the plain name means one, so that printing and surveys recognize it."""
    return LAYERS[activation.name]() if activation.name in LAYERS else Elementwise(activation)
