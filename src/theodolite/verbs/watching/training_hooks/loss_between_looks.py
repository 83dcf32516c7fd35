"""Losses between two looks: those that a script's own backward passes are called on, and some that are read after a launch.

A catapult is over within some ten steps, and looks are a hundred apart: after a step beyond the edge the loss alone is read, by
forward passes, so that its rise is seen.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from theodolite.core.subject import Subject
from theodolite.io.batches import Batch
from theodolite.theory.dynamics import Moment, is_launch

FELT = 0.05
"""A rise of less than this share of the launch's loss is not counted."""

FLUSHED, LATELY = 512, 16
"""Values of a script that are held on their device at the most, and the last ones that are averaged."""


@dataclass
class LossBetweenLooks:
    """Steps at which the loss alone is read: 1, 2, 3, 4, 6, 9, 13, 19, ... after a launch; ``highest`` is the most it was.

    ``bounce`` is the largest factor by which it rose above its lowest so far, where that is a share of the launch's loss: what
    is thrown over the rim may at first lie below all else that the loss has still to lose.
    """

    highest: float = math.nan
    bounce: float = 1.0
    _start: float = math.nan
    _lowest: float = math.inf
    _launched: int = 0
    _next: float = math.inf

    def follow(self, history: Sequence[Moment]) -> None:
        """After a look: the loss is followed until the next one where a flight begins."""
        self.end()
        if is_launch(history):
            self.begin(history[-1].step, history[-1].loss)

    def begin(self, step: int, loss: float) -> None:
        """A launch at this step, from this loss."""
        self.end()
        self._start = self._lowest = loss
        self._launched, self._next = step, step + 1

    def end(self) -> None:
        """No more of them: a look has come, or the run goes back."""
        self.highest, self.bounce, self._next = math.nan, 1.0, math.inf

    def due(self, step: int) -> bool:
        """Whether the loss is to be read before this step."""
        return step >= self._next

    def read(self, step: int, subject: Subject) -> None:
        """Read the loss; whatever fails, training goes on, and the next look says what it is."""
        try:
            self.saw(step, loss_as_evaluated(subject))
        except Exception:
            self.end()

    def saw(self, step: int, loss: float) -> None:
        """The loss that was read; one that is not finite ends them."""
        self.highest = loss if math.isnan(self.highest) else max(self.highest, loss)
        if loss - self._lowest > FELT * self._start and self._lowest > 0:
            self.bounce = max(self.bounce, loss / self._lowest)
        self._lowest = min(self._lowest, loss)
        self._next = step + max(1, (step - self._launched) // 2) if math.isfinite(loss) else math.inf

    def facts(self) -> dict[str, float]:
        """What the next look notes of them."""
        return {} if math.isnan(self.highest) else {"peak_loss": self.highest, "bounce": self.bounce}


class TrainingLosses:
    """The first value that a backward pass was called on, and the highest median of three in a row: one odd batch is no rise.

    They are kept as they come and read only at looks.
    """

    def __init__(self) -> None:
        self.first = math.nan
        self.highest = -math.inf
        self._last: list[float] = []
        self._new: list[Tensor] = []

    def note(self, value: Tensor) -> None:
        """One more value; nothing is read of it now."""
        self._new.append(value)
        if len(self._new) >= FLUSHED:
            self._read()

    def facts(self) -> dict[str, float]:
        """What a look notes of them."""
        self._read()
        if math.isnan(self.first) or (math.isinf(self.highest) and self.highest < 0):
            return {}
        lately = statistics.fmean(self._last)
        return {"first_training_loss": self.first, "highest_training_loss": self.highest, "last_training_loss": lately}

    def _read(self) -> None:
        if not self._new:
            return
        values = torch.stack([value.float().reshape(()) for value in self._new]).tolist()
        self._new = []
        for value in values:
            known = value if math.isfinite(value) else math.inf
            self.first = known if math.isnan(self.first) else self.first
            self._last = [*self._last[1 - LATELY :], known]
            if len(self._last) > 2:
                self.highest = max(self.highest, statistics.median(self._last[-3:]))


def loss_as_evaluated(subject: Subject) -> float:
    """The loss on the probe in evaluation mode: one forward pass."""
    return mean_loss(subject, subject.batches())


def mean_loss(subject: Subject, batches: Iterable[Batch]) -> float:
    """The mean loss of some batches; the model is asked as it is."""
    with torch.no_grad():
        parts = [(float(subject.loss_on(batch)), len(batch)) for batch in batches]
    return sum(value * size for value, size in parts) / sum(size for _, size in parts)
