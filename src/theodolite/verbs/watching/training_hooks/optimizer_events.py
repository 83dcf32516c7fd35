"""What an optimizer does between looks: its steps, gradients that were not cleared, how they were clipped, and its step size."""

import weakref
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from theodolite.verbs.watching.training_hooks.harmless_hooks import harmless

EARLY, GROWTH, KEPT = 8, 1.25, 64
"""Norms of gradients are read in so many first steps, then in steps further apart by this factor, and so often in all."""
EQUAL, TIMES = 1e-4, 3
"""Norms are equal to within this share, and clipped where so many steps have the same largest one."""


class OptimizerEvents:
    """Counts steps of an optimizer, and those after which the gradient was not cleared before the next was added to it.

    ``passes`` is how many backward passes the last step was accumulated from.

    One parameter tells: when a gradient arrives while ``.grad`` is still the tensor of the last step, neither replaced nor
    written to nor zero, and is not cleared before the step either (as that of a discriminator is after its generator's pass), it
    was kept. Only what is really accumulated counts, not gradients that are asked for. Nothing is changed; `remove` takes the
    hooks away.
    """

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.steps = self.kept = self.passes = 0
        self._arrivals = 0
        self._accumulated: Counter[int] = Counter()
        self._norms: list[Tensor] = []
        self.told: Mapping[str, float] = {}  # what the script itself says it clips to
        self._next = 1.0
        self._optimizer = weakref.ref(optimizer)
        self._used: tuple[weakref.ref[Tensor], int] | None = None
        self._suspect: weakref.ref[Tensor] | None = None  # what was added to the gradient of the last step
        held = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad and p.is_leaf]
        self._handles: list[Any] = [
            optimizer.register_step_pre_hook(self._steps),
            optimizer.register_step_post_hook(self._stepped),
        ]
        self._parameter = held[-1] if held else None
        if self._parameter is not None:
            self._handles.append(self._parameter.register_hook(self._arrives))
            self._handles.append(self._parameter.register_post_accumulate_grad_hook(self._arrived))

    def follow(self, optimizer: torch.optim.Optimizer) -> None:
        """Count on, with another optimizer of the same parameters."""
        self._optimizer = weakref.ref(optimizer)

    def counts(self) -> Mapping[str, float]:
        """By the names under which a chart keeps them."""
        found = {"optimizer steps": float(self.steps), "gradient kept": float(self.kept)}
        found["backward passes"] = float(max(self._accumulated, key=self._accumulated.__getitem__, default=1))
        return found | (dict(self.told) or clipped(self._norms))

    def remove(self) -> None:
        """Watch no longer."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    @harmless
    @torch.no_grad()
    def _steps(self, *_: Any) -> None:
        optimizer = self._optimizer()
        if self.steps < self._next - 1 or len(self._norms) >= KEPT or optimizer is None:
            return
        self._next = self.steps + 2 if self.steps < EARLY else GROWTH * self._next
        own = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        if own and all(type(g) is Tensor and g.layout == torch.strided and g.device == own[0].device for g in own):
            found = torch.stack([torch.stack(torch._foreach_norm(own, order)).float() for order in (2, torch.inf)])
            self._norms.append(torch.stack([torch.linalg.vector_norm(found[0]), found[1].max(), found[0, 0]]))

    @harmless
    def _stepped(self, *_: Any) -> None:
        self.steps += 1
        self.kept += self._suspect is not None
        self._suspect = None
        self.passes, self._arrivals = self._arrivals, 0
        self._accumulated[self.passes] += 1
        gradient = None if self._parameter is None else self._parameter.grad
        self._used = None if gradient is None else (weakref.ref(gradient), gradient._version)

    @harmless
    def _arrives(self, _: Tensor) -> None:
        gradient: Tensor | None = None if self._parameter is None else self._parameter.grad
        if self._used is not None and gradient is not None:
            last, version = self._used
            same = last() is gradient and int(gradient._version) == version
        else:
            same = self._suspect is not None and self._suspect() is gradient
        # zeros written through .data leave no trace but themselves
        self._suspect = weakref.ref(gradient) if same and gradient is not None and bool(gradient.any()) else None

    @harmless
    def _arrived(self, _: Tensor) -> None:
        self._arrivals += 1
        self._used = None


def clipped(norms: Sequence[Tensor]) -> dict[str, float]:
    """What gradients were clipped to, by the kind of norm: the largest norm of the steps seen, where several steps have it.

    Each row is the norm of the gradient, its largest entry and the norm of its first tensor: where that one is the same too, it
    is one gradient that came several times.
    """
    if len(norms) < TIMES:
        return {}
    rows = torch.stack(list(norms)).double().cpu()
    rows = rows[rows.isfinite().all(1)]
    found = {}
    for name, values in (("clip norm", rows[:, 0]), ("clip value", rows[:, 1])):
        top = float(values.max()) if len(values) else 0.0
        same = rows[values >= (1 - EQUAL) * top, 2]
        if top > 0 and len(same) >= TIMES and float(same.max() - same.min()) > EQUAL * float(same.max()):
            found[name] = float(f"{top:.4g}")
    return found


def optimizer_lr(optimizer: torch.optim.Optimizer) -> float:
    """The step size of the group that takes the largest steps; 0 where its groups tell none."""
    return max((float(group.get("lr", 0.0)) for group in optimizer.param_groups), default=0.0)


def optimizer_momentum(optimizer: torch.optim.Optimizer) -> float:
    """The momentum of the first group, of Adam its first beta; 0 where its kind has neither."""
    group = optimizer.param_groups[0] if optimizer.param_groups else {}
    betas = group.get("betas") or (0.0,)
    return float(group.get("momentum", betas[0]) or 0.0)
