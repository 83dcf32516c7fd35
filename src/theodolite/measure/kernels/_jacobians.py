r"""Per-sample derivatives of a model's outputs, kept as factors where a layer multiplies by a matrix of weights.

Behind a layer $s=Wa$ the derivative of output $i$ by $W$ is $\sum_p b^i_p a_p^\top$, a sum over positions (pixels, tokens,
repeated uses) of outer products of what came in and what is propagated back. It is never formed unless that is cheaper.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import vmap
from torch.overrides import TorchFunctionMode

from theodolite.measure.functional import Inputs, Parameters, Stateless, as_batch_of_one, count, rows

CONVOLUTIONS = (F.conv1d, F.conv2d)
ONE_BY_ONE = 32
"""Outputs up to which each is propagated back by itself: in less memory, and by operations that need not vectorize."""
HARMLESS = ("__get__", "dim", "size", "numel", "stride", "is_floating_point", "is_contiguous", "__len__")


@dataclass(frozen=True)
class Use:
    """One product with a matrix of weights: which parameters, the shape of the result for one sample, and how."""

    weight: str
    bias: str | None
    shape: tuple[int, ...]
    convolution: tuple[tuple[int, ...], ...] | None = None  # kernel, stride, padding, dilation
    groups: int = 1
    transposed: bool = False


@dataclass(frozen=True)
class LayerStructure:
    """Where a model multiplies by its weights; ``other`` parameters enter in other ways too."""

    uses: tuple[Use, ...]
    layered: frozenset[str]
    other: tuple[str, ...]
    outputs: int
    positions: tuple[int, ...]
    widths: tuple[tuple[int, int], ...]  # (in, out) of each use


@dataclass(frozen=True)
class Factors:
    """Of a block of samples: ``inputs`` and ``backward`` for each use, and whole derivatives of other parameters.

    ``inputs`` are (n, groups, positions, in), ``backward`` (n, C, groups, positions, out), ``other`` (n, C, entries).
    """

    inputs: tuple[Tensor, ...]
    backward: tuple[Tensor, ...]
    other: dict[str, Tensor]


class _Seen(TorchFunctionMode):
    """Watches products with parameters; to each it adds a perturbation, by which the derivative is then taken."""

    def __init__(self, names: dict[int, str], shifts: Sequence[Tensor] | None = None) -> None:
        super().__init__()
        self.names, self.shifts = names, shifts
        self.uses: list[Use] = []
        self.inputs: list[Tensor] = []
        self.strange: set[str] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the function; record it if it is a product, else remember which parameters it touched."""
        kwargs = kwargs or {}
        call = _product(func, args, kwargs, self.names)
        if call is None:
            if getattr(func, "__name__", "") not in HARMLESS:
                self.strange.update(self._touched((args, kwargs)))
            return func(*args, **kwargs)
        result = func(*args, **kwargs)
        signal, use = call
        if self.shifts is not None:
            result = result + self.shifts[len(self.uses)].reshape(result.shape)
            self.inputs.append(signal)
        self.uses.append(Use(**{**use, "shape": tuple(result.shape)}))
        return result

    def _touched(self, value: Any) -> Iterator[str]:
        if isinstance(value, Tensor):
            if id(value) in self.names:
                yield self.names[id(value)]
        elif isinstance(value, tuple | list):
            for member in value:
                yield from self._touched(member)
        elif isinstance(value, dict):
            yield from self._touched(tuple(value.values()))


def _product(func: Any, args: Any, kwargs: Any, names: dict[int, str]) -> tuple[Tensor, dict[str, Any]] | None:
    """What goes into a product with a parameter, and the facts of a `Use`; None where it is something else."""
    if func is torch.addmm and not kwargs and len(args) == 3:
        bias, signal, weight = args
        transposed = True
    elif func is F.linear or func in CONVOLUTIONS:
        given = dict(zip(("input", "weight", "bias", "stride", "padding", "dilation", "groups"), args, strict=False))
        given |= kwargs
        signal, weight, bias = given["input"], given["weight"], given.get("bias")
        transposed = False
    else:
        return None
    if id(weight) not in names or id(signal) in names:
        return None
    facts: dict[str, Any] = {"weight": names[id(weight)], "bias": names.get(id(bias)), "transposed": transposed}
    if func in CONVOLUTIONS:
        shape = _window(func, given)
        if shape is None:
            return None
        facts |= {"convolution": shape, "groups": given.get("groups", 1)}
    return signal, facts


