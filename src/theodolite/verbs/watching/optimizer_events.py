"""What an optimizer does between looks: its steps, gradients that were not cleared, and its step size."""

import weakref
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from theodolite.verbs.watching.harmless_hooks import harmless


class OptimizerEvents:
    """Counts steps of an optimizer, and those after which the gradient was not cleared before the next was added to it.

    ``passes`` is how many backward passes the last step was accumulated from.

    One parameter tells: when a gradient arrives while ``.grad`` is still the tensor of the last step, neither replaced nor
    written to nor zero, it was kept. Only what is really accumulated counts, not gradients that are asked for. Nothing is
    changed; `remove` takes the hooks away.
    """

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.steps = self.kept = self.passes = 0
        self._arrivals = 0
        self._used: tuple[weakref.ref[Tensor], int] | None = None
        self._suspect = False
        held = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad and p.is_leaf]
        self._handles: list[Any] = [optimizer.register_step_post_hook(self._stepped)]
        self._parameter = held[-1] if held else None
        if self._parameter is not None:
            self._handles.append(self._parameter.register_hook(self._arrives))
            self._handles.append(self._parameter.register_post_accumulate_grad_hook(self._arrived))

    def counts(self) -> Mapping[str, float]:
        """By the names under which a chart keeps them."""
        return {"optimizer steps": float(self.steps), "gradient kept": float(self.kept)}

    def remove(self) -> None:
        """Watch no longer."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    @harmless
    def _stepped(self, *_: Any) -> None:
        self.steps += 1
        self.passes, self._arrivals = self._arrivals, 0
        gradient = None if self._parameter is None else self._parameter.grad
        self._used = None if gradient is None else (weakref.ref(gradient), gradient._version)

    @harmless
    def _arrives(self, _: Tensor) -> None:
        self._suspect = False
        gradient: Tensor | None = None if self._parameter is None else self._parameter.grad
        if self._used is None or gradient is None:
            return
        last, version = self._used
        same = last() is gradient and int(gradient._version) == version
        self._suspect = same and bool(gradient.any())  # zeros written through .data leave no trace but themselves

    @harmless
    def _arrived(self, _: Tensor) -> None:
        self._arrivals += 1
        self.kept += self._suspect
        self._used, self._suspect = None, False


def optimizer_lr(optimizer: torch.optim.Optimizer) -> float:
    """The step size of the group that takes the largest steps; 0 where its groups tell none."""
    return max((float(group.get("lr", 0.0)) for group in optimizer.param_groups), default=0.0)


def optimizer_momentum(optimizer: torch.optim.Optimizer) -> float:
    """The momentum of the first group, of Adam its first beta; 0 where its kind has neither."""
    group = optimizer.param_groups[0] if optimizer.param_groups else {}
    betas = group.get("betas") or (0.0,)
    return float(group.get("momentum", betas[0]) or 0.0)
