"""Did the run end while the loss was still falling fast, so that more steps are what is missing?

The run is taken up again on a copy, from where it ended, with the step it began with: where up to four times as many
steps (or as many as time allows) take clearly more off the loss, on training data and on held-out data, the run was too short.
What is gained must be a tenth of the loss of a constant answer (0.06, on held-out data too, where most was learnt),
beyond three standard errors over 8 parts of the data or more, which chance exceeds once in 100, on both; a run within noise of
its end never shows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from theodolite.ailments._common.chart import Chart, seen
from theodolite.ailments._common.patients import patient
from theodolite.ailments._common.trials import gone_on, run_in_words, step_left, steps_made
from theodolite.core.ailment import Ailment, Finding

AGAIN = 6
"""The run is suggested to be so many times as long."""
DEAD = 0.05
"""Below that share of its largest, the step was taken away by its schedule: more steps would not do."""


def judge(chart: Chart) -> Iterator[Finding]:
    if step_left(chart) < DEAD:
        return
    on = gone_on(chart)
    if on is None:
        return
    made, training = steps_made(chart), on.training
    known = run_in_words(chart) != "after training"
    ended = f" {run_in_words(chart)}" if known else ""
    more = int(AGAIN * max(made, len(training.losses)))
    yield Finding(
        severity="warning",
        says=f"The run ended{ended} while the loss was falling: {len(training.losses)} more on a copy take it from "
        f"{training.before:.3g} to {training.after:.3g}{on.held}.",
        remedy=f"train for {more}{'' if known else ' more'} steps or more",
        suggested={"steps": more},
        evidence=(
            seen("loss at the end", training.before),
            seen(f"loss after {len(training.losses)} more steps", training.after, stderr=training.stderr),
        ),
    )


def _adam(lr: float) -> Any:
    return lambda own: torch.optim.Adam(own, lr)


ailment = Ailment(
    question="Did the run end too early?",
    needs={"model", "data", "loss", "optimizer"},
    signs=("trial",),
    judge=judge,
    examples={
        "sick": (
            lambda seed: patient(seed, _adam(1e-3), steps=30),
            lambda seed: patient(seed, lambda own: torch.optim.SGD(own, 0.1), steps=30),
        ),
        "healthy": (
            lambda seed: patient(seed, _adam(1e-3), steps=400),
            lambda seed: patient(seed, _adam(3e-3), steps=200, noise=0.6),
        ),
    },
)
