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


def layer_facts(model: nn.Module, gradient: Tensor, origin: Mapping[str, Tensor]) -> dict[str, float]:
    """The length of each weight matrix's gradient, and how far it has come of its length at the start.

    >>> layer = nn.Linear(2, 1, bias=False)
    >>> _ = nn.init.ones_(layer.weight)
    >>> start = {"weight": layer.weight.detach() * 2}
    >>> layer_facts(layer, torch.tensor([3.0, 4.0]), start)
    {'gradient of weight': 5.0, 'travel of weight': 0.5}
    """
    named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    if sum(p.numel() for _, p in named) != gradient.numel():  # parameters that are made of others
        return {}
    parts = dict(
        zip((name for name, _ in named), gradient.split_with_sizes([p.numel() for _, p in named]), strict=True)
    )
    matrices = [(name, p) for name, p in named if p.ndim > 1]
    chosen = matrices[:: -(-len(matrices) // MOST) or 1]
    lengths = (
        torch.stack([parts[name].norm() for name, _ in chosen]).tolist() if chosen else []
    )  # waits for the device once
    facts = {}
    for (name, p), length in zip(chosen, lengths, strict=True):
        facts[f"gradient of {name}"] = length
        if name in origin:
            now, first = _entries(p.detach()), _entries(origin[name])
            facts[f"travel of {name}"] = float((now - first).norm()) / (float(first.norm()) or 1.0)
    return facts


def _entries(tensor: Tensor) -> Tensor:
    """Evenly spread entries: of a ratio of two lengths ten thousand tell the second digit, and few bytes leave the device."""
    return tensor.reshape(-1)[:: -(-tensor.numel() // ENTRIES) or 1].cpu().double()


def layer_tables(records: Sequence[Record]) -> dict[str, tuple[list[str], list[list[float]]]]:
    """For each row its layers and their numbers (layers, records); zero where a look did not read it."""
    found = {}
    for kind, title in ROWS.items():
        head = f"{kind} of "
        layers = list(dict.fromkeys(key[len(head) :] for r in records for key in r.facts if key.startswith(head)))
        if layers:
            found[title] = layers, [[r.facts.get(head + layer, 0.0) for r in records] for layer in layers]
    return found
