"""A survey's budget, shared out among instruments by what they cost here and by what is enough."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from theodolite.core.budget import Allowance, budget_seconds

VISIT, SHARE = 0.2, 0.15
"""The share of a budget that the visit of the data may take, and of what is left that an instrument may take in any case."""

MINUTE, STEPS, STEPS_EACH = 60.0, 1000, 300
"""Steps of training that a survey of at most a minute may take on a fast machine, all together and each instrument."""

SHARED = 0.85
"""The share of these steps that is shared out: what each instrument takes at the least comes on top of its share."""

AMPLE, AMPLE_EACH = 10.0, 3.0
"""Seconds that they may take in any case, however short a step is."""

LEAST = 0.2
"""Seconds that an instrument has in any case while the budget lasts."""

AGAIN, MORE = 0.3, 1.5
"""The share of what was not taken that a second look may take, and how much more than the first one's time makes it worth it."""


@dataclass
class SurveyBudget:
    """The budget of a survey, shared out: what an instrument leaves of its share is for those after it.

    Precision that took a thousand steps of training to buy is enough: where these are shorter than the budget, shares are
    of them, and a survey ends long before its budget. A budget of several minutes buys as many times more steps. Nothing is
    refused while there is time: where the steps are used up each instrument still has what it takes at the least.
    """

    seconds: float
    until: float  # by the clock on the wall, which worker processes share
    workers: int = 1
    step: float = 0.0
    prices: Mapping[str, float] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)

    @classmethod
    def opened(cls, budget: str | float | None, workers: int = 1) -> SurveyBudget:
        """A budget from now on."""
        seconds = budget_seconds(budget)
        return cls(seconds, time.time() + seconds, max(1, workers))

    def priced(self, prices: Mapping[str, float], *, step: float = 0.0) -> SurveyBudget:
        """With what each instrument takes at the least, and what a step of training takes (0: not known)."""
        return replace(self, step=step, prices=prices, waiting=set(prices))

    def left(self) -> float:
        """Seconds that are left of the budget."""
        return max(0.0, self.until - time.time())

    def spare(self) -> float:
        """Seconds that are left to be shared out: of the budget, or of as many steps of training as are enough."""
        if math.isinf(self.seconds):
            return math.inf
        whole = min(self.seconds, self._cap(STEPS, AMPLE))
        return max(0.0, self.until - self.seconds + whole - time.time())

    def visit(self, samples: int | None) -> Allowance:
        """What the visit of the data may take."""
        return self._allowed(min(self.left(), VISIT * min(self.seconds, self._cap(STEPS, AMPLE))), samples)

    def refusal(self, name: str) -> str:
        """Why an instrument is not read: it would take more than is left; empty where it can be afforded."""
        price = self.prices.get(name, 0.0)
        if price <= self.left():
            return ""
        self.waiting.discard(name)
        needed = self.seconds - self.left() + 1.2 * price
        longer = f"pass --budget {math.ceil(needed / 10) * 10}s"
        return f"would take about {math.ceil(price)} s, but {self.left():.0f} s are left; {longer}"

    def allowance(self, name: str, samples: int | None) -> Allowance:
        """An instrument's share: as much as each of those waiting, and what it takes at the least."""
        price = self.prices.get(name, 0.0)
        dear = [other for other in self.waiting if self.prices.get(other, 0.0) > 0]
        others = len(dear) if price > 0 else len(self.waiting)
        share = min(self.spare() * max(self.workers / max(1, others), SHARE), self._cap(STEPS_EACH, AMPLE_EACH))
        self.waiting.discard(name)
        return self._allowed(min(self.left(), max(share, 1.1 * price, LEAST)), samples)

    def second(self, seconds: float, others: int, samples: int | None) -> Allowance | None:
        """A second look for one of some instruments whose error exceeds their number; None where it would be no longer."""
        share = AGAIN * self.spare() / max(1, others)
        if math.isinf(self.seconds) or share < max(LEAST, MORE * seconds):
            return None
        return self._allowed(min(self.left(), share), samples)

    def _cap(self, steps: int, ample: float) -> float:
        """Seconds of so many steps of training, more of them where the budget is more than a minute."""
        return max(1.0, self.seconds / MINUTE) * max(ample, SHARED * steps * self.step) if self.step > 0 else math.inf

    def _allowed(self, seconds: float, samples: int | None) -> Allowance:
        return Allowance(samples=samples) if math.isinf(self.seconds) else Allowance.starting_now(seconds, samples)
