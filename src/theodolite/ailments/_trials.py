"""Remedies tried out before they are given: the same training with one thing changed, beside the training as it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from theodolite.ailments._chart import Chart
from theodolite.measure.dynamics.trial_runs import TrialRun

SURE = 3.0
"""Standard errors by which a difference between two trials must stand out."""


@dataclass(frozen=True)
class Comparison:
    """Training as it is beside training with one thing changed: ``gain`` is the share of the loss that the change took off."""

    as_it_is: TrialRun
    changed: TrialRun

    @property
    def gain(self) -> float:
        """1 when the change takes all of the loss away, 0 when it changes nothing; negative when it harms."""
        worst = max(self.as_it_is.before, 1e-300) if self.as_it_is.after == float("inf") else self.as_it_is.after
        return 1.0 - self.changed.after / worst if worst > 0 else 0.0

    def is_better(self, least: float) -> bool:
        """Whether the change takes off at least that share of the loss, and surely more than chance would."""
        error = (self.as_it_is.stderr**2 + self.changed.stderr**2) ** 0.5
        surely = self.as_it_is.after - self.changed.after > SURE * error
        return surely and self.gain >= least and self.changed.certain > SURE


def compared(
    chart: Chart, what: str, change: Callable[[nn.Module, torch.optim.Optimizer], None], *, from_start: bool = True
) -> Comparison | None:
    """The trial with a change beside the one without; None where either could not be made."""
    place = "" if from_start else " from here"
    plain = chart.trial("as it is" + place, from_start=from_start)
    other = chart.trial(what + place, change, from_start=from_start)
    return None if plain is None or other is None else Comparison(plain, other)


def with_lr(factor: float) -> Callable[[nn.Module, torch.optim.Optimizer], None]:
    """The change that multiplies every step size."""

    def change(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        for group in optimizer.param_groups:
            group["lr"] = float(group["lr"]) * factor

    return change
