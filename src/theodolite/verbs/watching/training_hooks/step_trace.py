"""What each step did, kept for some dozens of steps, so that a jump of the loss has a cause: its batch, its step or its weights.

Of a step there are the loss of its batch, some entries of weight matrices before and after it, and its learning rate; nothing is
read off a device but once in sixteen steps. Batches are held, not copied.
"""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.ailment import figure
from theodolite.io.batches import Batch
from theodolite.verbs.watching.training_hooks.harmless_hooks import harmless

BLOCK, BEFORE, FEWEST = 16, 32, 12
"""Steps that are read together, those before a jump that it is held against, and how many of them there must be."""
MATRICES, ENTRIES, LARGEST = 16, 16, 1 << 22
"""Matrices that are looked at, entries of each, and bytes of a batch that is held."""
TIMES, BACK = 3.0, 0.3
"""A jump: as far above the middle as so many times the highest before, and this share of the way back to the first losses, or of
the loss itself where that is more."""
MILD = (2.0, 0.1)
"""The same where weights were changed or a step was long: that is odd by itself."""
LONG, LONGEST = 8.0, 3.0
"""An update is too long beyond these multiples of the middle and of the longest before."""
LATER = 5
"""Steps after a long one at which the loss may jump."""
TOUCHED, HABIT = 0.1, 2
"""The share of its length by which a matrix is another between two steps, and how often before it is a habit of the loop."""
DOUBLED = 2.0
"""The losses of a block over the first ones from which on a look is worth its price."""
OFTEN = 2
"""Odd batches beyond so many are part of the data."""


@dataclass(frozen=True)
class StepRow:
    """One step: its loss (not a number where none is known), its update and what changed before it, matrix by matrix."""

    step: int
    loss: float
    updates: tuple[float, ...]
    outside: tuple[float, ...]
    lr: float
    batch: Batch | None = None

    @property
    def length(self) -> float:
        """The update of the whole, relative to the weights."""
        return math.sqrt(sum(u * u for u in self.updates))


@dataclass(frozen=True)
class Spike:
    """The loss went from ``usual`` to ``peak`` at a step; ``cause`` is "batch", "step" or "weights", and ``times`` how much.

    ``sure`` is None of a batch that waits to be looked at, and False of one that was not kept or is odd in a few samples only.
    """

    step: int
    cause: str
    usual: float
    peak: float
    where: str = ""
    times: float = math.nan
    lr: float = math.nan
    usual_lr: float = math.nan
    batch: Batch | None = None
    others: tuple[Batch, ...] = ()
    sure: bool | None = True
    now: float = math.nan
    held: str = ""


