"""What each tensor of a model is beside a smaller one of the same kind, and what its forward pass must be multiplied with."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Any, Literal

from torch import Tensor, nn

from theodolite.core.checks import InputError, InputTypeError
from theodolite.measure.dynamics import forward_places
from theodolite.theory.dynamics import (
    attention_factor,
    branch_factor,
    branch_step_factor,
    initial_factor,
    step_factor,
    tensor_kind,
)
from theodolite.theory.dynamics.scaling_rules import StepRule, TensorKind

TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
TABLES = (nn.Embedding, nn.EmbeddingBag)
LINEAR = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.RNNBase, nn.RNNCellBase, nn.MultiheadAttention, nn.Bilinear)


@dataclass(frozen=True)
class TransferredTensor:
    """A parameter: what it is, by how much its sizes grew from those of the base, and the standard deviation it begins with.

    ``fill`` is the one value of a tensor that does not begin at random. ``depth_growth`` is that of the blocks it lies in.
    """

    name: str
    shape: tuple[int, ...]
    base_shape: tuple[int, ...]
    kind: TensorKind
    output_growth: float
    input_growth: float
    depth_growth: float
    spread: float
    fill: float | None
    why: str

    def lr_factor(self, rule: StepRule) -> float:
        """What the step size of the base is multiplied with."""
        own = "adam" if rule == "orthogonal" and self.kind in ("vector", "embedding") else rule
        width = step_factor(self.output_growth, self.input_growth, rule=own)
        return width * (branch_step_factor(self.depth_growth, rule=own) if self.depth_growth != 1 else 1.0)


@dataclass(frozen=True)
class Multiplier:
    """``factor`` on the input, the output (some ``channels`` of it) or the key of a module; by hand where none can be hooked."""

    where: str
    factor: float
    place: Literal["input", "output", "key", "by hand"]
    why: str
    by_hand: str
    channels: tuple[int, ...] = ()


def transferred_tensors(model: nn.Module, base: nn.Module) -> tuple[TransferredTensor, ...]:
    """Every parameter of a model beside its counterpart in the base; one that both of two layers hold is told once."""
    for value in (model, base):
        if not isinstance(value, nn.Module):
            raise InputTypeError(f"expected two nn.Modules, the model and its base, got {type(value).__name__}")
    small = dict(base.named_parameters(remove_duplicate=False))
    depths = _depth_growth(model, base)
    owners = _owners(model)
    found = []
    for name, parameter in model.named_parameters():
        other, growth = _base_name(name, depths)
        if other not in small:
            raise InputError(
                f"expected the base to have a tensor {other}, got none; build both models by the same code in two sizes"
            )
        if small[other].ndim != parameter.ndim:
            raise InputError(
                f"expected {name} to have as many axes in both models, got {tuple(parameter.shape)} and "
                f"{tuple(small[other].shape)}; build both by the same code"
            )
        found.append(_tensor(name, parameter, small[other], owners[id(parameter)], growth))
    if all(t.output_growth == t.input_growth == t.depth_growth == 1 for t in found) and not depths:
        return tuple(found)
    if any(g < 1 for t in found for g in (t.output_growth, t.input_growth)):
        small_one = next(t for t in found if min(t.output_growth, t.input_growth) < 1)
        raise InputError(
            f"expected a base that is no larger than the model, got {small_one.name} of {small_one.base_shape} in the base and "
            f"{small_one.shape} in the model; pass the small one as base"
        )
    return tuple(found)


def _owners(model: nn.Module) -> dict[int, list[nn.Module]]:
    found: dict[int, list[nn.Module]] = {}
    for module in model.modules():
        for parameter in module.parameters(recurse=False):
            found.setdefault(id(parameter), []).append(module)
    return found


def _tensor(name: str, own: Tensor, small: Tensor, owners: Sequence[nn.Module], depth: float) -> TransferredTensor:
    growth = [a / b for a, b in zip(own.shape, small.shape, strict=True)]
    kind, outputs, inputs, why = _kind(growth, owners)
    values = small.detach().double()
    constant = values.numel() and float(values.min()) == float(values.max())
    spread = 0.0 if constant or not values.numel() else float(values.square().mean().sqrt())
    return TransferredTensor(
        name,
        tuple(own.shape),
        tuple(small.shape),
        kind,
        outputs,
        inputs,
        depth,
        spread * initial_factor(outputs, inputs),
        float(values.flatten()[0]) if constant else None,
        why + (f"; one of {depth:g} times as many blocks" if depth != 1 else ""),
    )


def _kind(growth: Sequence[float], owners: Sequence[nn.Module]) -> tuple[TensorKind, float, float, str]:
    """The kind of a tensor, by how much its outputs and inputs grew, and why."""
    if len(growth) < 2:
        grown = growth[0] if growth else 1.0
        return "vector" if grown != 1 else "fixed", grown, 1.0, "one number a unit" if grown != 1 else "does not grow"
    if any(isinstance(m, TABLES) for m in owners):
        tied = len(owners) > 1
        why = "a row for each entry of a table; its width grows" + (", and it is the output too" if tied else "")
        return "embedding" if growth[1] != 1 else "fixed", growth[1], 1.0, why
    if any(isinstance(m, LINEAR) for m in owners):
        outputs, inputs = growth[0], growth[1]
    elif any(isinstance(m, TRANSPOSED) for m in owners):
        outputs, inputs = growth[1], growth[0]
    elif sum(g != 1 for g in growth) == 1 and growth[-1] != 1:
        return "embedding", growth[-1], 1.0, "its last size alone grows: added to what units say"
    else:  # a product of the user's own: rows before columns, x @ W
        before = [g for g in growth[:-1] if g != 1]
        outputs, inputs = growth[-1], before[-1] if before else 1.0
    kind = tensor_kind(outputs, inputs)
    words = {
        "input": "its outputs grow, its inputs do not",
        "hidden": "inputs and outputs grow",
        "output": "its inputs grow, its outputs do not",
        "fixed": "does not grow",
    }
    return kind, outputs, inputs, words[kind]


def _depth_growth(model: nn.Module, base: nn.Module) -> dict[str, tuple[int, int, int]]:
    """Each list with more blocks in the model: its name, where its blocks begin, and how many there are in model and base."""
    found = {}
    small = {name: m for name, m in base.named_modules() if isinstance(m, nn.ModuleList | nn.Sequential)}
    for name, module in model.named_modules():
        if isinstance(module, nn.ModuleList | nn.Sequential) and len(module) != len(small.get(name, module)):
            own, other = ([_made_of(m) for m in blocks] for blocks in (module, small[name]))
            found[name] = _run_of_blocks(own, other)
            first, many, few = found[name]
            if not (many and few) or own[:first] + own[first + many :] != other[:first] + other[first + few :]:
                raise InputError(
                    f"expected {name or 'the model'} to have more blocks of one kind than in the base, got {len(own)} and "
                    f"{len(other)} modules of several; put the blocks into a list of their own"
                )
    return found


def _made_of(module: nn.Module) -> tuple[Any, ...]:
    return type(module).__qualname__, tuple((name, p.ndim) for name, p in module.named_parameters())


def _run_of_blocks(own: Sequence[Any], other: Sequence[Any]) -> tuple[int, int, int]:
    """Where the run of equal modules begins whose length differs, and its lengths; what stands before and after may differ."""
    longer, shorter = sorted((own, other), key=len, reverse=True)
    place = next((i for i, kind in enumerate(shorter) if kind != longer[i]), len(shorter))
    first = place
    while first and longer[first - 1] == longer[place]:
        first -= 1
    many, few = (sum(1 for _ in takewhile(longer[place].__eq__, kinds[first:])) for kinds in (own, other))
    return first, many, few


def _base_name(name: str, depths: Mapping[str, tuple[int, int, int]]) -> tuple[str, float]:
    """The name of a tensor or module in the base: of more blocks, those at the same share of the depth."""
    growth = 1.0
    for prefix, (first, many, few) in depths.items():
        head = prefix + "." if prefix else ""
        found = re.match(re.escape(head) + r"(\d+)(?=\.|$)", name)
        if found:
            place = int(found.group(1)) - first
            if 0 <= place < many:
                place, growth = place * few // many, growth * many / few
            elif place >= many:
                place += few - many
            name = f"{head}{first + place}{name[found.end() :]}"
    return name, growth


def forward_multipliers(
    model: nn.Module, base: nn.Module, inputs: tuple[Any, ...] | None = None
) -> tuple[Multiplier, ...]:
    """What the forward pass of a model must be multiplied with; attention of one's own and branches are seen by ``inputs``."""
    tensors = {t.name: t for t in transferred_tensors(model, base)}
    owners = _owners(model)
    names = {id(p): name for name, p in model.named_parameters()}
    found = []
    for where, module in model.named_modules():  # tied weights, at the end that is no table
        for parameter in module.parameters(recurse=False):
            one = tensors[names[id(parameter)]]
            tied = len(owners[id(parameter)]) > 1 and one.kind == "embedding" and not isinstance(module, TABLES)
            if tied and one.output_growth != 1:
                factor = 1 / one.output_growth
                why = f"output whose weight is also a table: as an output it would have to be {one.output_growth:g} times smaller"
                found.append(Multiplier(where, factor, "input", why, f"logits = {where}({factor:.4g} * x)"))
    depths = _depth_growth(model, base)
    if inputs is None:
        heads = [(n, m.head_dim, m) for n, m in model.named_modules() if isinstance(m, nn.MultiheadAttention)]
        small: dict[str, Any] = {n: m.head_dim for n, m in base.named_modules() if isinstance(m, nn.MultiheadAttention)}
        found += [_attention(n, d / small[_base_name(n, depths)[0]], n, (), True) for n, d, _ in heads]
        if depths:
            raise InputError(
                "expected inputs= to find residual branches where the depth grows, got none; pass a batch's inputs"
            )
    else:
        apply_multipliers_(model, ())
        large, little = forward_places(model, inputs), forward_places(base, inputs)
        sizes = {place.where: place.head_size for place in little[0]}
        for place in large[0]:
            growth = place.head_size / sizes[_base_name(place.where, depths)[0]]
            found.append(_attention(place.where, growth, place.module, place.channels, place.by_key))
        for branch in large[1]:
            growth = _base_name(branch.where, depths)[1]
            if growth != 1:
                found.append(_branch_multiplier(branch.where, branch.module, growth))
    return tuple(m for m in found if m.factor != 1)


