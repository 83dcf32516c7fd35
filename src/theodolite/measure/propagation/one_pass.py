"""What one forward and backward pass shows of every layer: size and likeness of signals, gates, gradients, copies of units."""

import functools
import math
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from theodolite.measure.propagation.signal_flow import ACTIVATIONS, is_matrix_layer

SAMPLES, COLUMNS = 64, 4096
"""Samples and numbers a sample (units and positions, evenly spread) that a layer's signal is judged by."""

GATE_SAMPLES = 256
"""Samples that gates are judged by: a unit that opens on one sample in fifty looks dead in 0.6 % of draws."""

CLOSED, NARROWED = 1e-6, 0.05
"""Slopes of an activation, beside its steepest, under which a gate is shut for a sample, and under which it is saturated."""


@dataclass(frozen=True, kw_only=True)
class LayerSigns:
    """One layer with weights as a batch went through it and its gradient came back.

    ``mean_square`` is that of its outputs; ``unlike`` the share of it by which samples differ,
    $\\sum|z_i-\\bar z|^2/\\sum|z_i|^2$ (0 when all inputs have merged, 1 when they have nothing in common). ``dead`` is the share
    of its units whose activation has no slope on any sample, ``saturated`` the share of unit and sample with next to none; None
    where no activation follows. ``bounded`` and ``steepest`` tell whether that activation stays within bounds, and its largest
    slope. ``copies`` is the share of units that equal another one in weights and in gradient, and so always will. ``places`` is
    the share of the mean square within a sample by which its places (tokens, pixels) differ; None where a sample has one
    place. ``input_square``, ``input_unlike``, ``input_rank`` and ``input_places`` are the same of what the layer was given.
    """

    name: str
    kind: str
    units: int
    mean_square: float
    unlike: float
    rank: float = math.nan
    weight_norm: float = math.nan
    gradient_norm: float | None = None
    entries: int = 0
    activation: str | None = None
    dead: float | None = None
    saturated: float | None = None
    copies: float = 0.0
    bounded: bool = False
    steepest: float = math.nan
    places: float | None = None
    input_square: float = math.nan
    input_unlike: float = math.nan
    input_rank: float = math.nan
    input_places: float | None = None

    @property
    def relative_gradient(self) -> float | None:
        """The gradient's norm beside the weights': what a plain step of size 1 would move, as a share."""
        if self.gradient_norm is None or not self.weight_norm:
            return None
        return self.gradient_norm / self.weight_norm


@dataclass(frozen=True)
class VitalSigns:
    """All layers in the order in which they ran, the loss, and the parameters that no gradient reached.

    ``untouched`` are the parameters that want a gradient and get none, ``zero`` those whose gradient is exactly zero, ``alike``
    the matrices whose rows are all the same, in weight and in gradient.
    """

    layers: tuple[LayerSigns, ...]
    loss: float
    output: Tensor = field(repr=False)
    untouched: tuple[str, ...] = ()
    zero: tuple[str, ...] = ()
    gradient_norm: float = math.nan
    alike: tuple[str, ...] = ()


