"""Is SGD stationary here, or does it still drift?

A short run of SGD on a copy of the weights, with the step and momentum of the subject. While its loss changes by more than
its error the run drifts, and nothing is said of balance. Else the mean of the weights' pull, theta . grad L, is laid beside
the one that the size of the steps demands of stationary SGD at any step size; errors come from blocks of steps.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch.utils.data import DataLoader

from theodolite.core.instrument import Instrument
from theodolite.core.reading import SIGMAS, Band, Estimate, Reading
from theodolite.core.subject import Subject
from theodolite.measure.dynamics import Sgd, SgdRun, block_ratio, block_trend, sgd_run
from theodolite.theory.dynamics import dissipation

BATCH, SETTLE, STEPS, BLOCKS = 64, 200, 1000, 20
PATIENCE = 120.0
"""Seconds that the run may take; a model that needs longer is refused, with words."""

STEADY = 0.1
"""A convention: a loss that changes by less than this share of its mean over the run is steady."""

BALANCED = Band(0.8, 1.25)
"""A convention for a ratio that theory puts at 1: within a fifth."""


def read(subject: Subject) -> Iterator[Reading]:
    """The trend of the loss, and only where there is none the balance of pull and noise."""
    assert subject.model is not None and subject.loss is not None and subject.lr is not None
    how = Sgd(subject.lr, subject.momentum, _batch_size(subject))
    run = sgd_run(
        subject.model,
        subject.loss,
        subject.data,
        sgd=how,
        steps=(SETTLE, STEPS),
        patience=PATIENCE,
        progress=subject.progress,
    )
    if not run.finite:
        raise ValueError(
            f"expected a step at which SGD stays finite, got lr={subject.lr:g}, where it ran away; lower it"
        )
    where = f"{STEPS} steps, batches of {how.batch_size}"
    yield _trend(run, where)
    if not drifting(block_trend(run.losses, blocks=BLOCKS)):
        yield _balance(run, where, how)


def drifting(trend: Estimate) -> bool:
    """Whether a change exceeds its error: three standard errors, as for any reading."""
    return abs(trend.value) > SIGMAS * trend.stderr


def balance_meaning(ratio: Estimate) -> str:
    """What the ratio of pull to noise says."""
    low, high = ratio.value - SIGMAS * ratio.stderr, ratio.value + SIGMAS * ratio.stderr
    if low > BALANCED.high:
        return "The loss pulls the weights back harder than noise drives them out: they still contract. Not stationary."
    if high < BALANCED.low:
        return (
            "Noise drives the weights out harder than the loss pulls them back: they still spread, as along flat directions. "
            "Not stationary, though the loss may look so."
        )
    if BALANCED.low <= low and high <= BALANCED.high:
        return "Pull and noise balance: SGD is stationary at this step. To get lower, lower the step."
    return "Too short a run to tell whether pull and noise balance."


def _trend(run: SgdRun, where: str) -> Reading:
    trend = block_trend(run.losses, blocks=BLOCKS)
    mean = max(float(abs(run.losses.mean())), 1e-300)
    falls = "falls" if trend.value < 0 else "rises"
    return Reading(
        quantity="change of the loss over a short run of SGD, relative",
        where=where,
        measured=trend.value / mean,
        stderr=trend.stderr / mean,
        expected=Band(-STEADY, STEADY),
        against="chance",
        meaning=f"Drifting: the loss still {falls}, so the balance of stationary SGD is not asked for. Train on."
        if drifting(trend)
        else "The loss neither falls nor rises beyond its error.",
    )


def _balance(run: SgdRun, where: str, how: Sgd) -> Reading:
    demanded = dissipation(1.0, lr=how.lr, momentum=how.momentum) * run.squares
    ratio = block_ratio(run.pulls, demanded, blocks=BLOCKS)
    return Reading(
        quantity="pull of the loss over what stationary SGD demands",
        where=where,
        measured=ratio.value,
        stderr=ratio.stderr,
        expected=BALANCED,
        meaning=balance_meaning(ratio),
    )


def _batch_size(subject: Subject) -> int:
    """That of a loader, else 64; never more than half of the data, which would leave no noise."""
    source = subject.data.source
    told = source.batch_size if isinstance(source, DataLoader) else None
    samples = sum(len(batch) for batch in subject.batches())
    return max(1, min(told or BATCH, samples // 2))


instrument = Instrument(
    question="Is SGD stationary here, or does it still drift?",
    read=read,
    needs={"model", "data", "loss", "lr"},
    cost="train",
    laws=("constant-step-noise-floor", "fluctuation-dissipation"),
)
