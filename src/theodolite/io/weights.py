"""Named tensors of a model or checkpoint, read one at a time; what cannot be read is named, and the rest goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.checks import check_finite, check_made
from theodolite.io.files import said

STATES = ("state_dict", "model_state_dict", "model", "module")
"""Names under which training loops save a state dict."""


@dataclass(frozen=True)
class Weight:
    """One named tensor; ``read()`` brings it into memory, nothing else does.

    ``source`` identifies the file it lies in, with its size and time: what is computed from it may then be kept on disk.
    ``note`` says what was done to get it, where that is more than reading.
    """

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    read: Callable[[], Tensor] = field(repr=False)
    source: str = ""
    device: str = "cpu"
    note: str = ""


Weights = Mapping[str, Weight]


class Listed(dict[str, Weight]):
    """The weights of a checkpoint, and what of it is not surveyed: for each reason the names."""

    def __init__(self, weights: Weights, left_out: Mapping[str, tuple[str, ...]] | None = None) -> None:
        super().__init__(weights)
        self.left_out: dict[str, tuple[str, ...]] = {why: names for why, names in (left_out or {}).items() if names}


def left_out(weights: Weights) -> dict[str, tuple[str, ...]]:
    """What of a checkpoint is not among its weights: for each reason the names."""
    return dict(weights.left_out) if isinstance(weights, Listed) else {}


def weights_of(tensors: nn.Module | Mapping[str, Tensor], *, source: str = "") -> dict[str, Weight]:
    """The parameters of a module (tied ones once), or the tensors of a state dict."""
    pairs = list(tensors.named_parameters() if isinstance(tensors, nn.Module) else tensors.items())
    for name, tensor in pairs:
        check_made(name, tensor)
    return {name: Weight(name, tuple(t.shape), t.dtype, t.detach, source) for name, t in pairs}


def state_of(given: Mapping[str, Any]) -> dict[str, Tensor]:
    """The tensors of a state dict, or of a training checkpoint that holds one under a usual name."""
    for name in STATES:
        if isinstance(given.get(name), Mapping):
            return state_of(given[name])
    found = {name: value for name, value in given.items() if isinstance(value, Tensor)}
    if not found or not all(isinstance(name, str) for name in found):
        kinds = sorted({type(value).__name__ for value in given.values()}) or ["nothing"]
        raise TypeError(f"expected a state dict of names and tensors, got {', '.join(kinds)}; pass model.state_dict()")
    return found


def owners_of(model: nn.Module | None) -> dict[str, nn.Module]:
    """The module that holds each parameter, by the parameter's name; nothing without a model."""
    modules = [] if model is None else list(model.named_modules())
    return {
        f"{prefix}.{name}" if prefix else name: module
        for prefix, module in modules
        for name, _ in module.named_parameters(recurse=False)
    }


def readable(weights: Weights, faults: dict[str, str]) -> Iterator[tuple[Weight, Tensor]]:
    """Each tensor that is there and finite, the next one read while this one is worked on.

    The others are put into ``faults``, name and reason.
    """
    with ThreadPoolExecutor(max_workers=1) as reader:
        waiting = list(weights.values())
        ahead = reader.submit(_tensor, waiting[0]) if waiting else None
        for place, weight in enumerate(waiting):
            assert ahead is not None
            found = ahead.result()
            ahead = reader.submit(_tensor, waiting[place + 1]) if place + 1 < len(waiting) else None
            if isinstance(found, str):
                faults[weight.name] = found
            else:
                yield weight, found


def _tensor(weight: Weight) -> Tensor | str:
    """The tensor, or in words why there is none."""
    try:
        tensor = weight.read()
        check_finite(weight.name, tensor)
    except Exception as error:  # a missing shard, a truncated file, values that are not numbers: each has its own kind
        return said(error)
    return tensor
