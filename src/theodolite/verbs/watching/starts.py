"""What a watch begins with: the bare model, a probe that stays the same, and the weights that the run started from."""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.checks import InputError, NotFiniteError
from theodolite.core.model_wrappers import bare_model
from theodolite.core.state import untouched
from theodolite.core.subject import Subject
from theodolite.io.files import write_atomically
from theodolite.io.tensors_on_disk import OnDisk
from theodolite.io.weights import weights_of
from theodolite.verbs.watching.look_context import LARGE


def watched_model(model: Any) -> Any:
    """The bare model; one that its first batch has yet to make is refused, not watched as a copy."""
    bare = bare_model(model)
    if isinstance(bare, nn.Module):
        weights_of(bare)
    return bare


def kept_probe(probe: Any, model: Any) -> Any:
    """A loader is read once, so that every look sees the same samples; a list of tensors is a batch, as loaders give them."""
    if isinstance(probe, torch.utils.data.DataLoader):
        with untouched(model if isinstance(model, nn.Module) else None):
            return list(probe)
    if isinstance(probe, list) and probe and all(isinstance(member, Tensor) for member in probe):
        return tuple(probe)
    return probe


def watched_subject(model: nn.Module, probe: Any, loss: Any, name: str) -> Subject:
    """The subject of a run; one whose first answers are not finite is taken all the same: its diagnosis tells why."""
    data = kept_probe(probe, model)
    try:
        return Subject(model, data=data, loss=loss, name=name)
    except NotFiniteError:
        return Subject(model, data=data, loss=loss, name=name, checked=False)


def starting_weights(model: nn.Module, folder: Path | None) -> Mapping[str, Tensor]:
    """The weights and buffers that the run first started from: those on disk where there are any, else the present ones."""
    found = _starting_weights(model, folder)  # of a large model not in the memory that training uses too
    parameters = list(model.parameters())
    if sum(p.numel() for p in parameters) < LARGE or parameters[0].device.type != "cpu":
        return found
    with contextlib.suppress(OSError):  # no room for it, or nowhere to write
        return OnDisk(found)
    return found


def _starting_weights(model: nn.Module, folder: Path | None) -> dict[str, Tensor]:
    from safetensors.torch import load_file, save

    now = {name: value.detach().to("cpu", copy=True).contiguous() for name, value in model.state_dict().items()}
    path = None if folder is None else folder / "origin.safetensors"
    if path is not None and path.exists():
        found = load_file(path)
        if {n: t.shape for n, t in found.items()} != {n: t.shape for n, t in now.items()}:
            raise InputError(
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
