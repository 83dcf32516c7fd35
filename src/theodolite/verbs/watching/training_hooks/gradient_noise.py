"""What the parts of a gradient tell of its noise: micro-batches that a step adds up, or the ranks of DDP, at the price of norms.

Whoever accumulates has the gradients of several batches at the same weights: their spread is the noise of the step's gradient,
and nothing has to be run for it. Hooks are there from the last step before a look until that look, and only where the step before
was accumulated from three passes or more; they look, and change nothing.

Before the gradients of ranks are averaged each has that of its own batch: how far these are apart is the noise. At every eighth
step each rank leaves the norm of its own and a few entries in the store of the group, waiting for nobody; the first one reads
them at a look. Entries tell by how much the mean was scaled or clipped since.
"""

from __future__ import annotations

import math
import struct
from collections import deque
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from theodolite.core.reading import Reading
from theodolite.measure.dynamics import AccumulatedNoise, accumulated_noise, noise_of_ranks
from theodolite.measure.dynamics.micro_batches import FEWEST as FEWEST_STEPS
from theodolite.verbs.watching.training_hooks.harmless_hooks import harmless
from theodolite.verbs.watching.training_hooks.optimizer_events import OptimizerEvents

if TYPE_CHECKING:
    from theodolite.verbs.watching.look_context import LookContext

ENTRIES, FEWEST = 1 << 16, 3
"""Entries of each micro-batch's gradient that are kept for the error, and passes a step from which on it can be told."""

CLOSE = 1e-3
"""How far the gradient after the first pass may be from that pass's own: more means that it was not cleared before."""


PERIOD, OF_RANKS, KEPT = 8, 256, 32
"""Steps between two that ranks listen to, entries of a gradient that are left with its norm, and steps that are pooled."""

ALIKE = 0.999
"""The cosine of those entries with the gradient of the step: less, and it is not the mean of the ranks."""


