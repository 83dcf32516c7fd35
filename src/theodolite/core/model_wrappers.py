"""What people wrap a model in, taken off: parallel copies, compilation, lazy layers, the named parts of an answer."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from theodolite.core.lazy_torch import is_module, torch

if TYPE_CHECKING:
    from torch import nn


def bare_model(model: Any) -> Any:
    """The module itself where it is compiled, or wrapped to run on several devices, in whatever order."""
    while True:
        if is_module(model) and isinstance(model, (torch.nn.parallel.DistributedDataParallel, torch.nn.DataParallel)):
            model = model.module
        elif is_module(getattr(model, "_orig_mod", None)):
            model = model._orig_mod
        else:
            return model


def copied_model(model: nn.Module, same: dict[int, Any] | None = None) -> nn.Module:
    """A copy of a model that runs its own weights; ``same`` maps identities to what takes their place in it."""
    copied = copy.deepcopy(model, {} if same is None else same)
    leave_borrowed_forwards(copied)
    return copied


def leave_borrowed_forwards(copied: nn.Module) -> None:
    """Take off each ``forward`` that was put in the place of the class's and holds the original: a copy would run that one."""
    for module in copied.modules():
        patched = vars(module).get("forward")
        inner = getattr(patched, "__func__", None)
        bound_here = getattr(patched, "__self__", None) is module and getattr(inner, "__closure__", True) is None
        if patched is not None and not bound_here:
            del module.__dict__["forward"]


def is_lazy(model: nn.Module) -> bool:
    """Whether a layer of it waits for its first batch to be made."""
    kinds = (torch.nn.parameter.UninitializedParameter, torch.nn.parameter.UninitializedBuffer)
    return any(isinstance(tensor, kinds) for tensor in (*model.parameters(), *model.buffers()))


def made_by(model: nn.Module, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> nn.Module:
    """A copy of a lazily built model after its first batch; the model itself, and the random state, stay as they were."""
    made = copied_model(model).eval()
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        made(*inputs, **keywords)
    return made.train(model.training)


def prepared(model: nn.Module, data: Any, loss: Any) -> tuple[nn.Module, Any, Any]:
    """The model made where it waits for its first batch, data that are a path as what the file holds, and a loss for them."""
    if isinstance(data, str | Path):
        from theodolite.io.datasets import dataset, default_loss

        data = dataset(str(data))
        loss = loss or default_loss(data)
    if data is not None and is_lazy(model):
        from theodolite.io.batches import Batches

        waiting = data if isinstance(data, Batches) else Batches(data, model)
        batch = waiting.first()
        model = made_by(model, batch.inputs, dict(batch.keywords))
        data = replace(waiting, model=model)
    return model, data, loss


class OfWholeAnswer:
    """A loss that takes all that a model answers, of which one part is called ``logits``."""

    def __init__(self, loss: Callable[[Any, Any], Any]) -> None:
        self.loss = loss

    def __call__(self, answer: Any, target: Any) -> Any:
        """The loss of all of it."""
        return self.loss(answer, target)


def part_for(loss: Any, answer: Any) -> Any:
    """What a loss is given of an answer: its ``logits`` where parts have names, unless it takes all of them."""
    named = isinstance(answer, Mapping) and "logits" in answer and not isinstance(loss, OfWholeAnswer)
    return answer["logits"] if named else answer


def takes_whole(loss: Callable[[Any, Any], Any], answer: Any, target: Any) -> bool:
    """Whether a loss refuses the ``logits`` of an answer with named parts and takes all of it."""
    part = part_for(loss, answer)
    if part is answer:
        return False
    try:
        loss(part, target)
    except Exception:
        with contextlib.suppress(Exception):
            loss(answer, target)
            return True
    return False


def as_batches(data: Any, model: nn.Module) -> Any:
    """The data as batches of the model; nothing where there are none."""
    from theodolite.io.batches import Batches

    return data if data is None or isinstance(data, Batches) else Batches(data, model)
