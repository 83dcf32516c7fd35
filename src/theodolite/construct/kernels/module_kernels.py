"""The infinite-width kernel of a user's own network, read off its layers."""

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, fx, nn

from theodolite.construct.kernels._module_layouts import Turned, as_tokens, before_turn, image_axes, is_turn
from theodolite.core.checks import InputError
from theodolite.nn import SelfAttention
from theodolite.theory import activation_of
from theodolite.theory._elementwise import MODULES
from theodolite.theory.kernels import Attention, Average, Convolution, Flatten, ImageKernel, Kernel
from theodolite.theory.kernels._map_sequences import Dense, Nonlinear, Normalized, Sum
from theodolite.theory.kernels.matrix_free import KernelKind

PASSED = (nn.Dropout, nn.AlphaDropout, nn.Dropout1d, nn.Dropout2d, nn.Identity)
SAME = ("contiguous", "clone")
FLAT = ("flatten", "view", "reshape")
SUMS = (operator.add, operator.iadd, torch.add)
CAN = (
    "Linear, Conv1d, Conv2d, average pooling, activations, residual sums, LayerNorm, GroupNorm and "
    "theodolite.nn.SelfAttention are read"
)

_Layer = Dense | Nonlinear | Normalized | Sum | Convolution | Average | Flatten | Attention | Turned
_Program = tuple[_Layer, ...]


def kernel_of(
    module: nn.Module,
    *,
    kind: KernelKind = "ntk",
    weight_variance: float | Sequence[float] | None = None,
    bias_variance: float | Sequence[float] | None = None,
) -> Kernel | ImageKernel:
    r"""The NTK or NNGP kernel of the network that ``module`` becomes as its hidden layers grow wide.

    Read are Linear layers, convolutions and average pooling (then the kernel is one of images), elementwise activations,
    residual sums, LayerNorm and GroupNorm (as initialized, behind a layer of weights or a sum; their own parameters are
    taken as fixed; of images LayerNorm over channels, between two permutes, or over channels and pixels together), and
    `theodolite.nn.SelfAttention` (then the kernel is one of sequences (n, length, features)); dropout counts as off. Max
    pooling, BatchNorm and attention by a softmax of random logits have no such kernel in closed form and are refused. The
    variances are those of the module's own weights, $C_w$ = fan-in times mean square, unless they are given, for all layers
    or one each in the order they are met (in attention query, key, value, output). The tangent kernel is in the NTK
    parametrization.

    >>> net = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 1))
    >>> kernel_of(net, weight_variance=2.0, bias_variance=0.0)(torch.ones(1, 3)).item()
    4.0
    """
    if type(module).__module__.startswith("torch.nn") and not isinstance(module, nn.Sequential):
        module = nn.Sequential(module)  # a single layer, which would be taken apart
    try:
        graph = fx.GraphModule(module, _Tracer().trace(module))
    except Exception as error:
        raise InputError(
            f"expected a network of fixed structure, got one that cannot be traced: {error}; {CAN}"
        ) from error
    found: dict[fx.Node, _Program] = {}
    owners: dict[str, int] = {}  # of weights, by their layer: how many there were before
    tokens = any(isinstance(part, SelfAttention) for part in graph.modules())
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            if () in found.values():
                raise InputError("expected a network of one input, got several; give one that takes one tensor")
            found[node] = ()
        elif node.op == "output":
            source = node.args[0]
            if not isinstance(source, fx.Node):
                raise InputError(
                    f"expected one output, got {type(source).__name__}; give a network that returns one tensor"
                )
            layers = sum(_weights(graph.get_submodule(name)) for name in owners)
            _check_as_many("weight_variance", weight_variance, layers)
            _check_as_many("bias_variance", bias_variance, layers)
            return _kernel(found[source], kind, tokens=tokens)
        elif node.op == "call_module":
            layer, name = graph.get_submodule(str(node.target)), str(node.target)
            place = sum(_weights(graph.get_submodule(own)) for own in owners)
            if _weights(layer):
                if name in owners:
                    raise InputError(f"expected each layer of weights to be used once, got {name} used again; {CAN}")
                owners[name] = place
            given = [(_at(weight_variance, place + i), _at(bias_variance, place + i)) for i in range(_weights(layer))]
            found[node] = _module(layer, name, _before(node, found), given)
        else:
            found[node] = _function(node, found, tokens=tokens)
    raise InputError("expected a network with an output, got none")


