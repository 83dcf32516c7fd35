"""What a watch begins with: the bare model, a probe that stays the same, and the weights that the run started from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.state import untouched
from theodolite.io.files import write_atomically


def bare_model(model: Any) -> Any:
    """The module itself where it is compiled, or wrapped to run on several devices."""
    while True:
        inner = getattr(model, "_orig_mod", model)
        if isinstance(inner, nn.parallel.DistributedDataParallel | nn.DataParallel):
            inner = inner.module
        if inner is model:
            return model
        model = inner


def kept_probe(probe: Any, model: Any) -> Any:
    """A loader is read once, so that every look sees the same samples; a list of tensors is a batch, as loaders give them."""
    if isinstance(probe, torch.utils.data.DataLoader):
        with untouched(model if isinstance(model, nn.Module) else None):
            return list(probe)
    if isinstance(probe, list) and probe and all(isinstance(member, Tensor) for member in probe):
        return tuple(probe)
    return probe


def starting_weights(model: nn.Module, folder: Path | None) -> dict[str, Tensor]:
    """The weights and buffers that the run first started from: those on disk where there are any, else the present ones."""
    from safetensors.torch import load_file, save

    now = {name: value.detach().to("cpu", copy=True).contiguous() for name, value in model.state_dict().items()}
    path = None if folder is None else folder / "origin.safetensors"
    if path is not None and path.exists():
        found = load_file(path)
        if {n: t.shape for n, t in found.items()} != {n: t.shape for n, t in now.items()}:
            raise ValueError(
                f"expected the model whose run began in {folder}, got one with other tensors; use another folder for out"
            )
        return found
    if path is not None:
        write_atomically(path, save(now))
    return now


def wait_for(model: nn.Module) -> None:
    """Work already given to a GPU is training's, not the watch's."""
    device = next((p.device for p in model.parameters()), None)
    if device is not None and device.type == "cuda":
        torch.cuda.synchronize(device)