def _attention(where: str, growth: float, module: str, channels: tuple[int, ...], by_key: bool) -> Multiplier:
    factor = attention_factor(growth)
    why = f"heads are {growth:g} times as large: scores are q.k over their size, not over its root"
    by_hand = f"in {where or 'forward'}: q = {factor:.4g} * q, before scores are made"
    place: Literal["key", "output", "by hand"] = "key" if by_key else "output" if module else "by hand"
    return Multiplier(module or where, factor, place, why, by_hand, channels)


def _branch_multiplier(where: str, module: str, growth: float) -> Multiplier:
    factor = branch_factor(growth)
    by_hand = f"in {where or 'forward'}: x = x + {factor:.4g} * {module.rpartition('.')[2] or 'branch'}(x)"
    why = f"a residual branch, one of {growth:g} times as many"
    return Multiplier(module or where, factor, "output" if module else "by hand", why, by_hand)


def _times_output(factor: float, channels: tuple[int, ...], module: nn.Module, args: Any, output: Any) -> Any:
    z = output[0] if isinstance(output, tuple) else output
    if channels:
        scale = z.new_ones(z.shape[-1])
        scale[list(channels)] = factor
        z = z * scale
    else:
        z = z * factor
    return (z, *output[1:]) if isinstance(output, tuple) else z