class _Tracer(fx.Tracer):
    """Attention is read as one layer, not taken apart."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return isinstance(m, SelfAttention) or super().is_leaf_module(m, module_qualified_name)


def _weights(layer: nn.Module) -> int:
    """How many layers of weights a module holds."""
    if isinstance(layer, SelfAttention):
        return 3 if layer.key is None else 4
    return int(isinstance(layer, nn.Linear | nn.Conv1d | nn.Conv2d))


def _at(variance: float | Sequence[float] | None, place: int) -> float | None:
    """The variance of the layer at this place; past the end any, since the numbers are counted at the end."""
    if isinstance(variance, Sequence):
        return float(variance[min(max(place, 0), len(variance) - 1)]) if len(variance) else None
    return variance


def _check_as_many(name: str, variance: float | Sequence[float] | None, layers: int) -> None:
    if isinstance(variance, Sequence) and len(variance) != layers:
        raise InputError(
            f"expected one {name} for each of {layers} layers of weights, got {len(variance)}; or give one number for all"
        )


def _kernel(program: _Program, kind: KernelKind, *, tokens: bool) -> Kernel | ImageKernel:
    if program and isinstance(program[-1], Turned):
        raise InputError(f"expected a network that ends in a Linear layer, got one that ends in a permute; {CAN}")
    if tokens:
        return ImageKernel(as_tokens(program)[0], kind, channels_last=True)

    def images(layers: _Program) -> bool:
        return any(
            isinstance(p, Convolution | Average) or (isinstance(p, Sum) and (images(p.branch) or images(p.skip)))
            for p in layers
        )

    spatial: tuple[Any, ...] = program
    return ImageKernel(spatial, kind) if images(program) else Kernel(_of_vectors(program), kind=kind)


def _of_vectors(program: _Program) -> tuple[Dense | Nonlinear | Normalized | Sum, ...]:
    """The program without what only images need."""
    kept = [layer for layer in program if not isinstance(layer, Convolution | Average | Flatten | Attention | Turned)]
    return tuple(Sum(_of_vectors(p.branch), _of_vectors(p.skip)) if isinstance(p, Sum) else p for p in kept)


def _before(node: fx.Node, found: dict[fx.Node, _Program]) -> _Program:
    source = node.args[0] if node.args else None
    if not isinstance(source, fx.Node) or source not in found:
        raise InputError(f"expected a layer of one signal, got {node.format_node()}; {CAN}")
    return found[source]


_Given = tuple[float | None, float | None]


def _module(layer: nn.Module, name: str, before: _Program, given: list[_Given]) -> _Program:
    if isinstance(layer, PASSED):
        return before
    if isinstance(layer, nn.LayerNorm | nn.GroupNorm):
        return before_turn(before, lambda inner, turned: (*inner, _normalized(layer, name, inner, turned)))
    if type(layer) in MODULES:
        return before_turn(before, lambda inner, _: _activated(inner, layer, name))
    if before and isinstance(before[-1], Turned):
        raise InputError(
            f"expected images turned back by a permute before {name!r}, got them with channels last; {CAN}"
        )
    if isinstance(layer, nn.Linear):
        return (*before, _dense(layer, *given[0]))
    if isinstance(layer, SelfAttention):
        return (*before, _attention(layer, name, given))
    if isinstance(layer, nn.Flatten):
        return (*before, Flatten())
    if isinstance(layer, nn.Conv1d | nn.Conv2d):
        return (*before, _convolution(layer, name, *given[0]))
    if isinstance(layer, nn.AvgPool1d | nn.AvgPool2d | nn.AdaptiveAvgPool1d | nn.AdaptiveAvgPool2d):
        return (*before, _average(layer, name))
    if isinstance(layer, nn.MultiheadAttention):
        raise InputError(
            f"expected attention whose kernel has a closed form, got MultiheadAttention at {name!r}, a softmax of random "
            "logits; use theodolite.nn.SelfAttention"
        )
    if isinstance(layer, nn.modules.batchnorm._NormBase):
        raise InputError(
            f"expected normalization of each sample by itself, got {type(layer).__name__} at {name!r}, whose kernel depends "
            "on the batch or on single channels; use GroupNorm or LayerNorm"
        )
    if not list(layer.parameters()):
        return _activated(before, layer, name)
    raise InputError(f"expected layers whose kernel is known, got {type(layer).__name__} at {name!r}; {CAN}")


def _convolution(layer: nn.Conv1d | nn.Conv2d, name: str, *given: float | None) -> Convolution:
    if layer.groups != 1 or layer.padding_mode not in ("zeros", "circular"):
        raise InputError(
            f"expected a convolution of one group with zeros around the image or circular, got {layer} at {name!r}; {CAN}"
        )
    padding = layer.padding
    if isinstance(padding, str):
        reach = [d * (w - 1) for d, w in zip(layer.dilation, layer.kernel_size, strict=True)]
        if padding == "same" and any(r % 2 for r in reach):
            raise InputError(f"expected windows of odd size for padding 'same', got {layer.kernel_size} at {name!r}")
        padding = tuple(r // 2 if padding == "same" else 0 for r in reach)
    circular = layer.padding_mode == "circular"
    return Convolution(_dense(layer, *given), layer.kernel_size, layer.stride, padding, layer.dilation, circular)


def _average(layer: nn.Module, name: str) -> Average:
    sizes: list[Any] = [getattr(layer, key, None) for key in ("output_size", "kernel_size", "stride", "padding")]
    if isinstance(layer, nn.AdaptiveAvgPool1d | nn.AdaptiveAvgPool2d):
        if sizes[0] in (1, (1,), (1, 1)):
            return Average()
        raise InputError(f"expected an average over the whole image, got output size {sizes[0]} at {name!r}; {CAN}")
    plain = not getattr(layer, "ceil_mode", False) and getattr(layer, "divisor_override", None) is None
    if not plain or (not getattr(layer, "count_include_pad", True) and sizes[3] not in (0, (0,), (0, 0))):
        raise InputError(f"expected plain average pooling, got {layer} at {name!r}; {CAN}")
    space = 1 if isinstance(layer, nn.AvgPool1d) else 2
    window, stride, padding = (s if isinstance(s, tuple) else (s,) * space for s in sizes[1:])
    return Average(window, stride, padding)


def _dense(
    layer: nn.Linear | nn.Conv1d | nn.Conv2d, weight_variance: float | None, bias_variance: float | None
) -> Dense:
    bias: Tensor | None = getattr(layer, "bias", None)
    fan_in = layer.weight[0].numel()
    weight = fan_in * _mean_square(layer.weight) if weight_variance is None else weight_variance
    if bias is None:
        return Dense(weight)
    return Dense(weight, _mean_square(bias) if bias_variance is None else bias_variance)


def _mean_square(tensor: Tensor) -> float:
    return float(tensor.detach().to(torch.float64).square().mean())


def _attention(layer: SelfAttention, name: str, given: list[_Given]) -> Attention:
    parts = [part for part in (layer.query, layer.key, layer.value, layer.output) if part is not None]
    dense = [_dense(part, *own) for part, own in zip(parts, given, strict=True)]
    key = None if layer.tied else dense.pop(1)
    try:
        return Attention(dense[0], dense[1], dense[2], key, layer.weighting)
    except InputError as error:
        raise InputError(f"{error} (at {name!r})") from error


def _normalized(layer: nn.LayerNorm | nn.GroupNorm, name: str, before: _Program, turned: bool) -> Normalized:
    if not _is_gaussian(before):
        raise InputError(
            f"expected {type(layer).__name__} after a layer of weights or a sum, got it after an activation or the input at "
            f"{name!r}: the channels there are not of mean zero"
        )
    own: list[Tensor | None] = [getattr(layer, key, None) for key in ("weight", "bias")]
    if any(part is not None and bool((part != plain).any()) for part, plain in zip(own, (1, 0), strict=True)):
        raise InputError(
            f"expected {type(layer).__name__} as initialized (ones and zeros), got trained parameters at {name!r}"
        )
    axes = image_axes(before)
    if isinstance(layer, nn.GroupNorm):
        if turned or layer.num_groups == layer.num_channels:
            raise InputError(f"expected GroupNorm over several channels of images, got {layer} at {name!r}; {CAN}")
        return Normalized(float(layer.eps), whole=True)
    over = len(layer.normalized_shape)
    if over == 1 and (turned or not axes):
        return Normalized(float(layer.eps))
    if axes and not turned and over == 1 + axes:
        return Normalized(float(layer.eps), whole=True)
    raise InputError(
        f"expected LayerNorm over the channels (images between two permutes), or over channels and all pixels, got "
        f"{tuple(layer.normalized_shape)} at {name!r}; {CAN}"
    )


def _activated(before: _Program, source: Callable[[Tensor], Tensor], name: str) -> _Program:
    try:
        activation = activation_of(source)
    except ValueError as error:
        raise InputError(f"expected an elementwise activation, got {name!r}: {error}; {CAN}") from error
    if not _is_gaussian(before):
        raise InputError(
            f"expected a layer of weights before each activation, got {name!r} on a signal that is not Gaussian (the input, "
            "another activation, or a sum with one); write two activations as one function"
        )
    return (*before, Nonlinear(activation))


def _is_gaussian(program: _Program, start: bool = False) -> bool:
    """Whether infinitely many channels are Gaussian here: the maps of activations are expectations over Gaussians."""
    for layer in program:
        if isinstance(layer, Dense | Convolution | Attention):
            start = True
        elif isinstance(layer, Nonlinear):
            start = False
        elif isinstance(layer, Sum):
            start = _is_gaussian(layer.branch, start) and _is_gaussian(layer.skip, start)
    return start


def _function(node: fx.Node, found: dict[fx.Node, _Program], *, tokens: bool) -> _Program:
    target: Any = node.target
    signals = [a for a in (*node.args, *node.kwargs.values()) if isinstance(a, fx.Node)]
    name = target if isinstance(target, str) else getattr(target, "__name__", str(target))
    if node.op not in ("call_function", "call_method") or any(s not in found for s in signals):
        raise InputError(f"expected layers and activations, got {node.op} {name!r}; {CAN}")
    if (target in SUMS or name in ("add", "add_")) and len(signals) == 2:
        return _sum(found[signals[0]], found[signals[1]])
    before = _before(node, found)
    if name in SAME:
        return before
    if name in ("permute", "transpose", "movedim") and not tokens:
        if not is_turn(node, image_axes(before), back=bool(before) and isinstance(before[-1], Turned)):
            raise InputError(f"expected a permute of channels to the end and back, got {node.format_node()}; {CAN}")
        return before[:-1] if before and isinstance(before[-1], Turned) else (*before, Turned())
    if name in FLAT:
        return (*before, Flatten())
    if name == "mean":
        return (*before, _mean(node, tokens=tokens))
    if len(signals) == 1 and len(node.args) == 1:
        function = getattr(torch.Tensor, target) if isinstance(target, str) else target
        options = {key: value for key, value in node.kwargs.items() if key != "inplace"}
        source = functools.partial(function, **options) if options else function
        return before_turn(before, lambda inner, _: _activated(inner, source, name))
    raise InputError(f"expected an activation or a sum, got {name!r} of {len(node.args)} arguments; {CAN}")


def _mean(node: fx.Node, *, tokens: bool) -> Average:
    axes = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
    found = {axes} if isinstance(axes, int) else set(axes) if isinstance(axes, tuple | list) else set()
    if found in (({1}, {-2}) if tokens else ({2}, {-1}, {2, 3}, {-1, -2}, {2, -1})):
        return Average()
    raise InputError(f"expected a mean over the axes of an image, got axes {axes}; {CAN}")


def _sum(first: _Program, second: _Program) -> _Program:
    """The sum of two signals: what they have in common, then the rest of both, which may share no weights."""
    common = 0
    while common < min(len(first), len(second)) and first[common] is second[common]:
        common += 1
    branch, skip = first[common:], second[common:]
    if not any(part and isinstance(part[-1], Dense | Convolution | Attention) for part in (branch, skip)):
        raise InputError(
            f"expected a residual sum in which a branch ends in a layer of weights, got one that does not; {CAN}"
        )
    return (*first[:common], Sum(branch, skip))
