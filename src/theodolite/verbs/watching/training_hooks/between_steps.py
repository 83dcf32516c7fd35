"""Whether something else than the steps changes the weights between them: undoes each step, or draws the weights again."""

from __future__ import annotations

import torch
from torch import Tensor

from theodolite.measure.dynamics._silent_facts import entries_of, is_unrelated
from theodolite.verbs.watching.training_hooks.stuck_batches import HALF

FEWEST, SHARE = 3, 0.2
"""Steps from which on it is no accident, and by how much the way back may differ from a step."""
WRITES = "look for what writes to the weights between steps, such as an average that is copied into the model"
DRAWN_ONCE = "initialize the weights once, before the loop; a new training needs a new model and a new optimizer"


class BetweenSteps:
    """The largest parameter in the memory of the host tells: one entry at every step, more at first and once it has changed.

    What a clamp leaves (several entries at the largest value) is no step undone, and few entries are not told from others.
    """

    def __init__(self, parameter: Tensor) -> None:
        self.parameter = parameter
        self._first = parameter.detach().reshape(-1)[:1]  # the entry itself, as long as it stays where it is
        self.undone = self.redrawn = self.compared = 0
        self._changes = False
        self._states: list[Tensor] = []  # before and after the last step
        self._left: tuple[int, float] | None = None

    def forget(self) -> None:
        """The weights are set on purpose: what they were after the last step does not count."""
        self._states, self._left = [], None

    def _now(self) -> tuple[int, float]:
        return self.parameter._version, self._first.item()

    def after_step(self) -> None:
        """A step was made."""
        self._left = self._now()
        self._states += [entries_of(self.parameter)] if len(self._states) == 1 else []

    @torch.no_grad()
    def before_step(self, *, alone: bool, near: bool) -> None:
        """A step will be made; ``alone`` if no other optimizer stepped since the last, ``near`` if entries are read anyway."""
        self._changes |= alone and self._left is not None and self._left != self._now()
        states, self._states = self._states, []
        if not (self._changes or near):
            return
        now = entries_of(self.parameter)
        if len(states) == 2 and alone:
            step, since = states[1] - states[0], now - states[1]
            back, size = -float(since @ step), float(step @ step)
            clamped = int((now.abs() == now.abs().max()).sum()) > 1
            self.compared += 1
            self.undone += not clamped and (1 - SHARE) * size <= back <= (1 + SHARE) * size > 0
            self.redrawn += is_unrelated(states[1], now)
        self._states = [now]

    def lost(self) -> tuple[str, ...]:
        """What is said of it, and what to do."""
        if self.undone >= max(FEWEST, HALF * self.compared):
            return (
                f"Nothing is trained: {self.undone:,} of {self.compared:,} steps were undone before the next one",
                WRITES,
            )
        if self.redrawn > 1:
            return f"What was learned is lost: the weights were initialized again {self.redrawn:,} times", DRAWN_ONCE
        return ()
