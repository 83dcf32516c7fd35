"""What flows into and out of the layers of a model, gathered over batches in one pass."""

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.checks import InputError, tensors_in
from theodolite.measure.propagation.signal_flow import is_matrix_layer
from theodolite.measure.spectra import FeatureCovariance, feature_rows

WIDEST = 4096
"""Features of more dimensions than this are left out: their covariance would not fit where the model does."""


def matrix_layers(model: nn.Module) -> dict[str, nn.Module]:
    """The layers that multiply by a matrix of weights, by name."""
    return {name: module for name, module in model.named_modules() if is_matrix_layer(module)}


@torch.no_grad()
def feature_covariances(
    run: Callable[[Any], Any], batches: Iterable[Any], layers: Mapping[str, nn.Module]
) -> dict[str, FeatureCovariance]:
    """The covariance of every layer's output over all batches, one pass, positions pooled.

    ``run`` calls the model on a batch. A layer that runs twice in a pass counts both times; one whose features have more
    than `WIDEST` dimensions is left out.
    """
    found: dict[str, FeatureCovariance] = {}

    def keep(name: str, module: nn.Module, args: Any, output: Any) -> None:
        features = output[0] if isinstance(output, tuple | list) else output
        if isinstance(features, Tensor) and features.ndim >= 2:
            rows = feature_rows(features)
            if rows.shape[1] <= WIDEST:
                part = FeatureCovariance.of(rows)
                found[name] = found[name] + part if name in found else part

    with ExitStack() as stack:
        for name, module in layers.items():
            stack.callback(module.register_forward_hook(partial(keep, name)).remove)
        for batch in batches:
            run(batch)
    return found


@torch.no_grad()
def layer_inputs(run: Callable[[], Any], layers: Mapping[str, nn.Module]) -> dict[str, Tensor]:
    """What each linear layer is given in one pass, (rows, features); positions are rows."""
    found: dict[str, Tensor] = {}

    def keep(name: str, module: nn.Module, args: tuple[Any, ...]) -> None:
        if args and isinstance(args[0], Tensor) and name not in found:
            found[name] = args[0].detach().flatten(0, -2)

    with ExitStack() as stack:
        for name, module in layers.items():
            stack.callback(module.register_forward_pre_hook(partial(keep, name)).remove)
        run()
    return found


@torch.no_grad()
def steering_gains(
    run: Callable[[], Any], layer: nn.Module, directions: Tensor, *, perturbation: float = 1e-2
) -> Tensor:
    r"""By how much a direction added behind a layer changes the model's answer: $|f(h+v)-f(h-v)|/2|v|$, for each direction.

    ``directions`` are (count, features); each is added, scaled to ``perturbation`` of the features' root mean square norm, to
    every sample and position, and the norm of the change of the answer is averaged over samples.
    """
    return steering_changes(run, layer, directions, perturbation=perturbation).mean(1)


@torch.no_grad()
def steering_changes(
    run: Callable[[], Any], layer: nn.Module, directions: Tensor, *, perturbation: float = 1e-2
) -> Tensor:
    """The same for each direction and sample, (directions, samples)."""
    gains = []
    for direction in directions:
        ends = [_answer_with(run, layer, direction, sign * perturbation) for sign in (1.0, -1.0)]
        (high, size), (low, _) = ends
        change = (high - low).flatten(1).norm(dim=1) / 2
        gains.append(change / (perturbation * size))
    return torch.stack(gains)


@torch.no_grad()
def path_gains(run: Callable[[], Any], layer: nn.Module, directions: Tensor, *, perturbation: float = 1e-2) -> Tensor:
    r"""The relative change of the answer over that behind a layer, $\frac{|\Delta f|/|f|}{|\Delta h|/|h|}$.

    For each direction and sample, (directions, samples); 1 where what follows only scales. Arguments as for `steering_gains`.
    """
    gains = []
    for direction in directions:
        (high, _), (low, _) = (_answer_with(run, layer, direction, sign * perturbation) for sign in (1.0, -1.0))
        size = ((high + low) / 2).flatten(1).norm(dim=1).clamp_min(1e-300)
        gains.append((high - low).flatten(1).norm(dim=1) / (2 * perturbation * size))
    return torch.stack(gains)


def _answer_with(run: Callable[[], Any], layer: nn.Module, direction: Tensor, step: float) -> tuple[Tensor, Tensor]:
    if not 0 < abs(step) < math.inf:
        raise InputError(f"expected a positive perturbation, got {abs(step)}; 0.01 is usual")
    if not bool(direction.any()):
        raise InputError("expected directions that are not zero, got one that is; leave it out")
    sizes: list[Tensor] = []

    def hook(module: nn.Module, args: Any, output: Any) -> Any:
        features = output[0] if isinstance(output, tuple | list) else output
        axis = 1 if features.ndim >= 4 else -1
        shape = [1] * features.ndim
        shape[axis] = -1
        size = features.norm(dim=axis).square().mean().sqrt()
        sizes.append(size * (features.numel() / len(features) / features.shape[axis]) ** 0.5)
        moved = features + step * size * (direction / direction.norm()).to(features).reshape(shape)
        return type(output)((moved, *output[1:])) if isinstance(output, tuple | list) else moved

    with layer.register_forward_hook(hook):
        answer = run()
    if not sizes:
        raise InputError(
            "expected a layer that runs when the model does, got one that did not; pass a layer of this model"
        )
    return next(tensors_in(answer)).double(), sizes[0].double()
