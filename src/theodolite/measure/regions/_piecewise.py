"""A module read into affine maps and bends: what regions are counted from."""

import inspect
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, fx, nn

from theodolite.core.checks import InputError
from theodolite.core.model_wrappers import copied_model
from theodolite.measure.regions._bends import BENT, BENT_MODULES, SPELLINGS, Bend, Maximum, bend, bend_of, pool_windows
from theodolite.measure.regions._readable_layers import AFFINE, CAN, FUNCTIONS, NORMS, PRODUCTS, SHAPES


@dataclass(frozen=True)
class Affine:
    """An affine map of signals: its linear part is the map less its value at zero."""

    function: Callable[..., Tensor]
    shift: Tensor | None = None

    def applied(self, signals: list[Tensor], root: Tensor) -> Tensor:
        """The affine maps behind it, (C, rows, ...); the first row is the constant part."""
        cells, rows = signals[0].shape[:2]
        out: Tensor = self.function(*(signal.flatten(0, 1) for signal in signals))
        out = out.reshape(cells, rows, *out.shape[1:])
        if self.shift is None or rows == 1:
            return out
        return torch.cat([out[:, :1], out[:, 1:] - self.shift], 1)


@dataclass(frozen=True)
class DenseMap:
    """A linear layer; with weights (N, out, in) and biases (N, out) one for each of N networks, by a cell's root."""

    weight: Tensor
    bias: Tensor | None = None

    def applied(self, signals: list[Tensor], root: Tensor) -> Tensor:
        """The affine maps behind it, (C, rows, ..., out)."""
        (signal,) = signals
        if self.weight.ndim == 3:
            out = torch.bmm(signal, self.weight[root].mT)
        else:
            out = (signal.flatten(0, -2) @ self.weight.mT).reshape(*signal.shape[:-1], -1)
        if self.bias is not None:
            out[:, 0] += self.bias[root] if self.bias.ndim == 2 else self.bias
        return out


@dataclass(frozen=True)
class PiecewiseStep:
    """One node of the network: where its signals come from (slot 0 is the input), and what is done with them."""

    name: str
    sources: tuple[int, ...]
    does: Affine | DenseMap | Bend | Maximum


@dataclass(frozen=True)
class PiecewiseProgram:
    """A network as steps; step k writes slot k + 1, the last slot is the output."""

    steps: tuple[PiecewiseStep, ...]
    shape: tuple[int, ...]
    like: Tensor
    widest: int
    model: nn.Module | None = None

    def last_use(self) -> list[int]:
        """The last step that reads each slot; the output is read beyond the end."""
        last = [0] * len(self.steps) + [len(self.steps)]
        for place, step in enumerate(self.steps):
            for source in step.sources:
                last[source] = max(last[source], place)
        return last


def piecewise_program(model: nn.Module, shape: tuple[int, ...]) -> PiecewiseProgram:
    """The network, read for one input of this shape, in float64 and eval mode; the model itself is not touched."""
    own = _own_copy(model)
    wrapped = nn.Sequential(own) if _is_leaf(own) else own
    try:
        graph = fx.symbolic_trace(wrapped)
    except Exception as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"expected a network of fixed structure, got one that cannot be traced: {first}; {CAN}"
        ) from None
    anchor = next((p for p in own.parameters()), torch.empty(0, dtype=torch.float64))
    with torch.no_grad():
        return _Reader(graph, shape, torch.empty(0, dtype=torch.float64, device=anchor.device)).program(own)


def dense_program(weights: list[Tensor], biases: list[Tensor | None]) -> PiecewiseProgram:
    """Many ReLU networks of one architecture: weights (N, out, in) and biases (N, out) of each layer."""
    steps: list[PiecewiseStep] = []
    relu = bend("relu", (), {}, like=weights[0])
    for place, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        if place:
            steps.append(PiecewiseStep("relu", (len(steps),), relu))
        steps.append(PiecewiseStep("dense", (len(steps),), DenseMap(weight, bias)))
    widest = max(max(weight.shape[1:]) for weight in weights)
    return PiecewiseProgram(tuple(steps), (weights[0].shape[-1],), weights[0][:0, 0, 0], widest)


