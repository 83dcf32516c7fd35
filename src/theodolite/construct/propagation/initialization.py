"""Critical initialization of any module, in place."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.checks import InputError, InputTypeError
from theodolite.measure.propagation import fan_in
from theodolite.theory.propagation import Criticality, criticality

LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)


@dataclass(frozen=True)
class Initialized:
    """Which layers were set to criticality, and which were left as they were, with the reason."""

    criticality: Criticality
    layers: tuple[str, ...]
    untouched: dict[str, str]


@torch.no_grad()
def initialize_(
    model: nn.Module, activation: Any, *, mean_square: float | None = None, generator: torch.Generator | None = None
) -> Initialized:
    r"""Set the weights of linear and convolutional layers to $N(0, C_w/\text{fan in})$ and biases to $N(0, C_b)$.

    $(C_w, C_b)$ is the critical point of ``activation``. With ``mean_square``, the mean of $|x|^2/n_0$ over the data,
    the first layer's variance is chosen so that the signal starts at the critical fixed point itself (it matters for
    half-stable activations such as GELU). Frozen parameters and other kinds of layer are left alone; the answer says
    which. Source: roberts2022, chapter 5; he2015 for ReLU.

    >>> model = nn.Sequential(nn.Linear(400, 500), nn.ReLU(), nn.Linear(500, 500))
    >>> done = initialize_(model, "relu", generator=torch.Generator().manual_seed(0))
    >>> done.layers, round(500 * model[2].weight.var().item(), 1)
    (('0', '2'), 2.0)
    """
    if not isinstance(model, nn.Module):
        raise InputTypeError(f"expected an nn.Module, got {type(model).__name__}; create the model first")
    point = criticality(activation)
    if point.weight_variance is None or point.bias_variance is None:
        raise InputError(
            f"expected an activation that has a critical initialization, got {activation!r}: {point.reason}"
        )
    done: list[str] = []
    left: dict[str, str] = {}
    taken = {
        id(p): name
        for name, layer in model.named_modules()
        if not isinstance(layer, LAYERS)
        for p in layer.parameters(recurse=False)
        if p.ndim >= 2
    }
    for name, layer in model.named_modules():
        reason = _reason_to_leave(layer, taken)
        if reason:
            left[name or type(layer).__name__] = reason
        elif isinstance(layer, LAYERS):
            aimed = mean_square is not None and not done
            variance = _first_variance(point, mean_square) if aimed else point.weight_variance  # type: ignore[arg-type]
            _fill(layer, variance, point.bias_variance, generator)
            taken[id(layer.weight)] = name
            done.append(name)
    return Initialized(point, tuple(done), left)


def _reason_to_leave(layer: nn.Module, taken: dict[int, str]) -> str:
    if not isinstance(layer, LAYERS):
        matrices = any(p.ndim >= 2 for p in layer.parameters(recurse=False))
        return f"{type(layer).__name__} is not a linear or convolutional layer" if matrices else ""
    if not isinstance(layer.weight, nn.Parameter):
        return "its weight is computed by a parametrization"
    if id(layer.weight) in taken:
        return f"shares its weight with {taken[id(layer.weight)]}"
    return "" if layer.weight.requires_grad else "frozen"


def _first_variance(point: Criticality, mean_square: float) -> float:
    assert point.weight_variance is not None and point.bias_variance is not None
    if mean_square <= 0:
        raise InputError(
            f"expected a positive mean square, got {mean_square}; pass the mean of |x|^2 / n over the data"
        )
    if not point.fixed_point:  # any scale is a fixed point, or none but zero: nothing to aim at
        return point.weight_variance
    return (point.fixed_point - point.bias_variance) / mean_square


def _fill(layer: nn.Module, weight_variance: float, bias_variance: float, generator: torch.Generator | None) -> None:
    assert isinstance(layer.weight, Tensor)
    inputs = fan_in(tuple(layer.weight.shape), layer)
    for parameter, variance in ((layer.weight, weight_variance / inputs), (layer.bias, bias_variance)):
        if isinstance(parameter, nn.Parameter) and parameter.requires_grad:
            # drawn on the CPU in float32: the same seed gives the same network on every device and in every precision
            draw = torch.randn(parameter.shape, generator=generator, dtype=torch.float32) * variance**0.5
            parameter.copy_(draw)
