"""The same network drawn anew, so many times as wide inside: all hidden numbers of units grow, inputs and outputs stay."""

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.model_wrappers import copied_model
from theodolite.core.state import untouched

NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
LAYERS = (nn.Linear, *CONVOLUTIONS, nn.RNNBase)
"""Layers through which numbers of a sample pass."""


def layers_run(model: nn.Module, *inputs: Any, **keywords: Any) -> dict[str, tuple[nn.Module, Tensor]]:
    """The layers in the order in which they ran, with their first output."""
    found: dict[str, tuple[nn.Module, Tensor]] = {}

    def keep(name: str, module: nn.Module, args: Any, output: Any) -> None:
        z = output if isinstance(output, Tensor) else output[0]
        if isinstance(z, Tensor):
            found.setdefault(name, (module, z))

    with untouched(model), torch.no_grad():
        for name, module in model.named_modules():
            if isinstance(module, (*LAYERS, nn.Embedding)):
                module.register_forward_hook(partial(keep, name))
        model(*inputs, **keywords)
    return found


def widened_copy(model: nn.Module, times: int, *inputs: Any, **keywords: Any) -> nn.Module | None:
    """A copy with fresh weights whose hidden layers are ``times`` as wide; None where it does not answer these inputs as before.

    What reads the inputs first keeps its inputs, what ran last keeps its outputs, a free parameter grows along its last axis.
    A network with frozen or tied weights, or with modules of other kinds that have weights, is not taken.
    """
    every = [p for _, p in model.named_parameters(remove_duplicate=False)]
    if len({id(p) for p in every}) < len(every) or not all(p.requires_grad for p in every):
        return None
    ran = list(layers_run(model, *inputs, **keywords))
    if len(ran) < 2:
        return None
    copied = copied_model(model)
    for name, module in list(copied.named_modules()):
        new = _wider(module, 1 if name == ran[0] else times, 1 if name == ran[-1] else times)
        if new is None:
            return None
        if new is not module:
            parent, _, own = name.rpartition(".")
            setattr(copied.get_submodule(parent), own, new.to(next(model.parameters())))
    try:
        with untouched(model), untouched(copied), torch.no_grad():
            before, after = model(*inputs, **keywords), copied(*inputs, **keywords)
    except (RuntimeError, TypeError, ValueError, IndexError):
        return None
    same = isinstance(before, Tensor) and isinstance(after, Tensor) and before.shape == after.shape
    return copied if same else None


def _wider(module: nn.Module, given: int, made: int) -> nn.Module | None:
    """A fresh module of the kind with so many times its inputs and outputs; the same where it has no weights; None of others."""
    one: Any = module
    if isinstance(module, nn.Linear):
        return nn.Linear(module.in_features * given, module.out_features * made, module.bias is not None)
    if isinstance(module, CONVOLUTIONS):
        groups = one.groups * given if one.groups == one.in_channels else one.groups
        shape = (one.kernel_size, one.stride, one.padding, one.dilation, groups, one.bias is not None, one.padding_mode)
        return type(one)(one.in_channels * given, one.out_channels * made, *shape)
    if isinstance(module, nn.Embedding):
        return nn.Embedding(module.num_embeddings, module.embedding_dim * made, module.padding_idx)
    if isinstance(module, NORMS):
        sizes = (one.num_features * made, one.eps, one.momentum, one.affine, one.track_running_stats)
        return type(one)(*sizes)
    if isinstance(module, nn.LayerNorm) and len(module.normalized_shape) == 1:
        return nn.LayerNorm(module.normalized_shape[0] * made, module.eps, module.elementwise_affine)
    if isinstance(module, nn.RNNBase) and not one.proj_size:
        options = {"num_layers": one.num_layers, "batch_first": one.batch_first, "bidirectional": one.bidirectional}
        return type(one)(one.input_size * given, one.hidden_size * made, **options)
    own = dict(module.named_parameters(recurse=False))
    if own and type(module).__module__.startswith("torch.nn"):
        return None
    for name, parameter in own.items():  # positions, say: as large as they are, along as many more units
        setattr(module, name, nn.Parameter(torch.cat([parameter.detach()] * made, -1)))
    return module
