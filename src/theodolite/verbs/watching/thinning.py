"""How much of a look is read, so that looks keep to their price: by default one step's time a look at cheap, fifteen at standard.

The loss, held-out scores and the way of the weights are read at every look. What is dear (the gradient on the probe with the
effect of the last step, curvature, tangent kernel, collapse) is read as often as its price allows, and at once where something
looks wrong. What training does and what the clock says are told to it, so that it has no clock of its own.
"""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from theodolite.verbs.watching.look_context import Level
from theodolite.verbs.watching.records import THINNED, Record

Size = Literal["whole", "gradient", "loss"]
"""A look with all that its level reads; without what standard adds; with what forward passes tell alone."""

ALLOWED: dict[Level, float] = {"cheap": 1.0, "standard": 15.0, "full": math.inf}
"""Steps of training that a look may take in the mean; who asks for everything gets it."""

PLANNED = 0.95
"""Part of that which is planned with: what a look takes is known when it is over, and credit is paid back later."""

FIRST, FREE = 5, 3.0
"""Looks that are whole whatever they cost, and seconds of looks in all before any is thinned: short runs are read whole."""

SPARED = 0.5
"""A look that reads the gradient leaves at least this share of its allowance for whole ones, else it reads the loss alone."""

DOUBT, DANGER, RAREST = 3, 10, 20
"""Whole looks on credit for what is odd and for what looks wrong, and looks of which one is whole whatever it costs."""

ROSE, DOUBLED, RISEN, STILL = 1.05, 2.0, 1.15, 0.9
"""The loss over the highest of some last looks that is odd; over the last look that looks wrong; over the start that looks wrong,
over the last look that is odd; over the start from which on it stands still."""

NEAR, RAISED, LOWERED = 0.75, 1.2, 0.5
"""Curvature over its edge, and the step over that at the last whole look, that ask for a new reading."""

GUESSED = 40.0
"""A first whole look, before its price is known, beside one that reads the gradient: products with the Hessian."""

LATELY = 3
"""Looks that a loss is laid beside, and whole looks that a price is the median of."""


@dataclass
class Thinning:
    """The account of a run: each look adds its allowance and pays what it took, in seconds."""

    allowed: float
    balance: float = 0.0
    looks: int = 0
    since: int = 0
    _free: float = field(default_factory=lambda: FREE)
    _whole: deque[float] = field(default_factory=lambda: deque(maxlen=LATELY))
    _gradient: deque[float] = field(default_factory=lambda: deque(maxlen=LATELY))

    @classmethod
    def of(cls, level: Level, budget: float | None) -> Thinning:
        """That of a level; with a budget of the user's own looks are whole."""
        return cls(ALLOWED[level] if budget is None else math.inf)

    @property
    def price(self) -> float:
        """Seconds of a whole look."""
        return statistics.median(self._whole) if self._whole else 0.0

    def size(self, a_step: float, room: float = math.inf) -> Size:
        """How much of the next look is read, where a step of training takes so many seconds.

        With a budget ``room`` are the seconds that it leaves: a whole look is taken once it fits, and is not known to fit before
        the price of one is, which is guessed from that of a gradient.
        """
        if not math.isinf(room):
            return "whole" if self.fits(room) else "gradient"
        allowance = self._allowance(a_step)
        if self.is_free() or not math.isfinite(allowance) or self.since + 1 >= RAREST:
            return "whole"
        if self.balance + allowance >= self.price:
            return "whole"
        return self._thin(allowance)

    def fits(self, room: float) -> bool:
        """Whether a whole look takes no longer than this, as far as is known."""
        guess = GUESSED * statistics.median(self._gradient) if self._gradient else math.inf
        return (self.price if self._whole else guess) <= room

    def affords(self, doubt: int, a_step: float) -> bool:
        """Whether a whole look may be bought on credit, where so many stand open at the most."""
        return self.balance + self._allowance(a_step) >= (1 - doubt) * self.price

    def paid(self, size: Size, seconds: float, added: float, a_step: float) -> None:
        """A look took so many seconds, ``added`` of them for what its level adds to a cheap one."""
        free = self.is_free()
        self.looks += 1
        self.since = 0 if size == "whole" else self.since + 1
        if size == "whole":
            self._whole.append(seconds)
        if size != "loss":
            self._gradient.append(seconds - added)
        if free or not math.isfinite(self._allowance(a_step)):
            self._free -= seconds
            return
        new = self.balance + self._allowance(a_step) - seconds
        self.balance = min(max(new, -DANGER * self.price), self.price)

    def why(self, a_step: float) -> str:
        """In words, what a whole look takes and what is allowed."""
        return f"a full look takes as long as {self.price / a_step:.3g} steps; {self.allowed:g} on average are allowed"

    def is_free(self) -> bool:
        """Whether looks are whole still, whatever they cost."""
        return self.looks < FIRST or self._free > 0

    def _allowance(self, a_step: float) -> float:
        return PLANNED * self.allowed * a_step

    def _thin(self, allowance: float) -> Size:
        cheap = self.allowed == ALLOWED["cheap"] or not self._gradient
        return "loss" if cheap or statistics.median(self._gradient) > SPARED * allowance else "gradient"


def doubt(records: Sequence[Record], loss: float, lr: float | None, *, standing: bool) -> int:
    """How many whole looks on credit are in order, from the loss of this look and the records before: 0, `DOUBT` or `DANGER`."""
    losses = [record.facts["step_loss"] for record in records if "step_loss" in record.facts]
    wholes = islice((record for record in reversed(records) if THINNED not in record.facts), 2)
    whole, before = (*wholes, None, None)[:2]
    if not losses or whole is None or standing or not math.isfinite(loss):
        return DANGER
    start, last = (
        value if value > 0 else math.inf for value in (losses[0], losses[-1])
    )  # of others nothing is a multiple
    if loss > RISEN * start or loss > DOUBLED * last:
        return DANGER
    near = _is_near(whole) and not (
        before is not None and _is_near(before)
    )  # runs hover at the edge for long, in good health
    step = lr / whole.lr if lr and whole.lr else 1.0
    odd = loss > ROSE * max(losses[-LATELY:]) or loss > RISEN * last or loss > STILL * start or loss == losses[-1]
    return DOUBT if odd or near or not LOWERED < step < RAISED else 0


def _is_near(record: Record) -> bool:
    return record.facts.get("sharpness", 0.0) >= NEAR * record.facts.get("edge", math.inf)