def vital_signs(model: nn.Module, loss_of: Callable[[], tuple[Tensor, Tensor]]) -> VitalSigns:
    """Every layer's signs while ``loss_of()`` runs the model and returns (loss, output); gradients are not accumulated.

    Slopes are NaN where no activation follows.

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
        stack.callback(model.register_forward_hook(watcher.left).remove)  # what the loss does is no activation
        with torch.enable_grad(), watcher:
            value, output = loss_of()
    slopes: dict[str, Tensor | None] = dict.fromkeys(own)
    if value.requires_grad and own:
        found = torch.autograd.grad(value, list(own.values()), allow_unused=True)
        slopes = dict(zip(own, found, strict=True))
    total = math.sqrt(sum(float(g.double().square().sum()) for g in slopes.values() if g is not None))
    layers = tuple(_weighed(seen, watcher.modules[name], slopes) for name, seen in watcher.seen.items())
    unused = tuple(name for name, slope in slopes.items() if slope is None)
    zero = tuple(name for name, slope in slopes.items() if slope is not None and not bool(slope.any()))
    alike = tuple(name for name, p in own.items() if p.ndim >= 2 and len(p) > 1 and _all_alike(p, slopes[name]))
    return VitalSigns(layers, float(value.detach()), output.detach(), unused, zero, total, alike)


class _Gates(TorchFunctionMode):
    """Sees every layer's output and every activation behind it, written as a module or as a function."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, LayerSigns] = {}
        self.modules: dict[str, nn.Module] = {}
        self.home: Any = WeakIdKeyDictionary()

    def layer(self, name: str, module: nn.Module, args: Any, output: Any) -> None:
        """A hook: the signal behind a layer with weights."""
        z = output if isinstance(output, Tensor) else next((t for t in output if isinstance(t, Tensor)), None)
        if z is None or not z.is_floating_point() or z.ndim < 2:
            return
        with torch._C.DisableTorchFunction(), torch.no_grad():
            if name not in self.seen:
                axis, kind = _axis(z, module), type(module).__name__
                square, unlike, rank = _signal(z.detach())
                found = LayerSigns(
                    name=name, kind=kind, units=z.shape[axis], mean_square=square, unlike=unlike, rank=rank
                )
                if args and isinstance(args[0], Tensor) and args[0].is_floating_point():
                    given = args[0].detach()
                    square, unlike, rank = _signal(given)
                    found = replace(found, input_square=square, input_unlike=unlike, input_rank=rank)
                    found = replace(found, input_places=_places(given, _axis(given, module)))
                self.seen[name] = replace(found, places=_places(z.detach(), axis))
                self.modules[name] = module
        self.home[z] = name

    def left(self, module: nn.Module, args: Any, output: Any) -> None:
        """A hook: the model has answered, and what follows is not its own."""
        self.home.clear()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the function; what it returns belongs to the layer that its argument came from."""
        kwargs = kwargs or {}
        given = args[0] if args and isinstance(args[0], Tensor) else None
        home = self.home.get(given) if given is not None else None
        name = str(getattr(func, "__name__", func)).strip("_")
        seen = None if home is None else self.seen[home]
        before = None
        gate = seen is not None and name in ACTIVATIONS and seen.activation is None
        # one number per sample of many units is of a loss, say
        if gate and seen is not None and given is not None and (given.ndim > 1 or seen.units == 1):
            with torch._C.DisableTorchFunction():  # an activation in place leaves nothing of what it was given
                before = given.detach()[:: max(1, len(given) // GATE_SAMPLES)][:GATE_SAMPLES].clone()
                before = before if before.ndim > 1 else before[:, None]
        result = func(*args, **kwargs)
        if home is None or seen is None or given is None or not isinstance(result, Tensor):
            return result
        if before is not None and result.shape == given.shape:
            with torch._C.DisableTorchFunction():
                dead, saturated = _gates(func, before, args[1:], kwargs, self.modules[home])
                bounded, steepest = _is_bounded(func, args[1:], kwargs), _open_slope(func, args[1:], kwargs)
                seen = replace(seen, dead=dead, saturated=saturated, bounded=bounded, steepest=steepest)
                self.seen[home] = replace(seen, activation=name)
        if result not in self.home:
            self.home[result] = home
        return result


def _axis(z: Tensor, module: nn.Module) -> int:
    """The axis along which a layer's units lie."""
    return 1 if z.ndim > 2 and "Conv" in type(module).__name__ and type(module).__name__ != "Conv1D" else z.ndim - 1


