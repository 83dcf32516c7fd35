"""The noise of a step's gradient from the gradients that the ranks of DDP have anyway, at the price of their norms at some steps.

Before they are averaged each rank has the gradient of its own batch: how far these are apart is the noise. At every eighth step
each rank leaves the norm of its own and a few entries in the store of the group, waiting for nobody; the first one reads them at
a look. Entries tell by how much the mean was scaled or clipped since.
"""

from __future__ import annotations

import struct
from collections import deque
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.measure.dynamics import AccumulatedNoise, noise_of_ranks
from theodolite.measure.dynamics.micro_batches import FEWEST
from theodolite.verbs.watching.harmless_hooks import harmless

PERIOD, ENTRIES, KEPT = 8, 256, 32
"""Steps between two that are listened to, entries of a gradient that are left with its norm, and steps that are pooled."""

ALIKE = 0.999
"""The cosine of those entries with the gradient of the step: less, and it is not the mean of the ranks."""


class RankNoise:
    """Listens on every rank; `noise` is asked on the first one."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, store: Any) -> None:
        self._store, self._steps, self._hooks = store, 0, list[Any]()
        self._own: list[Any] = [p for p in model.parameters() if p.requires_grad and p.is_leaf]
        self._stride = max(1, sum(p.numel() for p in self._own) // ENTRIES)
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
        if len(self._found) < FEWEST or not any(sum(own) for own, _ in self._found):
            return None
        squares, totals = zip(*self._found, strict=True)
        return noise_of_ranks(squares, totals)


def _square(gradient: Tensor) -> Tensor:
    exact = torch.float64 if gradient.device.type in ("cpu", "cuda") else torch.float32
    norm: Tensor = torch.linalg.vector_norm(gradient.detach(), dtype=exact)
    return norm.square()
