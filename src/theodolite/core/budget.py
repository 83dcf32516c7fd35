"""Work as a budget, in seconds of one recent core: what may be spent, and what a pass through a model costs.

Work is counted, not timed, so that what is bought with a budget does not depend on the load of a machine.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from theodolite.core.checks import InputError

UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def budget_seconds(budget: str | float | None) -> float:
    """A budget such as ``"60s"``, ``"2m"`` or 90 in seconds; None is without end.

    >>> budget_seconds("2m"), budget_seconds(15), budget_seconds(None)
    (120.0, 15.0, inf)
    """
    if budget is None:
        return math.inf
    found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?|inf)\s*(s|m|min|h|)\s*", str(budget))
    seconds = float(found[1]) * UNITS[found[2]] if found else math.nan
    if not seconds > 0:
        raise InputError(f"expected a budget such as 60s, 2m, 90 or None, got {budget!r}; pass how long it may take")
    return seconds


class OutOfTimeError(RuntimeError):
    """The limit of the clock was met: what was judged until then stands, the rest was not judged."""


@dataclass(frozen=True)
class Allowance:
    """Seconds that a piece of work may cost, at most how many samples it may look at, and when it must end by the clock."""

    seconds: float = math.inf
    samples: int | None = None
    until: float = math.inf

    @property
    def is_endless(self) -> bool:
        """Whether any amount of work may be done."""
        return math.isinf(self.seconds)

    def over(self) -> bool:
        """Whether the clock, far beyond the budget, ends the work."""
        return time.time() >= self.until


@dataclass(frozen=True)
class Pace:
    """What a pass costs, in seconds, by kind: ``starts`` whatever it holds, ``seconds`` more for each sample.

    ``samples`` is how many the data hold, ``batch`` how many a step of training takes at once. ``overlaps``: a device computes
    while the next operations are called, and the longer of the two is what a pass costs.
    """

    seconds: Mapping[str, float]
    samples: int
    starts: Mapping[str, float] = field(default_factory=dict)
    batch: int = 1
    overlaps: bool = False

    def pass_seconds(self, kind: str, samples: float) -> float:
        """What one pass of so many samples costs."""
        start, all_of = self.starts.get(kind, 0.0), samples * self.seconds.get(kind, 0.0)
        return max(start, all_of) if self.overlaps else start + all_of

    def price(self, passes: Mapping[Any, int]) -> float:
        """What so many passes of single samples cost, some of them at a time."""
        together = {kind: min(count, TOGETHER.get(kind, count)) for kind, count in passes.items() if count}
        return sum(passes[kind] / some * self.pass_seconds(kind, some) for kind, some in together.items())

    def step(self) -> float:
        """What one step of training costs: a gradient of a batch."""
        return self.pass_seconds("gradient", self.batch)

    def affordable(self, kind: str, allowance: Allowance, *, passes: float, share: float = 1.0) -> int:
        """How many samples can be passed so often within a share of the allowance; never more than there are."""
        most = self.samples if allowance.samples is None else min(self.samples, allowance.samples)
        left = share * allowance.seconds
        if passes * self.pass_seconds(kind, most) <= left:
            return most
        each, start = passes * self.seconds.get(kind, 0.0), passes * self.starts.get(kind, 0.0)
        room = left * (start <= left) if self.overlaps else left - start
        return max(1, min(most, int(room / each))) if each > 0 else 1


TOGETHER = {"forward": 32, "gradient": 8, "product": 4}
"""Samples that go through a model at once when a price is told."""
