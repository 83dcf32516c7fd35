"""Each layer's gradient and the way its weights have come, over the steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor, nn

from theodolite.verbs.watching.records import Record

MOST = 300
"""Layers that are noted at each look; of more, evenly spread ones."""

ROWS = {"gradient": "gradient by layer", "travel": "way from the start"}


def layer_facts(model: nn.Module, gradient: Tensor, origin: Mapping[str, Tensor]) -> dict[str, float]:
    """The length of each weight matrix's gradient, and how far it has come of its length at the start.

    >>> layer = nn.Linear(2, 1, bias=False)
    >>> _ = nn.init.ones_(layer.weight)
    >>> start = {"weight": layer.weight.detach() * 2}
    >>> import torch
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
    facts = {}
    for name, p in matrices[:: -(-len(matrices) // MOST) or 1]:
        facts[f"gradient of {name}"] = float(parts[name].double().norm())
        if name in origin:
            first = origin[name].double()
            far = float((p.detach().double().cpu() - first.cpu()).norm())
            facts[f"travel of {name}"] = far / (float(first.norm()) or 1.0)
    return facts


def layer_tables(records: Sequence[Record]) -> dict[str, tuple[list[str], list[list[float]]]]:
    """For each row its layers and their numbers (layers, records); zero where a look did not read it."""
    found = {}
    for kind, title in ROWS.items():
        head = f"{kind} of "
        layers = list(dict.fromkeys(key[len(head) :] for r in records for key in r.facts if key.startswith(head)))
        if layers:
            found[title] = layers, [[r.facts.get(head + layer, 0.0) for r in records] for layer in layers]
    return found
