"""Time as a budget: how long work may take, and what is left of it."""

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
    """Seconds that a piece of work may take, when they are up, and at most how many samples it may look at."""

    seconds: float = math.inf
    until: float = math.inf
    samples: int | None = None

    @classmethod
    def starting_now(cls, seconds: float, samples: int | None = None) -> Allowance:
        """So many seconds from now on."""
        return cls(seconds, time.perf_counter() + seconds, samples)

    def left(self) -> float:
        """Seconds that are left, never below zero."""
        return max(0.0, self.until - time.perf_counter())

    def over(self) -> bool:
        """Whether the time is up."""
        return time.perf_counter() >= self.until


@dataclass(frozen=True)
class Pace:
    """What a pass takes here, in seconds, by kind: ``starts`` whatever it holds, ``seconds`` more for each sample.

    ``samples`` is how many the data hold, ``batch`` how many a step of training takes at once.
    """

    seconds: Mapping[str, float]
    samples: int
    starts: Mapping[str, float] = field(default_factory=dict)
    batch: int = 1

    def pass_seconds(self, kind: str, samples: float) -> float:
        """What one pass of so many samples takes."""
        return self.starts.get(kind, 0.0) + samples * self.seconds.get(kind, 0.0)

    def price(self, passes: Mapping[Any, int]) -> float:
        """What so many passes of single samples take, some of them at a time."""
        return sum(
            math.ceil(count / TOGETHER.get(kind, count)) * self.starts.get(kind, 0.0)
            + count * self.seconds.get(kind, 0.0)
            for kind, count in passes.items()
            if count
        )

    def step(self) -> float:
        """What one step of training takes: a gradient of a batch."""
        return self.pass_seconds("gradient", self.batch)

    def affordable(self, kind: str, allowance: Allowance, *, passes: float, share: float = 1.0) -> int:
        """How many samples can be passed so often within a share of the time left; never more than there are."""
        most = self.samples if allowance.samples is None else min(self.samples, allowance.samples)
        left = share * allowance.left()
        if passes * self.pass_seconds(kind, most) <= left:
            return most
        each = passes * self.seconds.get(kind, 0.0)
        room = left - passes * self.starts.get(kind, 0.0)
        return max(1, min(most, int(room / each))) if each > 0 else 1


TOGETHER = {"forward": 32, "gradient": 8, "product": 4}
"""Samples that go through a model at once when a price is told."""