def _times_input(factor: float, module: nn.Module, args: Any) -> Any:
    return (args[0] * factor, *args[1:])


def _times_key(factor: float, module: nn.Module, args: Any, kwargs: Any) -> Any:
    if len(args) > 1:
        return (args[0], args[1] * factor, *args[2:]), kwargs
    return args, {**kwargs, "key": kwargs["key"] * factor}


def apply_multipliers_(model: nn.Module, multipliers: Sequence[Multiplier]) -> None:
    """Have the forward pass make these products, by hooks of the modules; those of an earlier call are taken off."""
    for module in model.modules():
        for hooks in (module._forward_hooks, module._forward_pre_hooks):
            for key in [k for k, hook in hooks.items() if getattr(hook, "func", None) in _OURS]:
                del hooks[key]
                module._forward_pre_hooks_with_kwargs.pop(key, None)
    for one in multipliers:
        module = model.get_submodule(one.where) if one.place != "by hand" else model
        if one.place == "output":
            module.register_forward_hook(partial(_times_output, one.factor, one.channels))
        elif one.place == "input":
            module.register_forward_pre_hook(partial(_times_input, one.factor))
        elif one.place == "key":
            module.register_forward_pre_hook(partial(_times_key, one.factor), with_kwargs=True)


_OURS = (_times_output, _times_input, _times_key)


def layer_kinds(model: nn.Module, base: nn.Module) -> dict[str, TensorKind]:
    """What each module that owns tensors is, by its matrices; a layer that shares the weight of a table is an output."""
    kinds = {t.name: t.kind for t in transferred_tensors(model, base)}
    names = {id(p): name for name, p in model.named_parameters()}
    found: dict[str, TensorKind] = {}
    for where, module in model.named_modules():
        own = sorted(module.parameters(recurse=False), key=lambda p: -p.ndim)
        if own:
            kind = kinds[names[id(own[0])]]
            is_tied = kind == "embedding" and isinstance(module, LINEAR)
            found[where] = "output" if is_tied else kind
    return found
