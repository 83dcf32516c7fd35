"""Named tensors of a model or checkpoint, read one at a time; what cannot be read is named, and the rest goes on."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from theodolite.core.checks import InputTypeError, check_finite, check_made
from theodolite.core.lazy_torch import dtype_of, is_module, is_tensor, kind_of, torch
from theodolite.io.files import said

if TYPE_CHECKING:
    from torch import Tensor, nn

SMALL = 1 << 17
"""Entries up to which a tensor is read when it is wanted, not ahead."""

STATES = ("state_dict", "model_state_dict", "model", "module")
"""Names under which training loops save a state dict."""


@dataclass(frozen=True)
class Weight:
    """One named tensor; ``read()`` brings it into memory, nothing else does.

    ``kind`` is the name of its type of numbers (torch's type itself is taken too).
    ``source`` identifies the file it lies in, with its size and time: what is computed from it may then be kept on disk.
    ``note`` says what was done to get it, where that is more than reading.
    """

    name: str
    shape: tuple[int, ...]
    kind: Any
    read: Callable[[], Tensor] = field(repr=False)
    source: str = ""
    device: str = "cpu"
    note: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", kind_of(self.kind))

    @property
    def dtype(self) -> torch.dtype:
        """Torch's type of its numbers."""
        return dtype_of(self.kind)

    @property
    def floating(self) -> bool:
        """Whether its numbers are real ones, not whole or complex."""
        return "float" in self.kind

    def values(self) -> Any:
        """The numbers in memory: an array where that can be had without torch, else the tensor."""
        plain = getattr(self.read, "array", None)
        return self.read() if plain is None else plain()


Weights = Mapping[str, Weight]


class Listed(dict[str, Weight]):
    """The weights of a checkpoint, and what of it is not surveyed: for each reason the names."""

    def __init__(self, weights: Weights, left_out: Mapping[str, tuple[str, ...]] | None = None) -> None:
        super().__init__(weights)
        self.left_out: dict[str, tuple[str, ...]] = {why: names for why, names in (left_out or {}).items() if names}


def are_weights(given: Any) -> bool:
    """Whether it maps names to `Weight`."""
    return isinstance(given, Mapping) and all(isinstance(weight, Weight) for weight in given.values())


def left_out(weights: Weights) -> dict[str, tuple[str, ...]]:
    """What of a checkpoint is not among its weights: for each reason the names."""
    return dict(weights.left_out) if isinstance(weights, Listed) else {}


def weights_of(tensors: nn.Module | Mapping[str, Tensor], *, source: str = "") -> dict[str, Weight]:
    """The parameters of a module (tied ones once), or the tensors of a state dict."""
    pairs = list(tensors.named_parameters() if is_module(tensors) else tensors.items())
    for name, tensor in pairs:
        check_made(name, tensor)
    return {name: Weight(name, tuple(t.shape), t.dtype, t.detach, source) for name, t in pairs}


def state_of(given: Mapping[str, Any]) -> dict[str, Tensor]:
    """The tensors of a state dict, or of a training checkpoint that holds one under a usual name."""
    for name in STATES:
        if isinstance(given.get(name), Mapping):
            return state_of(given[name])
    found = {name: value for name, value in given.items() if is_tensor(value)}
    if not found or not all(isinstance(name, str) for name in found):
        kinds = sorted({type(value).__name__ for value in given.values()}) or ["nothing"]
        raise InputTypeError(
            f"expected a state dict of names and tensors, got {', '.join(kinds)}; pass model.state_dict()"
        )
    return found


def owners_of(model: nn.Module | None) -> dict[str, nn.Module]:
    """The module that holds each parameter, by the parameter's name; nothing without a model."""
    modules = [] if model is None else list(model.named_modules())
    return {
        f"{prefix}.{name}" if prefix else name: module
        for prefix, module in modules
        for name, _ in module.named_parameters(recurse=False)
    }


def readable(weights: Weights, faults: dict[str, str], *, arrays: bool = False) -> Iterator[tuple[Weight, Any]]:
    """Each tensor that is there and finite, the next one read while this one is worked on.

    The others are put into ``faults``, name and reason. With ``arrays`` what can be had without torch comes as numpy's.
    """
    with ThreadPoolExecutor(max_workers=1) as reader:
        waiting = list(weights.values())
        ahead: Any = None
        for place, weight in enumerate(waiting):
            found = _held(weight, arrays) if ahead is None else ahead.result()
            following = waiting[place + 1] if place + 1 < len(waiting) else None
            if following is not None and math.prod(following.shape) > SMALL:  # else it is read sooner than asked for
                ahead = reader.submit(_held, following, arrays)
            else:
                ahead = None
            if isinstance(found, str):
                faults[weight.name] = found
            else:
                yield weight, found


def _held(weight: Weight, arrays: bool) -> Any:
    """The numbers, or in words why there are none."""
    try:
        tensor = weight.values() if arrays else weight.read()
        check_finite(weight.name, tensor)
    except Exception as error:  # a missing shard, a truncated file, values that are not numbers: each has its own kind
        return said(error)
    return tensor


WRAPPERS = ("module", "_orig_mod", "model", "base_model")
"""First parts of names that a wrapper puts before those of the model inside."""


def counterparts(weights: Weights, others: Weights) -> dict[str, Weight]:
    """The tensors of another checkpoint under the names of this one, where shapes agree.

    A name is looked for as it is, then without the parts that wrappers put before it, and without a first part that at least
    half of a checkpoint's names share (``bert.``) where more is found so; a name that then stands for several is not matched.
    """
    found = {n: others[n] for n, weight in weights.items() if n in others and others[n].shape == weight.shape}
    ways = [_matched(weights, own, others, bare) for own in _bare_names(weights) for bare in _bare_names(others)]
    found = max(ways, key=len) | found
    return {name: found[name] for name in weights if name in found}


def _matched(weights: Weights, own: Mapping[str, str], others: Weights, bare: Mapping[str, str]) -> dict[str, Weight]:
    """The tensors whose bare names are those of one tensor of the same shape."""
    times, places = Counter(bare.values()), {inner: name for name, inner in bare.items()}
    pairs = [(name, places[inner]) for name, inner in own.items() if times[inner] == 1]
    return {name: replace(others[o], name=name) for name, o in pairs if others[o].shape == weights[name].shape}


def _bare_names(weights: Weights) -> list[dict[str, str]]:
    """Each name without the wrappers around it, and without the first part that most share."""
    names = {name: _unwrapped(name) for name in weights}
    firsts = Counter(inner.partition(".")[0] for inner in names.values() if "." in inner)
    first, times = firsts.most_common(1)[0] if firsts else ("", 0)
    if 2 * times < len(names) or times < 2:
        return [names]
    return [names, {name: _unwrapped(inner.removeprefix(f"{first}.")) for name, inner in names.items()}]


def _unwrapped(name: str) -> str:
    while name.partition(".")[0] in WRAPPERS and "." in name:
        name = name.partition(".")[2]
    return name