def _few(z: Tensor) -> Tensor:
    """Some samples, evenly spread."""
    return z[:: max(1, len(z) // SAMPLES)][:SAMPLES]


def _signal(z: Tensor) -> tuple[float, float, float]:
    """Mean square, the share of it by which samples differ, and the effective rank of the differences."""
    rows = _few(z).reshape(min(len(z), SAMPLES), -1) if len(z) <= SAMPLES else _few(z).flatten(1)
    rows = rows[:, :: max(1, rows.shape[1] // COLUMNS)].double()
    total = float(rows.square().mean())
    if not math.isfinite(total) or total == 0.0 or len(rows) < 2:
        return total, math.nan if total else 0.0, math.nan
    centered = rows - rows.mean(0)
    unlike = float(centered.square().mean()) / total * len(rows) / (len(rows) - 1)
    values = torch.linalg.eigvalsh(centered @ centered.mT).clamp(min=0)
    rank = float(values.sum() ** 2 / values.square().sum()) if bool(values.any()) else 0.0
    return total, unlike, rank


def _places(z: Tensor, axis: int) -> float | None:
    """The share of the mean square within a sample by which its places differ."""
    if z.ndim < 3:
        return None
    rows = _few(z).movedim(axis, -1).flatten(1, -2)  # (samples, places, units)
    rows = rows[:, :: max(1, rows.shape[1] // 64)].double()
    total = float(rows.square().sum())
    if rows.shape[1] < 2 or not total:
        return None
    return float((rows - rows.mean(1, keepdim=True)).square().sum()) / total


def _gates(func: Any, z: Tensor, rest: Any, kwargs: Any, module: nn.Module) -> tuple[float, float]:
    """Shares of units that are shut on every sample, and of units and samples that are saturated."""
    kwargs = {key: value for key, value in kwargs.items() if key != "inplace"}
    few = z.float().clone().requires_grad_()
    with torch.enable_grad():
        answer = func(few.clone(), *rest, **kwargs)
        (slope,) = torch.autograd.grad(answer.sum(), few)
    steepest = float(slope.abs().max())
    if not math.isfinite(steepest) or steepest == 0.0:
        return 1.0, 1.0
    # beside 1, the slope of an open gate: a layer that is wholly saturated has no steep place of its own
    share = slope.abs() / max(steepest, _open_slope(func, rest, kwargs))
    axis = _axis(few, module)
    by_unit = share.movedim(axis, 0).flatten(1)
    return float((by_unit.amax(1) < CLOSED).double().mean()), float((share < NARROWED).double().mean())


def _is_bounded(func: Any, rest: Any, kwargs: Any) -> bool:
    """Whether the function stays where it is far out on both sides."""
    kwargs = {key: value for key, value in kwargs.items() if key != "inplace"}
    with torch.no_grad():
        far = func(torch.tensor([-1e6, -1e4, 1e4, 1e6], dtype=torch.float64), *rest, **kwargs)
    return bool(torch.isfinite(far).all()) and float((far[[0, 3]] - far[[1, 2]]).abs().max()) < 1.0


def _open_slope(func: Any, rest: Any, kwargs: Any) -> float:
    kwargs = {key: value for key, value in kwargs.items() if key != "inplace"}
    z = torch.linspace(-3, 3, 61, requires_grad=True)
    with torch.enable_grad():
        (slope,) = torch.autograd.grad(func(z.clone(), *rest, **kwargs).sum(), z)
    return float(slope.abs().max())


def _weighed(seen: LayerSigns, module: nn.Module, slopes: dict[str, Tensor | None]) -> LayerSigns:
    """With what its weights and their gradient say."""
    weight = module.weight
    assert isinstance(weight, Tensor)
    slope = slopes.get(f"{seen.name}.weight".lstrip("."))
    return replace(
        seen,
        weight_norm=float(weight.detach().double().norm()),
        gradient_norm=None if slope is None else float(slope.double().norm()),
        entries=weight.numel(),
        copies=_copies(module, slope),
    )


def _all_alike(weight: Tensor, slope: Tensor | None) -> bool:
    """Whether every row is the same, in weight and in gradient."""
    if slope is None:
        return False
    same = bool((weight.detach() == weight.detach()[:1]).all())
    return same and float((slope - slope[:1]).abs().max()) <= 1e-4 * float(slope.abs().max())


def _copies(module: nn.Module, slope: Tensor | None) -> float:
    """The share of rows that equal another one, weights and gradients alike, told by a random projection.

    Rows without a gradient count only where all have none: a unit that decay has brought to nothing is dead, not a copy.
    """
    weight = module.weight
    assert isinstance(weight, Tensor)
    if type(module).__name__ == "Conv1D" or weight.ndim < 2 or len(weight) < 2 or slope is None:
        return 0.0
    rows, slopes = weight.detach().reshape(len(weight), -1).double(), slope.reshape(len(weight), -1).double()
    moving = slopes.any(1)
    if not bool(moving.any()):
        return 1.0 - 1.0 / len(rows) if bool((rows == rows[:1]).all()) else 0.0
    generator = torch.Generator().manual_seed(0)
    draw = torch.randn(rows.shape[1], 2, generator=generator, dtype=torch.float64).to(weight.device)
    marks = torch.cat([rows[moving] @ draw, slopes[moving] @ draw], dim=1)  # (units, 4)
    # beside the largest a projection can be: equal rows differ by rounding even where their projection is nearly nothing
    scale = torch.cat([rows.norm(dim=1).max() * draw.norm(dim=0), slopes.norm(dim=1).max() * draw.norm(dim=0)])
    rounded = torch.round(marks / scale.clamp(min=1e-300) * 1e5)
    return (int(moving.sum()) - len(torch.unique(rounded, dim=0))) / len(weight)
