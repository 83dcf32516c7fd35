"""The run so far: what looks at a training have told of it, and what was counted between them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class RunMoment:
    """One look of a run: what was told of it at that step; not a number where nothing was."""

    step: int
    loss: float = math.nan
    validation_loss: float = math.nan
    accuracy: float = math.nan
    validation_accuracy: float = math.nan
    lr: float = math.nan
    facts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """``moments`` in the order of their steps, and ``events`` that were counted (such as ``"gradient kept"``).

    ``left_out`` names parameters that no step changes, by the reason. ``silent`` are exact facts of its steps that no training
    should show (such as ``"gradient cleared"``), each with what it is about: names, counts, words. ``steps`` is how many steps
    were made, or are planned where there is no moment yet; None where nobody said. ``rates`` are steps with their learning rates,
    those of the moments unless more are known; 0 where it was 0 or is not known.
    """

    moments: tuple[RunMoment, ...] = ()
    events: Mapping[str, float] = field(default_factory=dict)
    left_out: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    silent: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    steps: int | None = None
    rates: tuple[tuple[int, float], ...] = ()

    def __post_init__(self) -> None:
        if not self.rates:
            told = tuple((moment.step, moment.lr if moment.lr > 0 else 0.0) for moment in self.moments)
            object.__setattr__(self, "rates", told)

    @property
    def lrs(self) -> list[float]:
        """The learning rates of the run that are not 0, in their order."""
        return [lr for _, lr in self.rates if lr > 0]

    @property
    def last_step(self) -> int:
        """The step of the last look; 0 where there was none."""
        return max((moment.step for moment in self.moments), default=0)