def affine_maps(program: PiecewiseProgram) -> list[tuple[Tensor, Tensor | None]] | None:
    """Weights and biases where the network is linear layers and ReLUs in turn, and nothing else; else None."""
    steps = [step.does for step in program.steps if not _passes(step.does)]
    if len(steps) % 2 == 0:
        return None
    found: list[tuple[Tensor, Tensor | None]] = []
    for place, does in enumerate(steps):
        if place % 2 == 0 and isinstance(does, DenseMap):
            found.append((does.weight, does.bias))
        elif not (place % 2 and isinstance(does, Bend) and does.slopes.tolist() == [0.0, 1.0] and len(does.knots) == 1):
            return None
    return found


def _passes(does: Affine | DenseMap | Bend | Maximum) -> bool:
    return isinstance(does, Affine) and isinstance(does.function, nn.Flatten | nn.Dropout | nn.Identity)


def _own_copy(model: nn.Module) -> nn.Module:
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise InputError(f"expected finite weights, got NaN or infinity in {name!r}; use another checkpoint")
    try:
        own = copied_model(model).double().eval().requires_grad_(False)
    except RuntimeError as error:
        raise InputError(f"expected a module that can be copied, got {type(model).__name__}: {error}") from error
    for module in own.modules():
        module._forward_hooks.clear()
    return own


def _is_leaf(module: nn.Module) -> bool:
    return type(module).__module__.startswith("torch.nn") and not isinstance(module, nn.Sequential)


