"""Is the gradient not cleared between steps, so that every step repeats all earlier ones?

Exact, from what a watch saw: a new gradient was added to a parameter whose gradient was still the tensor that the last step
had used, unchanged and not zero. Gradients gathered over several batches before one step never do this. Without a watch
nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from theodolite.ailments._common.chart import Chart, seen
from theodolite.ailments._common.patients import patient
from theodolite.ailments._common.trials import does_well
from theodolite.core.ailment import Ailment, Finding

FEWEST, SHARE = 3, 0.05
"""Steps after which the gradient was kept, and their share of all, from which on it is no accident of a loop's first steps."""


def judge(chart: Chart) -> Iterator[Finding]:
    kept, steps = chart.events.get("gradient kept", 0.0), chart.events.get("optimizer steps", 0.0)
    if kept < FEWEST or kept < SHARE * steps:
        return
    yield Finding(
        severity="warning" if chart.has("loss") and chart.finite and does_well(chart) else "critical",
        says=f"After {kept:.0f} of {steps:.0f} steps the gradient was not cleared: the next one was added to it, and the step "
        "repeats batches that were used before.",
        remedy="optimizer.zero_grad() before loss.backward()",
        suggested={"zero_grad": True},
        evidence=(seen("steps after which the gradient was kept", kept), seen("steps of the optimizer", steps)),
    )


def _watched(seed: int, kept: float) -> Mapping[str, Any]:
    found = patient(seed, lambda own: torch.optim.SGD(own, 0.1), steps=60)
    return {**found, "events": {"gradient kept": kept, "optimizer steps": 60.0}}


ailment = Ailment(
    question="Is the gradient kept from step to step?",
    needs={"model", "optimizer"},
    signs=("events",),
    judge=judge,
    examples={"sick": (lambda seed: _watched(seed, 59.0),), "healthy": (lambda seed: _watched(seed, 0.0),)},
    explains=(
        "step-too-large",
        "batch-noise",
        "loss-stalls",
        "units-dead",
        "units-saturated",
        "gradient-explodes",
        "signal-explodes",
        "weights-not-finite",
    ),
)
