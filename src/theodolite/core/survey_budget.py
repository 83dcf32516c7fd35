"""A survey's budget, shared out among instruments by what they cost here and by what is enough."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from theodolite.core.budget import Allowance, budget_seconds

VISIT, SHARE = 0.2, 0.15
"""The share of a budget that the visit of the data may cost, and of what is left that an instrument may cost in any case."""

MINUTE, STEPS, STEPS_EACH = 60.0, 1000, 300
"""Steps of training that a survey of at most a minute may cost, all together and each instrument."""

SHARED = 0.85
"""The share of these steps that is shared out: what each instrument costs at the least comes on top of its share."""

AMPLE, AMPLE_EACH = 10.0, 3.0
"""Seconds that they may cost in any case, however short a step is."""

LEAST, MARGIN, USED = 0.2, 1.1, 50.0
"""Seconds that an instrument has in any case, what it has of its own least price, and how often that it may use at the most."""

AGAIN, MORE = 0.3, 1.5
"""The share of all that a second look may cost, and how much more than the first one's share makes it worth it."""

BUSY = 3.0
"""A survey takes at most so many times its budget by the clock, however busy the machine is."""


@dataclass
class SurveyBudget:
    """The budget of a survey in seconds of counted work, all shared out before the first instrument is read.

    Shares hang on the model and the data alone, so that a busy machine takes longer and reads the same. Precision that cost a
    thousand steps of training is enough: where these are shorter than the budget, shares are of them, and a survey ends long
    before its budget. A budget of several minutes buys as many times more steps. It ``began`` at a time on the wall's clock,
    which worker processes share: only instruments that would begin far beyond the budget are left out.
    """

    seconds: float
    began: float
    step: float = 0.0
    prices: Mapping[str, float] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def opened(cls, budget: str | float | None) -> SurveyBudget:
        """A budget from now on."""
        return cls(budget_seconds(budget), time.time())

    def priced(self, prices: Mapping[str, float], *, step: float = 0.0) -> SurveyBudget:
        """With what each instrument costs at the least, and what a step of training costs (0: not known)."""
        priced = replace(self, step=step, prices=prices)
        return replace(priced, shares=priced._shared())

    def _shared(self) -> dict[str, float]:
        """To each what it costs at the least, the cheapest first, and as much of the rest as to those that come after it."""
        shares, left, spare = {}, self.seconds, self.whole
        queue = sorted(self.prices.items(), key=lambda one: one[1])
        total = itertools.accumulate(MARGIN * price for _, price in queue)
        paid = [one for one, so_far in zip(queue, total, strict=True) if so_far <= self.seconds]
        later, waiting = sum(MARGIN * price for _, price in paid), sum(price > 0 for _, price in paid)
        for name, price in paid:
            each = self._cap(STEPS_EACH, AMPLE_EACH)
            if price == 0:  # arithmetic on what was seen costs the others next to nothing
                shares[name] = max(min(max(SHARE * self.whole, AMPLE_EACH), self.whole, each), LEAST)
                continue
            later -= MARGIN * price
            free = max(0.0, min(spare, left) - later)
            shares[name] = max(min(free * max(1 / waiting, SHARE), each), MARGIN * price, LEAST)
            used = min(shares[name], USED * price)
            waiting, left, spare = waiting - 1, left - used, max(0.0, spare - used)
        return shares

    @property
    def whole(self) -> float:
        """Seconds that are shared out: the budget, or as many steps of training as are enough."""
        return min(self.seconds, self._cap(STEPS, AMPLE))

    @property
    def until(self) -> float:
        """When it ends by the clock."""
        return self.began + BUSY * max(self.seconds, AMPLE)

    def left(self) -> float:
        """Seconds that are left by the clock."""
        return max(0.0, self.began + self.seconds - time.time())

    def visit(self, samples: int | None) -> Allowance:
        """What the visit of the data may cost."""
        return self._allowed(VISIT * self.whole, samples)

    def refusal(self, name: str) -> str:
        """Why an instrument is not read: it would cost more than is left; empty where it can be afforded."""
        if name not in self.shares:
            price, left = self.prices.get(name, 0.0), self.seconds - self._dear()
            longer = f"pass --budget {math.ceil((self._dear() + 1.2 * price) / 10) * 10}s"
            return f"would take about {math.ceil(price)} s, but {max(0.0, left):.0f} s are left; {longer}"
        if time.time() >= self.until:
            return (
                f"the survey has taken {BUSY:g} times its budget of {self.seconds:g} s; pass --budget "
                f"{math.ceil(BUSY * self.seconds / 10) * 10}s, or survey on a machine that is less busy"
            )
        return ""

    def _dear(self) -> float:
        return sum(share for name, share in self.shares.items() if self.prices[name] > 0)

    def allowance(self, name: str, samples: int | None) -> Allowance:
        """An instrument's share."""
        return self._allowed(self.shares[name], samples)

    def second(self, name: str, others: int, samples: int | None) -> Allowance | None:
        """A second look for one of some instruments whose error exceeds their number; None where it would be no longer."""
        share = AGAIN * self.whole / max(1, others)
        if math.isinf(self.seconds) or share < MORE * self.shares[name] or time.time() >= self.until:
            return None
        return self._allowed(share, samples)

    def _cap(self, steps: int, ample: float) -> float:
        """Seconds of so many steps of training, more of them where the budget is more than a minute."""
        return max(1.0, self.seconds / MINUTE) * max(ample, SHARED * steps * self.step) if self.step > 0 else math.inf

    def _allowed(self, seconds: float, samples: int | None) -> Allowance:
        return Allowance(samples=samples) if math.isinf(self.seconds) else Allowance(seconds, samples, self.until)
