"""What one forward and backward pass shows of every layer: size and likeness of signals, gates, gradients, copies of units."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from theodolite.measure.propagation.signal_flow import ACTIVATIONS, is_matrix_layer

SAMPLES, COLUMNS = 64, 4096
"""Samples and numbers a sample (units and positions, evenly spread) that a layer's signal is judged by."""

CLOSED, NARROWED = 1e-6, 0.05
"""Slopes of an activation, beside its steepest, under which a gate is shut for a sample, and under which it is saturated."""


@dataclass(frozen=True, kw_only=True)
class LayerSigns:
    """One layer with weights as a batch went through it and its gradient came back.

    ``mean_square`` is that of its outputs; ``unlike`` the share of it by which samples differ, $\\sum|z_i-\\bar z|^2/\\sum|z_i|^2$
    (0 when all inputs have merged, 1 when they have nothing in common). ``dead`` is the share of its units whose activation has no
    slope on any sample, ``saturated`` the share of unit and sample with next to none; None where no activation follows. ``copies``
    is the share of units that equal another one in weights and in gradient, and so always will.
    """

    name: str
    kind: str
    units: int
    mean_square: float
    unlike: float
    rank: float
    weight_norm: float
    gradient_norm: float | None
    entries: int
    activation: str | None
    dead: float | None
    saturated: float | None
    copies: float


@dataclass(frozen=True)
class VitalSigns:
    """All layers in the order in which they ran, the loss, and the parameters that no gradient reached."""

    layers: tuple[LayerSigns, ...]
    loss: float
    output: Tensor = field(repr=False)
    untouched: tuple[str, ...] = ()
    zero: tuple[str, ...] = ()
    gradient_norm: float = math.nan


@dataclass
class _Seen:
    """What is gathered of a layer while it runs."""

    name: str
    module: nn.Module
    signal: tuple[float, float, float] = (math.nan, math.nan, math.nan)
    units: int = 0
    activation: str | None = None
    dead: float | None = None
    saturated: float | None = None


def vital_signs(model: nn.Module, loss_of: Callable[[], tuple[Tensor, Tensor]]) -> VitalSigns:
    """Every layer's signs while ``loss_of()`` runs the model and returns (loss, output); gradients are not accumulated.

    >>> model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    >>> x = torch.randn(8, 3)
    >>> found = vital_signs(model, lambda: (model(x).square().mean(), model(x)))
    >>> [layer.name for layer in found.layers][:2]
    ['0', '2']
    """
    watcher = _Gates()
    own = {name: p for name, p in model.named_parameters() if p.requires_grad}
    with ExitStack() as stack:
        for name, module in model.named_modules():
            if is_matrix_layer(module):
                hook = functools.partial(watcher.layer, name)
                stack.callback(module.register_forward_hook(hook).remove)
        with torch.enable_grad(), watcher:
            value, output = loss_of()
    slopes: dict[str, Tensor | None] = dict.fromkeys(own)
    if value.requires_grad and own:
        found = torch.autograd.grad(value, list(own.values()), allow_unused=True)
        slopes = dict(zip(own, found, strict=True))
    total = math.sqrt(sum(float(g.double().square().sum()) for g in slopes.values() if g is not None))
    layers = tuple(_layer(seen, slopes) for seen in watcher.seen.values())
    unused = tuple(name for name, slope in slopes.items() if slope is None)
    zero = tuple(name for name, slope in slopes.items() if slope is not None and not bool(slope.any()))
    return VitalSigns(layers, float(value.detach()), output.detach(), unused, zero, total)


class _Gates(TorchFunctionMode):
    """Sees every layer's output and every activation behind it, written as a module or as a function."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, _Seen] = {}
        self.home: Any = WeakIdKeyDictionary()

    def layer(self, name: str, module: nn.Module, args: Any, output: Any) -> None:
        """A hook: the signal behind a layer with weights."""
        z = output if isinstance(output, Tensor) else next((t for t in output if isinstance(t, Tensor)), None)
        if z is None or not z.is_floating_point() or z.ndim < 2:
            return
        with torch._C.DisableTorchFunction(), torch.no_grad():
            if name not in self.seen:
                axis = 1 if z.ndim > 2 and "Conv" in type(module).__name__ else z.ndim - 1
                self.seen[name] = _Seen(name, module, _signal(z.detach()), z.shape[axis])
        self.home[z] = name

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the function; what it returns belongs to the layer that its argument came from."""
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        given = args[0] if args and isinstance(args[0], Tensor) else None
        if given is None or given not in self.home or not isinstance(result, Tensor):
            return result
        home = self.home[given]
        name = str(getattr(func, "__name__", func)).strip("_").removesuffix("_")
        seen = self.seen[home]
        if name in ACTIVATIONS and seen.activation is None and result.shape == given.shape:
            with torch._C.DisableTorchFunction():
                seen.activation = name
                seen.dead, seen.saturated = _gates(func, given.detach(), args[1:], kwargs, seen.module)
        if result not in self.home:
            self.home[result] = home
        return result


