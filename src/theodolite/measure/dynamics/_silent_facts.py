"""Exact facts about a model and its optimizer that no training should show; each is a few comparisons, without a pass."""

import random
from typing import Any

import torch
from torch import Tensor, nn


def parameters_replaced(model: nn.Module, optimizer: Any) -> tuple[str, ...]:
    """Trainable parameters in no group for which the optimizer holds a tensor of the same shape that is not the model's."""
    own = {id(p) for p in model.parameters()}
    held = [p for group in optimizer.param_groups for p in group["params"]]
    strangers = [tuple(p.shape) for p in held if id(p) not in own]
    ids, found = {id(p) for p in held}, []
    for name, parameter in model.named_parameters():
        shape = tuple(parameter.shape)
        if parameter.requires_grad and id(parameter) not in ids and shape in strangers:
            strangers.remove(shape)
            found.append(name)
    return tuple(found)


def generator_shared(loader: Any) -> tuple[str, ...]:
    """How many workers of a loader copy a random generator that its data set holds, and its name; nothing where none does."""
    workers = getattr(loader, "num_workers", 0)
    if not isinstance(workers, int) or workers < 2 or getattr(loader, "worker_init_fn", None) is not None:
        return ()
    import numpy as np

    kinds = (np.random.Generator, np.random.RandomState, torch.Generator, random.Random)
    held = getattr(getattr(loader, "dataset", None), "__dict__", {})
    name = next((name for name, value in held.items() if isinstance(value, kinds)), None)
    return () if name is None else (str(workers), name)


def tied_names(model: nn.Module) -> tuple[tuple[str, ...], ...]:
    """The names that have one parameter together."""
    names: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    return tuple(tuple(own) for own in names.values() if len(own) > 1)


def parted_copies(model: nn.Module) -> tuple[tuple[str, str], ...]:
    """An embedding and an output layer that are two tensors with the very same entries: tied once, and copied apart."""
    modules = dict(model.named_modules())
    tables = {name: m.weight for name, m in modules.items() if isinstance(m, nn.Embedding)}
    layers = {name: m.weight for name, m in modules.items() if isinstance(m, nn.Linear)}
    return tuple(
        (f"{one}.weight", f"{other}.weight")
        for one, a in tables.items()
        for other, b in layers.items()
        if a is not b and a.shape == b.shape and a.requires_grad and b.requires_grad and _same_and_drawn(a, b)
    )


def _same_and_drawn(one: Tensor, other: Tensor) -> bool:
    corner = one.detach().reshape(-1)[:64]
    return (
        bool((corner != corner[0]).any())
        and torch.equal(corner, other.detach().reshape(-1)[:64])
        and torch.equal(one, other)
    )


def not_finite(model: nn.Module) -> tuple[str, ...]:
    """Names of floating parameters and running statistics that hold NaN or infinite entries."""
    tensors = [*model.named_parameters(), *((n, b) for n, b in model.named_buffers() if "running" in n)]
    named = [(name, tensor) for name, tensor in tensors if tensor.is_floating_point() and not tensor.is_sparse]
    if not named:
        return ()
    sums = torch.stack([tensor.detach().sum(dtype=torch.float32).cpu() for _, tensor in named])
    odd = [pair for pair, fine in zip(named, torch.isfinite(sums).tolist(), strict=True) if not fine]
    return tuple(name for name, tensor in odd if not bool(torch.isfinite(tensor).all()))


def acts_in_training(model: nn.Module) -> tuple[str, ...]:
    """Kinds of layers that do another thing in training than in evaluation: dropout, and normalization over batches."""
    kinds = []
    for module in model.modules():
        drops = isinstance(module, nn.modules.dropout._DropoutNd) and module.p > 0
        normalizes = isinstance(module, nn.modules.batchnorm._BatchNorm) and module.track_running_stats
        drops |= isinstance(module, nn.RNNBase | nn.MultiheadAttention) and float(module.dropout) > 0
        if drops or normalizes:
            kinds.append(type(module).__name__)
    return tuple(dict.fromkeys(kinds))