def _window(func: Any, given: dict[str, Any]) -> tuple[tuple[int, ...], ...] | None:
    """Kernel, stride, padding and dilation of a convolution over two axes; None where padding differs by side."""
    axes = 1 if func is F.conv1d else 2
    kernel = tuple(given["weight"].shape[2:])
    stride, dilation = (_pair(given.get(name, 1), axes) for name in ("stride", "dilation"))
    padding = given.get("padding", 0)
    if padding == "same":
        total = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
        if any(t % 2 for t in total):
            return None
        padding = tuple(t // 2 for t in total)
    padding = _pair(0 if padding == "valid" else padding, axes)
    if axes == 1:
        kernel, stride, padding, dilation = (1, *kernel), (1, *stride), (0, *padding), (1, *dilation)
    return kernel, stride, padding, dilation


def _pair(value: Any, axes: int) -> tuple[int, ...]:
    if isinstance(value, int):
        return (value,) * axes
    return tuple(value) * axes if len(value) < axes else tuple(value)


def structure_of(net: Stateless, x: Inputs) -> LayerStructure:
    """One forward pass of one sample shows which parameters enter by products alone."""
    names = {id(tensor): name for name, tensor in net.parameters.items()}
    seen = _Seen(names)
    with torch.enable_grad(), seen:
        outputs = net(net.parameters, rows(x, slice(0, 1))).shape[1]
    strange = set(seen.strange)
    directions: dict[str, set[tuple[bool, int]]] = {}
    for use in seen.uses:
        directions.setdefault(use.weight, set()).add((use.transposed, use.groups))
    strange |= {name for name, ways in directions.items() if len(ways) > 1}
    strange |= {use.bias for use in seen.uses if use.bias in directions}
    layered = {use.weight for use in seen.uses} | {use.bias for use in seen.uses if use.bias}
    layered -= strange
    other = tuple(name for name in net.parameters if name not in layered)
    widths = tuple(_widths(use, net.parameters[use.weight]) for use in seen.uses)
    positions = tuple(
        torch.Size(use.shape).numel() // (out * use.groups) for use, (_, out) in zip(seen.uses, widths, strict=True)
    )
    return LayerStructure(tuple(seen.uses), frozenset(layered), other, outputs, positions, widths)


def _widths(use: Use, weight: Tensor) -> tuple[int, int]:
    """How many numbers go into and come out of each position (and group)."""
    if use.transposed:
        return weight.shape[0], weight.shape[1]
    return torch.Size(weight.shape[1:]).numel(), weight.shape[0] // use.groups


def factors(net: Stateless, structure: LayerStructure, x: Inputs, *, part: slice = slice(None)) -> Factors:
    """The factors of every sample of a batch, for all outputs or a ``part`` of them.

    Each sample is run alone (vectorized), so that nothing need be assumed of how a model orders its axes.
    """
    held = {name: tensor.detach() for name, tensor in net.parameters.items()}
    names, n = {id(tensor): name for name, tensor in held.items()}, count(x)
    like = next(iter(held.values()))
    # leaves of autograd's own, one for each sample and without memory: torch.func would import its compiler for them
    shifts = tuple(like.new_zeros(use.shape).expand(n, *use.shape).requires_grad_() for use in structure.uses)
    other = {name: held[name].expand(n, *held[name].shape).requires_grad_() for name in structure.other}

    def answer(shifts: Sequence[Tensor], other: Parameters, sample: Inputs) -> tuple[Tensor, tuple[Tensor, ...]]:
        seen = _Seen({**names, **{id(tensor): name for name, tensor in other.items()}}, shifts)
        with seen:
            z = net({**held, **other}, as_batch_of_one(sample)).squeeze(0)
        return z, tuple(seen.inputs)

    with torch.enable_grad():
        z, signals = vmap(answer)(shifts, other, x)
    found = _pulled_back(z, (*shifts, *other.values()), part)
    with torch.no_grad():
        inputs = tuple(_patches(use, signal.detach()) for use, signal in zip(structure.uses, signals, strict=True))
        uses = zip(structure.uses, found[: len(shifts)], structure.widths, strict=True)
        backs = tuple(_positions(use, b, out) for use, b, (_, out) in uses)
        rest = zip(other, found[len(shifts) :], strict=True)
        return Factors(inputs, backs, {name: value.flatten(2) for name, value in rest})


def _pulled_back(z: Tensor, leaves: Sequence[Tensor], part: slice) -> list[Tensor]:
    """The derivatives of each sample's outputs (n, C), or a part of them, by its own leaves: (n, C, ...) each."""
    n, outputs = z.shape
    chosen = range(*part.indices(outputs))
    if not z.requires_grad or not leaves:
        return [leaf.new_zeros(n, len(chosen), *leaf.shape[1:]) for leaf in leaves]
    if len(chosen) > ONE_BY_ONE:
        along = torch.eye(outputs, dtype=z.dtype, device=z.device)[part][:, None].expand(-1, n, -1)
        found = torch.autograd.grad(z, leaves, along, is_grads_batched=True, materialize_grads=True)
        return [given.transpose(0, 1) for given in found]
    blocks = [leaf.new_empty(n, len(chosen), *leaf.shape[1:]) for leaf in leaves]
    for place, output in enumerate(chosen):
        total = z[:, output].sum()
        given = torch.autograd.grad(total, leaves, retain_graph=output != chosen[-1], materialize_grads=True)
        for block, derivative in zip(blocks, given, strict=True):
            block[:, place] = derivative
    return blocks


def _patches(use: Use, signal: Tensor) -> Tensor:
    """(n, ...) to (n, groups, positions, in)."""
    if use.convolution is None:
        return signal.reshape(len(signal), 1, -1, signal.shape[-1])
    kernel, stride, padding, dilation = use.convolution
    image = signal.flatten(0, 1).unsqueeze(-2) if signal.ndim == 4 and _is_line(use) else signal.flatten(0, 1)
    if all(k == 1 for k in kernel) and not any(padding):
        columns = image[..., :: stride[0], :: stride[1]].flatten(2)
    else:
        columns = F.unfold(image, kernel, dilation=dilation, padding=padding, stride=stride)
    n, width, positions = columns.shape
    return columns.reshape(n, use.groups, width // use.groups, positions).transpose(2, 3)


def _is_line(use: Use) -> bool:
    return len(use.shape) == 3


def _positions(use: Use, backward: Tensor, out: int) -> Tensor:
    """(n, C, ...) to (n, C, groups, positions, out)."""
    n, outputs = backward.shape[:2]
    if use.convolution is None:
        return backward.reshape(n, outputs, 1, -1, out)
    return backward.reshape(n, outputs, use.groups, out, -1).transpose(3, 4)


def jacobian_rows(net: Stateless, x: Inputs) -> Parameters:
    """Whole derivatives sample by sample and output by output: slow, but it asks nothing of the model."""
    found: dict[str, list[Tensor]] = {name: [] for name in net.parameters}
    for index in range(count(x)):
        with torch.enable_grad():
            z = net(net.parameters, rows(x, slice(index, index + 1))).squeeze(0)
            parts = [
                torch.autograd.grad(entry, list(net.parameters.values()), retain_graph=True, allow_unused=True)
                for entry in z
            ]
        for place, (name, parameter) in enumerate(net.parameters.items()):
            zero = torch.zeros_like(parameter)
            found[name].append(torch.stack([zero if p[place] is None else p[place].detach() for p in parts]).flatten(1))
    return {name: torch.stack(values) for name, values in found.items()}
