"""The values that a script's own backward passes are called on: kept as they come, read only at looks."""

import math
import statistics

import torch
from torch import Tensor

FLUSHED, LATELY = 512, 16
"""Values that are held on their device at the most, and the last ones that are averaged."""


class TrainingLosses:
    """The first of them, and the highest median of three in a row: one odd batch is no rise."""

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
