"""Each layer's gradient, its change since the look before, and the way its weights have come, over the steps."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from theodolite.verbs.watching.records import Record

MOST = 300
"""Layers that are noted at each look; of more, evenly spread ones."""

ENTRIES = 1 << 14
"""Entries of a matrix by which the way it has come is told."""

ROWS = {"gradient": "gradient by layer", "update": "change by layer", "travel": "distance from the start"}


def layer_facts(
    model: nn.Module, slopes: Sequence[Tensor] | None, starts: Mapping[str, Tensor], ways: dict[str, Tensor]
) -> dict[str, float]:
    """The length of each weight matrix's gradient, where there is one, and how far it has come of its length at the start.

    ``slopes`` is the gradient, one tensor a parameter; ``starts`` are the `starting_entries` of the run. ``ways`` has the ways
    that they had come at the look before, which tell how far they have come since; it is left with those now.

    >>> layer = nn.Linear(2, 1, bias=False)
    >>> _ = nn.init.ones_(layer.weight)
    >>> starts, ways = starting_entries(layer, {"weight": layer.weight.detach() * 2}), {}
    >>> layer_facts(layer, [torch.tensor([[3.0, 4.0]])], starts, ways)
    {'gradient of weight': 5.0, 'travel of weight': 0.5}
    >>> _ = nn.init.zeros_(layer.weight)
    >>> layer_facts(layer, None, starts, ways)
    {'update of weight': 0.5, 'travel of weight': 1.0}
    """
    named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    chosen = _chosen(named)
    if not chosen:
        return {}
    parts: dict[str, Tensor] = {}
    if slopes is not None:
        if [slope.numel() for slope in slopes] != [p.numel() for _, p in named]:  # parameters that are made of others
            return {}
        parts = {name: slope for (name, _), slope in zip(named, slopes, strict=True) if name in chosen}
    known = [name for name in chosen if name in starts]
    began = [starts[name] for name in known]
    moved = torch._foreach_sub([_entries(chosen[name]) for name in known], began) if known else []
    again = known if ways.keys() == set(known) else []
    since = torch._foreach_sub(list(moved), [ways[name] for name in known]) if again else []
    lengths = iter(_lengths([*parts.values(), *began, *since, *moved]))  # the device is waited for once
    facts = {f"gradient of {name}": next(lengths) for name in parts}
    long = {name: next(lengths) or 1.0 for name in known}
    facts |= {f"update of {name}": next(lengths) / long[name] for name in again}
    ways.clear()
    ways.update(zip(known, moved, strict=True))
    return facts | {f"travel of {name}": next(lengths) / long[name] for name in known}


def starting_entries(model: nn.Module, origin: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Some entries of each weight matrix at the start, where the model is."""
    named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    own = {name: p.device for name, p in _chosen(named).items() if name in origin}
    return {name: _entries(origin[name]).to(device, copy=True) for name, device in own.items()}  # no view of the whole


def stays(model: nn.Module, origin: Mapping[str, Tensor], name: str) -> bool:
    """Whether a parameter is what it was at the start, by some of its entries.

    >>> layer = nn.Linear(2, 1)
    >>> stays(layer, {"weight": layer.weight.detach().clone(), "bias": layer.bias.detach() + 1}, "weight")
    True
    """
    if name not in origin:
        return True
    return torch.equal(_entries(model.get_parameter(name).detach()).cpu(), _entries(origin[name]).cpu())


def _chosen(named: Sequence[tuple[str, Tensor]]) -> dict[str, Tensor]:
    matrices = [(name, p.detach()) for name, p in named if p.ndim > 1]
    return dict(matrices[:: -(-len(matrices) // MOST) or 1])


def _lengths(tensors: list[Tensor]) -> list[float]:
    if not tensors:
        return []
    return torch.stack(torch._foreach_norm(tensors)).tolist()


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
