"""What may cure an ailment, what was seen when it was tried on a copy, and the finding that this gives."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from theodolite.core.ailment import Finding, Severity, evidence
from theodolite.core.reading import Reading
from theodolite.core.subject import Subject
from theodolite.evidence.task import Score
from theodolite.evidence.thresholds import CRITICAL, MISSED, NOTHING, STILL, WORTH
from theodolite.evidence.trial import Change, Gain, Trial, gain_of, present_skill


@dataclass(frozen=True)
class Intervention:
    """A change that may cure an ailment, and the finding that it gives where it does.

    ``rank`` says how much is changed: of those that recover as much the lowest is the cause. ``sign``: something measured asks
    for it. ``after`` names another arm that must have helped before this one is worth a trial. ``alike``: its losses can be
    compared with those of the run. ``alone`` is the change without what it changes besides: it must recover something, too,
    where another arm recovers that something measured asks for. ``least`` is the share of attainable skill that must be lost
    beside it.
    """

    change: Change
    finding: Callable[[Outcome], Finding]
    rank: int = 50
    sign: bool = False
    after: str = ""
    alike: bool = True
    alone: Change | None = None
    least: float = WORTH
    ailment: str = ""


def step_ladder(
    factors: Iterable[float], finding: Callable[[Outcome], Finding], *, rank: int
) -> Iterator[Intervention]:
    """The learning rate times each factor in turn, each tried only where the one before it helped."""
    before = ""
    for factor in factors:
        name = f"lr x {factor:g}"
        yield Intervention(Change(name, lr=factor), finding, rank=rank, after=before)
        before = name


@dataclass(frozen=True)
class Outcome:
    """An intervention that was tried: the trial with it, the one without, and what the run has lost beside it."""

    subject: Subject
    intervention: Intervention
    trial: Trial
    plain: Trial
    gain: Gain
    reference: Score | None
    after_run: bool

    @property
    def severity(self) -> Severity:
        """Critical where the run is no better than ignoring the input, or has lost most of what it could have learned.

        A note where no run was made and a copy has learned most and learns on: the steps to come may make up for it.
        """
        learned = -math.inf if self.reference is None else present_skill(self.subject, self.reference)
        if not self.after_run and learned >= CRITICAL and self._learns_on:
            return "note"
        nothing = self.reference is None or learned <= NOTHING
        return "critical" if nothing or (self.gain.lost >= CRITICAL and not learned >= CRITICAL) else "warning"

    @property
    def _learns_on(self) -> bool:
        """Whether the training as it is has learned something in the second half of its steps."""
        return gain_of(self.subject, self.plain.score(), self.plain.score_at_half).lost > NOTHING

    @property
    def misses_much(self) -> bool:
        """Whether so much is missing that a run which only had to go on is told so by more than a note."""
        return (self.gain.lost if math.isnan(self.gain.by_loss) else self.gain.by_loss) >= MISSED

    @property
    def tried(self) -> str:
        """The trial in words."""
        mine = self.trial.score()
        other = self.plain.score()
        without = "a NaN or infinite loss" if other is None else _told(other)
        ended = "" if mine is None else _told(mine)
        now = "" if not self.after_run or self.reference is None else _told(self.reference)
        run = f"; the run itself is at {now}" if now not in ("", without) else ""
        assumed = self.subject.seen.get("assumed", "")
        how = f"Tried on a copy {assumed}" if assumed else "Tried on a copy"
        unit = self.subject.seen.get("sample", "sample")
        count = "" if mine is None else f" ({mine.samples:,} {unit}{'s' * (mine.samples != 1)})"
        return f"{how}{count}: {ended} after {self.trial.steps} steps, and {without} without the change{run}."

    @property
    def readings(self) -> tuple[Reading, ...]:
        """The losses of both trials."""
        mine, other = self.trial.score(), self.plain.score()
        rows = [("loss of the trial as it is", other), (f"loss of the trial, {self.trial.change.name}", mine)]
        return tuple(evidence(name, s.loss, stderr=s.stderr) for name, s in rows if s is not None)


def _told(score: Score) -> str:
    loss = f"loss {_with_error(score.loss, score.stderr)}"
    return loss if math.isnan(score.accuracy) else f"{loss} (accuracy {score.accuracy:.0%})"


def _with_error(value: float, error: float) -> str:
    """A value with no more digits than its error allows; alone where the error is one of rounding.

    >>> _with_error(0.14321, 0.0213), _with_error(5340.2, 61.0), _with_error(3.59e8, 2.1e7), _with_error(0.4780, 8e-18)
    ('0.14 ± 0.02', '5340 ± 60', '3.6e+08 ± 2e+07', '0.478')
    """
    if not STILL * abs(value) < error < math.inf:
        return f"{value:.3g}"
    digits = max(1, 1 + math.floor(math.log10(max(abs(value), error))) - math.floor(math.log10(error)))
    if max(abs(value), error) >= 1e5 or error < 1e-4:
        return f"{value:.{digits}g} ± {error:.1g}"
    places = -math.floor(math.log10(error))
    return f"{round(value, places):.{max(0, places)}f} ± {round(error, places):.{max(0, places)}f}"


def found_by(says: str, remedy: str, suggested: dict[str, Any], *, where: str = "") -> Callable[[Outcome], Finding]:
    """The finding of an intervention of which all can be said before it is tried."""
    return lambda outcome: finding_of(outcome, says, remedy, suggested, where=where)


def finding_of(outcome: Outcome, says: str, remedy: str, suggested: dict[str, Any], *, where: str = "") -> Finding:
    """The finding of a tried intervention: what was seen, then what the trial showed."""
    return Finding(
        severity=outcome.severity,
        where=where,
        says=f"{says} {outcome.tried}",
        remedy=remedy,
        suggested=suggested,
        evidence=outcome.readings,
    )
