"""Each layer's gradient and the way its weights have come, over the steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from theodolite.verbs.watching.records import Record

MOST = 300
"""Layers that are noted at each look; of more, evenly spread ones."""

ENTRIES = 1 << 14
"""Entries of a matrix by which the way it has come is told."""

ROWS = {"gradient": "gradient by layer", "travel": "way from the start"}


def layer_facts(model: nn.Module, gradient: Tensor, starts: Mapping[str, Tensor]) -> dict[str, float]:
    """The length of each weight matrix's gradient, and how far it has come of its length at the start.

    ``starts`` are the `starting_entries` of the run.

    >>> layer = nn.Linear(2, 1, bias=False)
    >>> _ = nn.init.ones_(layer.weight)
    >>> starts = starting_entries(layer, {"weight": layer.weight.detach() * 2})
    >>> layer_facts(layer, torch.tensor([3.0, 4.0]), starts)
    {'gradient of weight': 5.0, 'travel of weight': 0.5}
    """
    named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    if sum(p.numel() for _, p in named) != gradient.numel():  # parameters that are made of others
        return {}
    parts = dict(
        zip((name for name, _ in named), gradient.split_with_sizes([p.numel() for _, p in named]), strict=True)
    )
    chosen = _chosen(model)
    if not chosen:
        return {}
    facts = {f"gradient of {name}": length for name, length in _lengths({name: parts[name] for name in chosen}).items()}
    moved = {name: _entries(p) - starts[name] for name, p in chosen.items() if name in starts}
    if moved:  # one kernel for all of them, and the device is waited for once
        long = _lengths({name: starts[name] for name in moved})
        facts |= {f"travel of {name}": length / (long[name] or 1.0) for name, length in _lengths(moved).items()}
    return facts


def starting_entries(model: nn.Module, origin: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Some entries of each weight matrix at the start, where the model is."""
    return {name: _entries(origin[name]).to(p.device) for name, p in _chosen(model).items() if name in origin}


def _chosen(model: nn.Module) -> dict[str, Tensor]:
    matrices = [(name, p.detach()) for name, p in model.named_parameters() if p.requires_grad and p.ndim > 1]
    return dict(matrices[:: -(-len(matrices) // MOST) or 1])


def _lengths(tensors: Mapping[str, Tensor]) -> dict[str, float]:
    return dict(zip(tensors, torch.stack(torch._foreach_norm(list(tensors.values()))).tolist(), strict=True))


def _entries(tensor: Tensor) -> Tensor:
    """Evenly spread entries: of a ratio of two lengths ten thousand tell the second digit."""
    return tensor.reshape(-1)[:: -(-tensor.numel() // ENTRIES) or 1].float()


def layer_tables(records: Sequence[Record]) -> dict[str, tuple[list[str], list[list[float]]]]:
    """For each row its layers and their numbers (layers, records); zero where a look did not read it."""
    found = {}
    for kind, title in ROWS.items():
        head = f"{kind} of "
        layers = list(dict.fromkeys(key[len(head) :] for r in records for key in r.facts if key.startswith(head)))
        if layers:
            found[title] = layers, [[r.facts.get(head + layer, 0.0) for r in records] for layer in layers]
    return found
