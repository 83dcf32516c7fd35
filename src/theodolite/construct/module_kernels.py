"""The infinite-width kernel of a user's own network, read off its layers."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, fx, nn

from theodolite.theory.activations import Activation
from theodolite.theory.functions import MODULES
from theodolite.theory.kernel_operators import Kernel, Kind
from theodolite.theory.kernel_program import Dense, Nonlinear, Normalised, Program, Sum
from theodolite.theory.specification import activation_of

PASSED = (nn.Dropout, nn.AlphaDropout, nn.Identity, nn.Flatten)
SHAPES = ("flatten", "view", "reshape", "contiguous", "clone")
SUMS = (operator.add, operator.iadd, torch.add)
CAN = "Linear, activations, residual sums and LayerNorm are read"


def kernel_of(
    module: nn.Module, *, kind: Kind = "ntk", weight_variance: float | None = None, bias_variance: float | None = None
) -> Kernel:
    r"""The NTK or NNGP kernel of the network that ``module`` becomes as its hidden layers grow wide.

    Read are Linear layers, elementwise activations, residual sums and LayerNorm (as initialised, behind a Linear layer or a
    sum; its own parameters are taken as fixed); dropout counts as off. Convolutions and attention are not read. The
    variances are those of the module's own weights, $C_w$ = fan-in times mean square, unless they are given. The tangent
    kernel is in the NTK parametrisation.

    >>> net = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 1))
    >>> kernel_of(net, weight_variance=2.0, bias_variance=0.0)(torch.ones(1, 3)).item()
    4.0
    """
    if type(module).__module__.startswith("torch.nn") and not isinstance(module, nn.Sequential):
        module = nn.Sequential(module)  # a single layer, which would be taken apart
    try:
        graph = fx.symbolic_trace(module)
    except Exception as error:
        raise ValueError(
            f"expected a network of fixed structure, got one that cannot be traced: {error}; {CAN}"
        ) from error
    found: dict[fx.Node, Program] = {}
    owners: dict[str, str] = {}
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            if () in found.values():
                raise ValueError("expected a network of one input, got several; give one that takes one tensor")
            found[node] = ()
        elif node.op == "output":
            source = node.args[0]
            if not isinstance(source, fx.Node):
                raise ValueError(
                    f"expected one output, got {type(source).__name__}; give a network that returns one tensor"
                )
            return Kernel(found[source], kind=kind)
        elif node.op == "call_module":
            layer = graph.get_submodule(str(node.target))
            if isinstance(layer, nn.Linear) and owners.setdefault(str(node.target), node.name) != node.name:
                raise ValueError(f"expected each Linear layer to be used once, got {node.target} used again; {CAN}")
            found[node] = _module(layer, str(node.target), _before(node, found), (weight_variance, bias_variance))
        else:
            found[node] = _function(node, found)
    raise ValueError("expected a network with an output, got none")


def _before(node: fx.Node, found: dict[fx.Node, Program]) -> Program:
    source = node.args[0] if node.args else None
    if not isinstance(source, fx.Node) or source not in found:
        raise ValueError(f"expected a layer of one signal, got {node.format_node()}; {CAN}")
    return found[source]


def _module(layer: nn.Module, name: str, before: Program, given: tuple[float | None, float | None]) -> Program:
    if isinstance(layer, nn.Linear):
        return (*before, _dense(layer, *given))
    if isinstance(layer, PASSED):
        return before
    if isinstance(layer, nn.LayerNorm):
        return (*before, _normalised(layer, name, before))
    if type(layer) in MODULES or not list(layer.parameters()):
        return (*before, Nonlinear(_activation(layer, name)))
    raise ValueError(f"expected layers whose kernel is known, got {type(layer).__name__} at {name!r}; {CAN}")


def _dense(layer: nn.Linear, weight_variance: float | None, bias_variance: float | None) -> Dense:
    bias: Tensor | None = getattr(layer, "bias", None)
    weight = layer.in_features * _mean_square(layer.weight) if weight_variance is None else weight_variance
    if bias is None:
        return Dense(weight)
    return Dense(weight, _mean_square(bias) if bias_variance is None else bias_variance)


def _mean_square(tensor: Tensor) -> float:
    return float(tensor.detach().to(torch.float64).square().mean())


def _normalised(layer: nn.LayerNorm, name: str, before: Program) -> Normalised:
    if len(layer.normalized_shape) != 1:
        raise ValueError(f"expected LayerNorm over the last axis, got {layer.normalized_shape} at {name!r}; {CAN}")
    if before and isinstance(before[-1], Nonlinear):
        raise ValueError(f"expected LayerNorm behind a Linear layer or a sum, got it behind an activation at {name!r}")
    own: list[Tensor | None] = [getattr(layer, key, None) for key in ("weight", "bias")]
    if any(part is not None and bool((part != plain).any()) for part, plain in zip(own, (1, 0), strict=True)):
        raise ValueError(f"expected LayerNorm as initialised (ones and zeros), got trained parameters at {name!r}")
    return Normalised(float(layer.eps))


def _activation(source: Callable[[Tensor], Tensor], name: str) -> Activation:
    try:
        return activation_of(source)
    except ValueError as error:
        raise ValueError(f"expected an elementwise activation, got {name!r}: {error}; {CAN}") from error


def _function(node: fx.Node, found: dict[fx.Node, Program]) -> Program:
    target: Any = node.target
    signals = [a for a in (*node.args, *node.kwargs.values()) if isinstance(a, fx.Node)]
    name = target if isinstance(target, str) else getattr(target, "__name__", str(target))
    if node.op not in ("call_function", "call_method") or any(s not in found for s in signals):
        raise ValueError(f"expected layers and activations, got {node.op} {name!r}; {CAN}")
    if (target in SUMS or name in ("add", "add_")) and len(signals) == 2:
        return _sum(found[signals[0]], found[signals[1]])
    before = _before(node, found)
    if name in SHAPES:
        return before
    if len(signals) == 1 and len(node.args) == 1:
        function = getattr(torch.Tensor, target) if isinstance(target, str) else target
        options = {key: value for key, value in node.kwargs.items() if key != "inplace"}
        return (*before, Nonlinear(_activation(functools.partial(function, **options) if options else function, name)))
    raise ValueError(f"expected an activation or a sum, got {name!r} of {len(node.args)} arguments; {CAN}")


def _sum(first: Program, second: Program) -> Program:
    """The sum of two signals: what they have in common, then the rest of both, which may share no weights."""
    common = 0
    while common < min(len(first), len(second)) and first[common] is second[common]:
        common += 1
    branch, skip = first[common:], second[common:]
    if not any(part and isinstance(part[-1], Dense) for part in (branch, skip)):
        raise ValueError(
            f"expected a residual sum in which a branch ends in a Linear layer, got one that does not; {CAN}"
        )
    return (*first[:common], Sum(branch, skip))
