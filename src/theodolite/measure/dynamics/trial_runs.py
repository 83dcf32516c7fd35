"""Training tried out on a copy: the same optimizer on the same kind of batches, with one thing changed, for a few steps."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.budget import Stopwatch
from theodolite.core.state import untouched

Loss = Callable[[nn.Module, Any], Tensor]
"""The loss of a model on a batch."""


@dataclass(frozen=True)
class TrialRun:
    """``losses`` of the training steps in turn, and the mean loss on other batches ``before`` and ``after`` them.

    ``stderr`` is that of the change, from batch to batch. ``seconds`` is what it took. A run that blew up ends in infinity.
    ``ends`` are the losses of the other batches one by one after the steps, so that two trials can be compared batch by batch.
    """

    before: float
    after: float
    stderr: float
    losses: tuple[float, ...]
    seconds: float
    ends: tuple[float, ...] = ()

    @property
    def fell(self) -> float:
        """By how much the loss on other batches fell, as a share of what it was."""
        return (self.before - self.after) / abs(self.before) if self.before else 0.0

    @property
    def certain(self) -> float:
        """The fall of the loss in standard errors."""
        gone = self.before - self.after
        return gone / self.stderr if self.stderr > 0 else math.copysign(math.inf, gone) if gone else 0.0


def trial_run(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    loss: Loss,
    *,
    training: Sequence[Any],
    held_out: Sequence[Any],
    change: Callable[[nn.Module, torch.optim.Optimizer], None] | None = None,
    most_seconds: float = math.inf,
) -> TrialRun:
    """Take one step on each of the ``training`` batches, on copies of model and optimizer, after ``change`` was made to them.

    The loss before and after is on the ``held_out`` batches, in training mode as a step sees it; neither the model nor its
    buffers, its optimizer or the random state are changed. A run that takes longer than ``most_seconds`` stops early.
    """
    started = Stopwatch()
    with untouched(None):
        torch.manual_seed(0)
        copied, stepper = copied_training(model, optimizer)
        copied.train()
        if change is not None:
            change(copied, stepper)
        first = _held_out(copied, loss, held_out)
        seen = []
        with torch.enable_grad():
            for batch in training:
                stepper.zero_grad(set_to_none=True)
                for parameter in copied.parameters():  # also those that no group holds
                    parameter.grad = None
                value = loss(copied, batch)
                seen.append(float(value.detach()))
                if not math.isfinite(seen[-1]):
                    break
                torch.autograd.backward(value)
                stepper.step()
                if started.seconds > most_seconds:
                    break
        last = _held_out(copied, loss, held_out)
    differences = torch.tensor([b - a for a, b in zip(first, last, strict=True)], dtype=torch.float64)
    after = sum(last) / len(last)
    whole = after if math.isfinite(after) and all(map(math.isfinite, seen)) else math.inf
    sure = len(differences) < 2 or whole == math.inf
    stderr = 0.0 if sure else float(differences.std() / math.sqrt(len(differences)))
    return TrialRun(sum(first) / len(first), whole, stderr, tuple(seen), started.seconds, tuple(last))


def copied_training(model: nn.Module, optimizer: torch.optim.Optimizer) -> tuple[nn.Module, torch.optim.Optimizer]:
    """A model and its optimizer, copied together so that the copy steps the copy; hooks of the optimizer are left behind."""
    held = [p for group in optimizer.param_groups for p in group["params"]]
    gradients = [(p, p.grad) for p in {id(p): p for p in (*model.parameters(), *held)}.values()]
    own = {
        name: value for name, value in optimizer.__dict__.items() if name not in _LEFT_BEHIND and "hooks" not in name
    }
    try:
        for parameter, _ in gradients:
            parameter.grad = None
        copied, members = copy.deepcopy((model, own))
    finally:
        for parameter, gradient in gradients:
            parameter.grad = gradient
    stepper = object.__new__(type(optimizer))
    stepper.__setstate__(members)
    return copied, stepper


_LEFT_BEHIND = ("step",)
"""Schedulers wrap the bound method, and a copy of that would step the original."""


@torch.no_grad()
def _held_out(model: nn.Module, loss: Loss, batches: Sequence[Any]) -> list[float]:
    with untouched(model, training=True):
        torch.manual_seed(1)  # the same dropout masks before and after
        return [float(loss(model, batch)) for batch in batches]
