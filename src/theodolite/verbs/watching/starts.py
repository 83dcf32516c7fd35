"""What a watch begins with: the bare model, a probe that stays the same, and the weights that the run started from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.checks import NotFiniteError
from theodolite.core.state import untouched
from theodolite.core.subject import Subject
from theodolite.core.wrappers import bare_model
from theodolite.io.files import write_atomically
from theodolite.io.weights import weights_of


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


def full_precision(model: nn.Module) -> torch.autocast:
    """Out of any autocast that training runs under."""
    device = next((p.device.type for p in model.parameters()), "cpu")
    return torch.autocast(device, enabled=False)


def optimiser_step(optimiser: Any) -> tuple[float | None, float]:
    """Step size and momentum of plain or heavy-ball SGD; no step for others, whose edge of stability is another.

    >>> optimiser_step(torch.optim.SGD([torch.zeros(1)], lr=0.1, momentum=0.9))
    (0.1, 0.9)
    >>> optimiser_step(torch.optim.Adam([torch.zeros(1)], lr=0.1))
    (None, 0.0)
    """
    inner = getattr(optimiser, "optimizer", optimiser)  # as accelerate and Lightning wrap it
    if not isinstance(inner, torch.optim.SGD):
        return None, 0.0
    group = inner.param_groups[0]
    if group["nesterov"] or group["dampening"] or group["maximize"] or group["lr"] <= 0:
        return None, 0.0
    return float(group["lr"]), float(group["momentum"])