class StepTrace:
    """Hooks on an optimizer that keep its last steps; `settle` says at a look which jumps had which cause."""

    def __init__(self, model: nn.Module, optimizer: Any) -> None:
        self.spikes: list[Spike] = []
        self.rises, self.start = False, math.inf
        self._model, self._optimizer, self._idle = model, optimizer, False
        self._rows: deque[StepRow] = deque(maxlen=BEFORE + 2 * BLOCK)
        self._new: list[tuple[list[Tensor], Tensor, Tensor, float, Batch | None]] = []
        self._noted: list[Tensor] = []
        self._batch: Batch | None = None
        self._now: Tensor | None = None
        self._with_batches = False
        self._last: Tensor | None = None
        self._first: list[float] = []
        self._steps, self._offset = 0, 0
        self._judged = 0
        self._quiet_until = 0
        self._parameters = _spread(model)
        self.names = list(self._parameters)
        self._places: list[int] = []
        self._views: list[Tensor] = []
        self._handles: list[Any] = []
        if optimizer is not None and self.names:
            self._handles = [
                optimizer.register_step_pre_hook(self._before),
                optimizer.register_step_post_hook(self._after),
            ]

    def __deepcopy__(self, memo: dict[int, Any]) -> StepTrace:
        """A copy of the optimizer is no training of the user's: its hooks do nothing."""
        other = object.__new__(StepTrace)
        other._idle, other.spikes, other.rises = True, [], False
        return other

    def remove(self) -> None:
        """Watch no longer; what was found stays."""
        for handle in self._handles:
            handle.remove()
        self._handles, self._new, self._batch = [], [], None
        self._rows.clear()

    @torch.no_grad()
    def follow(self, optimizer: Any) -> None:
        """Keep the steps of another optimizer of the same parameters; with other weights it begins another training."""
        self._optimizer = optimizer
        self._read()
        now = torch.cat([_entries(p) for p in self._parameters.values()]).float()
        if self._last is not None and not torch.equal(now, self._last):
            self._rows.clear()
            self._first, self._last = [], None

    def note_step(self, step: int) -> None:
        """The user's number of the step that was made last, or that comes where the loop tells it before."""
        self._offset = step - max(0, self._steps - 1)

    def note(self, value: Tensor, batch: Batch | None = None) -> None:
        """The loss of a batch that goes through the model; one that is told by the loop counts where none was seen."""
        if self._idle or (batch is None and self._with_batches):
            return
        if batch is not None:
            self._with_batches = True
            small = sum(t.numel() * t.element_size() for t in (*batch.tensors(), batch.target)) <= LARGEST
            self._batch = batch if small else None
        if len(self._noted) < BLOCK:
            self._noted.append(value.detach())

    @harmless
    @torch.no_grad()
    def _before(self, *_: Any) -> None:
        if self._idle:
            return
        # also of weights put in their place
        if (places := [p.data_ptr() for p in self._parameters.values()]) != self._places:
            self._places, self._views = places, [_entries(p) for p in self._parameters.values()]
        self._now = torch.cat(self._views)

    @harmless
    @torch.no_grad()
    def _after(self, *_: Any) -> None:
        if self._idle or self._now is None:  # attached during this very step, as by a closure that makes the loss
            return
        lr = max((float(group.get("lr", 0.0)) for group in self._optimizer.param_groups), default=0.0)
        self._new.append((self._noted, self._now, torch.cat(self._views), lr, self._batch))
        self._noted, self._batch, self._now = [], None, None
        self._steps += 1
        if len(self._new) >= BLOCK:
            self._read()

    @torch.no_grad()
    def _read(self) -> None:
        """Read what was kept, once for all of it."""
        if not self._new:
            return
        values = [value.float().mean() if value.ndim else value.float() for noted, *_ in self._new for value in noted]
        numbers = iter(torch.stack(values).tolist() if values else [])
        losses = [statistics.fmean(next(numbers) for _ in noted) if noted else None for noted, *_ in self._new]
        before = torch.stack([row[1] for row in self._new]).float()
        after = torch.stack([row[2] for row in self._new]).float()
        last = before[:1] if self._last is None else self._last[None]
        ends = torch.cat([last, after[:-1]])
        self._last = after[-1]
        count = len(self.names)
        lengths = ends.reshape(len(self._new), count, -1).norm(dim=2).clamp(min=1e-12)
        parts = (
            torch.stack([(after - before), (before - ends)]).reshape(2, len(self._new), count, -1).norm(dim=3) / lengths
        )
        updates, outside = parts.tolist()
        first = self._steps - len(self._new)
        for i, (_, _, _, lr, batch) in enumerate(self._new):
            known = losses[i]
            loss = math.nan if known is None else math.inf if math.isnan(known) else known
            self._rows.append(StepRow(first + i, loss, tuple(updates[i]), tuple(outside[i]), lr, batch))
            if len(self._first) < 4 and math.isfinite(loss):
                self._first.append(loss)
        block = [row.loss for row in list(self._rows)[-len(self._new) :] if not math.isnan(row.loss)]
        start = min(self.start, statistics.fmean(self._first) if self._first else math.inf)
        self.rises = bool(block) and start > 0 and not statistics.median(block) <= DOUBLED * start
        self._new = []
        self._judge()

    def _judge(self) -> None:
        rows = list(self._rows)
        for place, row in enumerate(rows):
            if row.step < self._judged or row.step < self._quiet_until or math.isnan(row.loss):
                continue
            self._judged = row.step + 1
            past = [r for r in rows[max(0, place - BEFORE) : place] if math.isfinite(r.loss)]
            if len(past) < FEWEST + LATER or not self._jumped(row.loss, past[:-LATER], MILD):
                continue
            found = self._cause(row, past)
            if found.cause == "batch" and not self._jumped(row.loss, past[:-LATER], (TIMES, BACK)):
                continue
            self.spikes.append(found)
            self.rises = True
            self._quiet_until = row.step + BEFORE  # what follows is the same one

    def _jumped(self, loss: float, past: Sequence[StepRow], far: tuple[float, float]) -> bool:
        losses = [row.loss for row in past]
        highest = max(losses)
        if not math.isfinite(loss) or loss <= highest:
            return not math.isfinite(loss)
        middle, start = statistics.median(losses), statistics.fmean(self._first)
        if middle > DOUBLED * abs(start):
            return False  # a run that diverges goes from jump to jump
        # a run that has learned nothing has nothing to lose but its loss itself
        return loss - middle > max(far[0] * (highest - middle), far[1] * max(start - middle, abs(middle)))

    def _cause(self, row: StepRow, past: list[StepRow]) -> Spike:
        usual = statistics.median(r.loss for r in past)
        made = Spike(row.step, "", usual, row.loss, lr=row.lr, usual_lr=statistics.median(r.lr for r in past))
        for near in (row, *reversed(past[-LATER:])):  # weights that somebody changed between two steps
            touched = [i for i, change in enumerate(near.outside) if change > TOUCHED]
            if touched and sum(max(r.outside) > TOUCHED for r in past if r is not near) <= HABIT:
                most = max(touched, key=lambda i: near.outside[i])
                where = self.names[most] if len(touched) <= max(1, len(self.names) // 2) else ""
                return replace(made, step=near.step, cause="weights", where=where, times=near.outside[most])
        early = past[-LATER - BLOCK : -LATER]  # updates grow shorter as training goes on
        middle, longest = statistics.median(r.length for r in early), max(r.length for r in early)
        for near in reversed(past[-LATER:]):
            if near.length > LONG * middle and near.length > LONGEST * longest:
                own = [statistics.median(r.updates[i] for r in early) for i in range(len(self.names))]
                most = max(range(len(own)), key=lambda i: near.updates[i] / max(own[i], 1e-12))
                return replace(
                    made,
                    step=near.step,
                    cause="step",
                    where=self.names[most],
                    times=near.length / middle if middle > 0 else math.inf,
                    lr=near.lr,
                )
        others = tuple(r.batch for r in past[-BLOCK:] if r.batch is not None)
        return replace(
            made, cause="batch", batch=row.batch, others=others, sure=None if row.batch is not None else False
        )

    @harmless
    def settle(self, odd: Callable[[Spike], Spike]) -> None:
        """At a look: read what is there, and have batches looked at that seem to be odd."""
        self._read()
        self.spikes = [odd(s) if s.sure is None else s for s in self.spikes]
        self.spikes = [replace(s, batch=None, others=()) for s in self.spikes]

    @harmless
    def facts(self) -> dict[str, tuple[str, ...]]:
        """The last jump in words, as `Run.silent` has them: cause, step, layer, losses, factor, learning rates, and how sure."""
        if not self.spikes:
            return {}
        worst = next((s for s in reversed(self.spikes) if s.cause != "batch"), self.spikes[-1])
        odd = sum(s.cause == "batch" for s in self.spikes)
        sure = worst.cause != "batch" or (bool(worst.sure) and odd <= OFTEN)
        words = (
            worst.cause,
            f"{worst.step + self._offset}",
            worst.where,
            figure(worst.usual),
            figure(worst.peak),
            f"{worst.times:.3g}",
            f"{worst.lr:.3g}",
            f"{worst.usual_lr:.3g}",
            "sure" if sure else "",
            figure(worst.now),
            worst.held,
        )
        return {"loss spikes": words}


def _spread(model: nn.Module) -> dict[str, Tensor]:
    """Weight matrices from the first to the last; none where they lie on several devices."""
    fit = [
        (name, p)
        for name, p in model.named_parameters()
        if p.requires_grad
        and p.ndim > 1
        and p.numel() >= ENTRIES
        and p.is_contiguous()
        and not hasattr(p, "placements")
    ]
    if len({(p.device, p.dtype) for _, p in fit}) != 1:
        return {}
    if len(fit) > MATRICES:
        fit = [fit[round(i * (len(fit) - 1) / (MATRICES - 1))] for i in range(MATRICES)]
    return dict(fit)


def _entries(parameter: Tensor) -> Tensor:
    """Some entries, as a view that follows them."""
    return parameter.detach().reshape(-1)[:: parameter.numel() // ENTRIES][:ENTRIES]