class _Reader:
    """Walks the graph once with two zero inputs, so that the shape of every signal is known."""

    def __init__(self, graph: fx.GraphModule, shape: tuple[int, ...], like: Tensor) -> None:
        self.graph, self.shape, self.like = graph, shape, like
        self.values: dict[fx.Node, Any] = {}
        self.slots: dict[fx.Node, int] = {}
        self.steps: list[PiecewiseStep] = []

    def program(self, model: nn.Module) -> PiecewiseProgram:
        for node in self.graph.graph.nodes:
            if node.op == "placeholder":
                self._placeholder(node)
            elif node.op == "output":
                return self._finished(node, model)
            else:
                self._node(node)
        raise InputError("expected a network with an output, got none")

    def _placeholder(self, node: fx.Node) -> None:
        if self.slots and not node.args:
            raise InputError("expected a network of one input, got several; wrap it into one that takes one tensor")
        if self.slots:
            self.values[node] = node.args[0]
            return
        self.values[node], self.slots[node] = self.like.new_zeros((2, *self.shape)), 0

    def _finished(self, node: fx.Node, model: nn.Module) -> PiecewiseProgram:
        (source,) = node.args
        if not isinstance(source, fx.Node) or source not in self.slots:
            raise InputError("expected a network that returns one tensor made from its input, got another; wrap it")
        if self.slots[source] != len(self.steps):
            self.steps.append(PiecewiseStep("output", (self.slots[source],), Affine(torch.clone)))
        widest = max(
            value.shape[1:].numel() for value in self.values.values() if isinstance(value, Tensor) and value.ndim
        )
        return PiecewiseProgram(tuple(self.steps), self.shape, self.like, widest, model)

    def _node(self, node: fx.Node) -> None:
        sources = [a for a in node.all_input_nodes if a in self.slots]
        try:
            value = self._value(node)
        except Exception as error:
            said = str(error).splitlines()[0]
            raise InputError(
                f"expected an input of shape {self.shape} to run, got at {_title(node)}: {said}"
            ) from error
        self.values[node] = value
        if not sources or isinstance(value, int | torch.Size):
            return  # a constant, or a size
        if _name(node) in ("maximum", "max") and len(sources) == 2:
            stacked = Affine(lambda a, b: torch.stack([a.expand_as(a + b), b.expand_as(a + b)], -1))
            self.steps.append(PiecewiseStep(_title(node), tuple(self.slots[s] for s in sources), stacked))
            windows = torch.arange(2 * value[0].numel(), device=value.device).reshape(-1, 2)
            self._add(node, (len(self.steps),), Maximum(windows, tuple(value.shape[1:])))
            return
        does = self._module(node) if node.op == "call_module" else self._function(node, sources)
        self._add(node, tuple(self.slots[s] for s in sources), does)

    def _add(self, node: fx.Node, sources: tuple[int, ...], does: Affine | DenseMap | Bend | Maximum) -> None:
        self.steps.append(PiecewiseStep(_title(node), sources, does))
        self.slots[node] = len(self.steps)

    def _value(self, node: fx.Node) -> Any:
        args, kwargs = fx.node.map_arg((node.args, node.kwargs), lambda n: self.values[n])
        if node.op == "get_attr":
            return operator.attrgetter(str(node.target))(self.graph)
        if node.op == "call_module":
            return self.graph.get_submodule(str(node.target))(*args, **kwargs)
        if node.op == "call_method":
            return getattr(args[0], str(node.target))(*args[1:], **kwargs)
        return node.target(*args, **kwargs)  # type: ignore[operator]

    def _module(self, node: fx.Node) -> Affine | DenseMap | Bend | Maximum:
        layer, before = self.graph.get_submodule(str(node.target)), self.values[node.args[0]]  # type: ignore[index]
        if type(layer) in BENT_MODULES:
            return bend_of(layer, like=before)
        if isinstance(layer, nn.MaxPool1d | nn.MaxPool2d):
            options = {
                key: getattr(layer, key) for key in ("kernel_size", "stride", "padding", "dilation", "ceil_mode")
            }
            return self._pooled(before, self.values[node], options)
        if type(layer) is nn.Linear:
            return DenseMap(layer.weight, layer.bias)
        if not isinstance(layer, AFFINE) or (isinstance(layer, NORMS) and layer.running_mean is None):
            raise InputError(f"expected piecewise linear layers, got {type(layer).__name__} at {node.target!r}; {CAN}")
        return self._affine(layer, [before], self.values[node])

    def _pooled(self, before: Tensor, after: Tensor, options: dict[str, Any]) -> Maximum:
        windows = pool_windows(tuple(before.shape[1:]), options).to(before.device)
        return Maximum(windows, tuple(after.shape[1:]))

    def _affine(self, function: Callable[..., Tensor], before: list[Tensor], after: Tensor) -> Affine:
        if after.shape[0] != 2:
            raise InputError(f"expected layers that treat the samples of a batch alike, got {function}; {CAN}")
        shift = function(*(torch.zeros_like(signal[:1]) for signal in before))
        return Affine(function, shift.unsqueeze(1) if bool(shift.any()) else None)

    def _function(self, node: fx.Node, sources: list[fx.Node]) -> Affine | DenseMap | Bend | Maximum:
        name = SPELLINGS.get(_name(node), _name(node))
        args, kwargs = fx.node.map_arg((node.args, node.kwargs), lambda n: n if n in self.slots else self.values[n])
        before, after = [self.values[s] for s in sources], self.values[node]
        if name in BENT and len(sources) == 1:
            own = {k: v for k, v in kwargs.items() if k not in ("inplace", "training", "input")}
            return bend(name, args[1:], own, like=before[0])
        if name in ("max_pool1d", "max_pool2d"):
            bound = inspect.signature(torch.nn.functional.max_pool2d_with_indices).bind(*args, **kwargs)
            return self._pooled(before[0], after, dict(bound.arguments))
        if name == "amax" and len(sources) == 1:
            return self._maximum(kwargs.get("dim", args[1] if len(args) > 1 else None), before[0], after)
        if name in FUNCTIONS or (name in PRODUCTS and len(sources) == 1):
            if name in SHAPES:
                return Affine(partial(_reshaped, shape=tuple(after.shape[1:])))
            call = (
                (lambda x, *a, **k: getattr(x, str(node.target))(*a, **k)) if node.op == "call_method" else node.target
            )
            return self._affine(partial(_filled, call, args, kwargs, tuple(sources)), before, after)
        raise InputError(f"expected piecewise linear layers, got {name!r} at {_title(node)}; {CAN}")

    def _maximum(self, axis: Any, before: Tensor, after: Tensor) -> Maximum:
        if not isinstance(axis, int) or axis % before.ndim == 0:
            raise InputError(f"expected amax over one axis of the signal, got {axis}; take them one after the other")
        shape, place = before.shape[1:], axis % before.ndim - 1
        numbers = torch.arange(shape.numel(), device=before.device).reshape(shape)
        return Maximum(numbers.movedim(place, -1).reshape(-1, shape[place]), tuple(after.shape[1:]))


def _reshaped(x: Tensor, *, shape: tuple[int, ...]) -> Tensor:
    return x.reshape(-1, *shape)


def _filled(call: Any, args: Any, kwargs: Any, sources: tuple[fx.Node, ...], *signals: Tensor) -> Any:
    own = dict(zip(sources, signals, strict=True))
    filled, named = fx.node.map_arg((args, kwargs), lambda n: own[n])
    return call(*filled, **named)


def _name(node: fx.Node) -> str:
    return node.target if isinstance(node.target, str) else getattr(node.target, "__name__", str(node.target))


def _title(node: fx.Node) -> str:
    return repr(str(node.target)) if node.op == "call_module" else f"{_name(node)!r}"