class MicroBatches:
    """The squared norms of the gradients that one step adds up, and some of their entries."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, events: OptimizerEvents) -> None:
        self.model, self.events = model, events
        self._handles: list[Any] = []
        self._step = optimizer.register_step_pre_hook(self._stops)
        self._forget()

    def expect(self, near: bool) -> None:
        """Listen to the next step, where a look may come after it and the last one was accumulated."""
        if near and not self._handles and self.events.passes >= FEWEST:
            self._forget()
            self._wanted = self.events.passes
            own: list[Any] = [p for p in self.model.parameters() if p.requires_grad and p.is_leaf]
            stride = max(1, math.ceil(sum(p.numel() for p in own) / ENTRIES))
            for number, parameter in enumerate(own):
                arrives = parameter.register_hook(partial(self._arrives, number, stride))
                arrived = parameter.register_post_accumulate_grad_hook(partial(self._arrived, number))
                self._handles += [arrives, arrived]

    def noise(self) -> AccumulatedNoise | None:
        """That of the gradient that was listened to; None where it was not whole, not cleared before, or 0."""
        self._stops()
        if not self._passes or len(self._passes) != self._wanted or self._odd:
            return None
        rows = [[squares[n] for n in sorted(squares)] for squares, _ in self._passes]
        squares = [_sum(row) for row in rows]
        first, total = (_sum([held[n] for n in sorted(held)]) for held in (self._first, self._total))
        numbers = sorted(self._total)
        if not 0 < total < math.inf or any(sorted(entries) != numbers for _, entries in self._passes):
            return None
        if abs(first - squares[0]) > CLOSE * squares[0]:
            return None
        entries = torch.stack([torch.cat([kept[n] for n in numbers]) for _, kept in self._passes])
        return accumulated_noise(squares, total, entries)

    def release(self) -> None:
        """A look has read it: listen no longer, and give the memory back."""
        self._stops()
        self._forget()

    def remove(self) -> None:
        """Watch no longer."""
        self.release()
        self._step.remove()

    def _forget(self) -> None:
        self._wanted, self._odd = 0, False
        self._passes: list[tuple[dict[int, Tensor], dict[int, Tensor]]] = []
        self._arriving: dict[int, tuple[Tensor, Tensor]] = {}
        self._first: dict[int, Tensor] = {}
        self._total: dict[int, Tensor] = {}

    @harmless
    def _stops(self, *_: Any) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    @harmless
    @torch.no_grad()
    def _arrives(self, number: int, stride: int, gradient: Tensor) -> None:
        if gradient.is_sparse:
            self._odd = True
        elif not self._odd:
            self._arriving[number] = _square(gradient), gradient.detach().reshape(-1)[::stride].float().cpu()

    @harmless
    @torch.no_grad()
    def _arrived(self, number: int, parameter: Tensor) -> None:
        """What arrived was added to the gradient, not only asked for."""
        found = self._arriving.pop(number, None)
        if found is None or parameter.grad is None:
            return
        if not self._passes or number in self._passes[-1][0]:
            self._passes.append(({}, {}))
        squares, entries = self._passes[-1]
        squares[number], entries[number] = found
        self._total[number] = _square(parameter.grad)
        if len(self._passes) == 1:
            self._first[number] = self._total[number]


class RankNoise:
    """Listens on every rank of DDP; `noise` is asked on the first one."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, store: Any) -> None:
        self._store, self._steps, self._hooks = store, 0, list[Any]()
        self._own: list[Any] = [p for p in model.parameters() if p.requires_grad and p.is_leaf]
        self._stride = max(1, sum(p.numel() for p in self._own) // OF_RANKS)
        self._arrived: dict[int, tuple[Tensor, Tensor]] = {}
        self._odd = False
        self._waiting: deque[tuple[int, float, Tensor]] = deque(maxlen=KEPT)
        self._found: deque[tuple[list[float], float]] = deque(maxlen=KEPT)
        self._handles = [
            optimizer.register_step_pre_hook(self._takes),
            optimizer.register_step_post_hook(self._listens),
        ]

    def remove(self) -> None:
        """Listen no longer."""
        for handle in (*self._handles, *self._hooks):
            handle.remove()

    @harmless
    def _listens(self, *_: Any) -> None:
        self._steps += 1
        if self._steps % PERIOD == 0:
            self._arrived, self._odd = {}, False
            for number, parameter in enumerate(self._own):
                self._hooks.append(parameter.register_hook(lambda g, n=number: self._arrives(n, g)))

    @harmless
    @torch.no_grad()
    def _arrives(self, number: int, gradient: Tensor) -> None:
        self._odd |= gradient.is_sparse or number in self._arrived  # accumulated: the ranks' own sums are not seen
        if not self._odd:
            self._arrived[number] = _square(gradient), gradient.detach().reshape(-1)[:: self._stride].float()

    @harmless
    @torch.no_grad()
    def _takes(self, *_: Any) -> None:
        for hook in self._hooks:
            hook.remove()
        listened, self._hooks = bool(self._hooks), []
        if not listened or self._odd or not self._arrived or any(self._own[n].grad is None for n in self._arrived):
            return
        squares, entries = zip(*(self._arrived[n] for n in sorted(self._arrived)), strict=True)
        rank, mine = torch.distributed.get_rank(), torch.cat(entries).cpu()
        self._store.set(
            f"theodolite/noise/{self._steps}/{rank}",
            struct.pack("d", float(torch.stack(squares).sum())) + mine.numpy().tobytes(),
        )
        if rank == 0:
            means = [self._own[n].grad for n in sorted(self._arrived)]
            total = float(torch.stack([_square(g) for g in means]).sum())
            kept = torch.cat([g.reshape(-1)[:: self._stride].float() for g in means]).cpu()
            self._waiting.append((self._steps, total, kept))
        self._arrived = {}

    def noise(self) -> AccumulatedNoise | None:
        """From the steps that all ranks have told of; None before there are enough."""
        world = torch.distributed.get_world_size()
        while self._waiting:
            step, total, kept = self._waiting[0]
            keys = [f"theodolite/noise/{step}/{rank}" for rank in range(world)]
            if not self._store.check(keys):
                break
            self._waiting.popleft()
            told = [self._store.get(key) for key in keys]
            for key in keys:
                self._store.delete_key(key)
            rows = torch.stack([torch.frombuffer(bytearray(each[8:]), dtype=torch.float32) for each in told]).double()
            mean, now = rows.mean(0), kept.double()
            size = float(mean.norm() * now.norm())
            if size > 0 and float(mean @ now) > ALIKE * size:
                scale = float(now.norm() / mean.norm())
                self._found.append(([struct.unpack("d", each[:8])[0] for each in told], total / scale**2))
        if len(self._found) < FEWEST_STEPS or not any(sum(own) for own, _ in self._found):
            return None
        squares, totals = zip(*self._found, strict=True)
        return noise_of_ranks(squares, totals)


def accumulation_readings(context: LookContext) -> Iterator[Reading]:
    """How much of the gradient that was accumulated is noise; nothing where none was."""
    found = None if context.training.noise is None else context.training.noise()
    if found is None:
        return
    context.facts["noise_share"] = found.share.value
    part = "ranks" if found.ranks else "micro-batches"
    yield Reading(
        quantity="share of noise in the squared gradient of a step",
        where=f"{found.micro_batches} {part}",
        measured=found.share.value,
        stderr=found.share.stderr,
        meaning=f"1: only noise; 0: all {part} agree. From the {part} whose gradients the step adds up, assuming that each was "
        "a pass of the same loss over its own samples.",
    )
    if found.scale is not None:
        size = context.batching.size
        size = size * found.micro_batches if size is not None and found.ranks else size
        unit, times = ("batches of a step", 1) if size is None else ("samples", size)
        yield Reading(
            quantity=f"simple noise scale in {unit}",
            where=f"{found.micro_batches} {part}",
            measured=times * found.scale.value,
            stderr=times * found.scale.stderr,
            meaning=f"Noise and signal are equal in a batch {found.scale.value:.3g} times as large as that of a step: "
            + (
                "larger batches allow a larger learning rate."
                if found.scale.value > 1
                else "larger batches gain little."
            ),
        )


def _square(gradient: Tensor) -> Tensor:
    exact = torch.float64 if gradient.device.type in ("cpu", "cuda") else torch.float32
    norm: Tensor = torch.linalg.vector_norm(gradient.detach(), dtype=exact)
    return norm.square()


def _sum(values: list[Tensor]) -> float:
    return float(torch.stack([value.to(values[0].device) for value in values]).sum()) if values else 0.0