def _few(z: Tensor) -> Tensor:
    """Some samples, evenly spread, in float64 where they are judged."""
    return z[:: max(1, len(z) // SAMPLES)][:SAMPLES]


def _signal(z: Tensor) -> tuple[float, float, float]:
    """Mean square, the share of it by which samples differ, and the effective rank of the differences."""
    rows = _few(z).reshape(min(len(z), SAMPLES), -1) if len(z) <= SAMPLES else _few(z).flatten(1)
    rows = rows[:, :: max(1, rows.shape[1] // COLUMNS)].double()
    total = float(rows.square().mean())
    if not math.isfinite(total) or total == 0.0 or len(rows) < 2:
        return total, math.nan if total else 0.0, math.nan
    centred = rows - rows.mean(0)
    unlike = float(centred.square().mean()) / total * len(rows) / (len(rows) - 1)
    values = torch.linalg.eigvalsh(centred @ centred.mT).clamp(min=0)
    rank = float(values.sum() ** 2 / values.square().sum()) if bool(values.any()) else 0.0
    return total, unlike, rank


def _gates(func: Any, z: Tensor, rest: Any, kwargs: Any, module: nn.Module) -> tuple[float, float]:
    """Shares of units that are shut on every sample, and of units and samples that are saturated."""
    kwargs = {key: value for key, value in kwargs.items() if key != "inplace"}
    few = _few(z).float().clone().requires_grad_()
    with torch.enable_grad():
        answer = func(few.clone(), *rest, **kwargs)
        (slope,) = torch.autograd.grad(answer.sum(), few)
    steepest = float(slope.abs().max())
    if not math.isfinite(steepest) or steepest == 0.0:
        return 1.0, 1.0
    # beside 1, the slope of an open gate: a layer that is wholly saturated has no steep place of its own
    share = slope.abs() / max(steepest, _open_slope(func, rest, kwargs))
    axis = 1 if few.ndim > 2 and "Conv" in type(module).__name__ else few.ndim - 1
    by_unit = share.movedim(axis, 0).flatten(1)
    return float((by_unit.amax(1) < CLOSED).double().mean()), float((share < NARROWED).double().mean())


def _open_slope(func: Any, rest: Any, kwargs: Any) -> float:
    z = torch.linspace(-3, 3, 61, requires_grad=True)
    with torch.enable_grad():
        (slope,) = torch.autograd.grad(func(z.clone(), *rest, **kwargs).sum(), z)
    return float(slope.abs().max())


def _layer(seen: _Seen, slopes: dict[str, Tensor | None]) -> LayerSigns:
    weight = seen.module.weight
    assert isinstance(weight, Tensor)
    slope = slopes.get(f"{seen.name}.weight".lstrip("."))
    mean_square, unlike, rank = seen.signal
    return LayerSigns(
        name=seen.name,
        kind=type(seen.module).__name__,
        units=seen.units,
        mean_square=mean_square,
        unlike=unlike,
        rank=rank,
        weight_norm=float(weight.detach().double().norm()),
        gradient_norm=None if slope is None else float(slope.double().norm()),
        entries=weight.numel(),
        activation=seen.activation,
        dead=seen.dead,
        saturated=seen.saturated,
        copies=_copies(seen.module, slope),
    )


def _copies(module: nn.Module, slope: Tensor | None) -> float:
    """The share of rows that equal another one, weights and gradients alike, told by a random projection."""
    weight = module.weight
    assert isinstance(weight, Tensor)
    if type(module).__name__ == "Conv1D" or weight.ndim < 2 or len(weight) < 2 or slope is None:
        return 0.0
    generator = torch.Generator().manual_seed(0)
    columns = weight[0].numel()
    draw = torch.randn(columns, 2, generator=generator, dtype=torch.float64).to(weight.device)
    marks = torch.cat(
        [weight.detach().reshape(len(weight), -1).double() @ draw, slope.reshape(len(weight), -1).double() @ draw],
        dim=1,
    )  # (units, 4)
    scale = marks.abs().amax(0).clamp(min=1e-300)
    rounded = torch.round(marks / scale * 1e5)
    distinct = len(torch.unique(rounded, dim=0))
    return 1.0 - distinct / len(weight)
