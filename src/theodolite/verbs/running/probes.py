"""From calls that were seen to what a watch takes: the model as a function of one batch, the batch, and the loss."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.model_wrappers import bare_model
from theodolite.measure import first_tensor

LOSSES = (
    "cross_entropy",
    "nll_loss",
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "kl_div",
    "poisson_nll_loss",
)
"""Functions of torch.nn.functional whose first two arguments are an output and a target; loss modules call them too."""

_DROPPED = ("num_items_in_batch",)
"""Arguments of a model that are about the whole batch, and would be wrong for a part of it."""


@dataclass(frozen=True)
class SeenForward:
    """One call of a module: with what, what came, and the precision around it."""

    module: nn.Module
    args: tuple[Any, ...]
    keywords: Mapping[str, Any]
    output: Any
    precision: torch.dtype | None = None


@dataclass(frozen=True)
class SeenLoss:
    """One call of a loss: the function of output and target that it is, and these two."""

    function: Callable[[Any, Any], Any]
    name: str
    value: Tensor
    output: Tensor
    target: Any


class Watched(nn.Module):
    """The model of a script as a function of one batch by names: ``arg0``, ``arg1``, ... and ``key_`` and its keywords.

    It answers the output that the loss is given, or where the model computes its loss itself, that loss.
    """

    def __init__(self, model: nn.Module, *, own_loss: bool) -> None:
        super().__init__()
        self.model, self.own_loss = model, own_loss
        self.training = model.training  # its parts keep the modes that the script gave them

    def forward(self, **batch: Any) -> Any:
        """Call the model as the script does."""
        args = [batch[f"arg{n}"] for n in range(len(batch)) if f"arg{n}" in batch]
        named = {key.removeprefix("key_"): value for key, value in batch.items() if key.startswith("key_")}
        output = self.model(*args, **named)
        return loss_in(output) if self.own_loss else first_tensor(output)


@dataclass(frozen=True)
class Probe:
    """What a watch is made of, and what was seen in words."""

    model: Watched
    batch: Mapping[str, Any]
    loss: Callable[[Any, Any], Tensor]
    words: str


def seen_loss(whole: Any, args: tuple[Any, ...], keywords: Mapping[str, Any], value: Tensor) -> SeenLoss | None:
    """A call of a loss as a function of output and target; None where these two are not told."""
    rest = dict(keywords)
    both = [*args[:2], *(rest.pop(name) for name in ("input", "target")[len(args[:2]) :] if name in rest)]
    if len(both) != 2 or not isinstance(both[0], Tensor):
        return None
    return SeenLoss(functools.partial(_called, whole, args[2:], rest), whole.__name__, value, *both)


def probe_of(forward: SeenForward, losses: Sequence[SeenLoss], roots: Sequence[Tensor] = ()) -> Probe | None:
    """Model, batch and loss; None where the loss that is trained was not seen. ``roots`` are what backward was called on."""
    model = bare_model(forward.module)  # a look is on one process: the wrapper would wait for the others
    batch = {f"arg{n}": _kept(value) for n, value in enumerate(forward.args)}
    batch |= {f"key_{name}": _kept(value) for name, value in forward.keywords.items() if name not in _DROPPED}
    first = next((value for value in batch.values() if isinstance(value, Tensor) and value.ndim), None)
    if first is None:
        return None
    if loss_in(forward.output) is not None:
        whole = {**batch, "y": torch.zeros(len(first))}
        return Probe(Watched(model, own_loss=True), whole, _itself, "whose loss the model computes itself")
    with suppress(TypeError):
        output = first_tensor(forward.output)
        for call in reversed(losses):
            if (
                _is_of(call.output, output)
                and isinstance(call.target, Tensor)
                and call.target.numel() % len(first) == 0
            ):
                shapes = call.output.shape[1:], call.target.shape[1:]
                target = _kept(call.target).reshape(len(first), -1, *shapes[1])
                target = target[:, 0] if target.shape[1] == 1 else target
                loss = functools.partial(_compared, call.function, shapes)
                words = f"loss {call.name}{_part(call, roots)}"
                return Probe(Watched(model, own_loss=False), {**batch, "y": target}, loss, words)
    return None


def loss_in(output: Any) -> Tensor | None:
    """The loss that an answer holds under that name."""
    found = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    return found if isinstance(found, Tensor) and found.numel() == 1 else None


def _part(call: SeenLoss, roots: Sequence[Tensor]) -> str:
    """In words, where backward was called on more than this loss, as on a sum with a penalty."""
    whole = not roots or any(_is_multiple(root, call.value) for root in roots)
    return "" if whole else " (a part of what it minimizes)"


def _is_multiple(root: Tensor, value: Tensor) -> bool:
    """Whether a tensor is this value, or was made from it alone: divided for accumulation, or scaled."""
    node: Any = root.grad_fn
    while node is not None and node is not value.grad_fn:
        before = [each for each, _ in node.next_functions if each is not None]
        node = before[0] if len(before) == 1 else None
    return root is value or node is not None


def _is_of(compared: Tensor, output: Tensor) -> bool:
    """Whether what was compared is the output itself, or the same numbers in another shape."""
    same = compared.untyped_storage().data_ptr() == output.untyped_storage().data_ptr()
    return compared is output or (same and compared.numel() == output.numel())


def _compared(function: Any, shapes: tuple[Any, Any], output: Any, target: Any) -> Tensor:
    """The loss of the script on an output and a target of another number of samples."""
    found: Tensor = function(output.reshape(-1, *shapes[0]), target.reshape(-1, *shapes[1]))
    return found


def _called(whole: Any, rest: tuple[Any, ...], keywords: Mapping[str, Any], output: Any, target: Any) -> Any:
    return whole(output, target, *rest, **keywords)


def _itself(output: Any, target: Any) -> Tensor:
    value: Tensor = output
    return value


def _kept(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, Tensor) else value
