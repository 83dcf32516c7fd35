"""Is SGD stationary here, or is it still drifting?

A short run of SGD on a copy of the weights, with the model's learning rate and momentum. While the loss changes by more than
its error, the run drifts. Otherwise the mean pull on the weights, theta . grad L, is compared with the value that the size of
the steps requires of stationary SGD at any learning rate; errors come from blocks of steps.
"""

import math
from collections.abc import Iterator

from torch.utils.data import DataLoader

from theodolite.core.checks import InputError
from theodolite.core.instrument import Instrument
from theodolite.core.reading import SIGMAS, Band, Estimate, Reading
from theodolite.core.subject import Subject
from theodolite.instruments._common.data_visit import counter_for, pace_of, sample_count
from theodolite.measure.dynamics import Sgd, SgdRun, block_ratio, block_trend, sgd_run
from theodolite.theory.dynamics import dissipation

BATCH, SETTLE, STEPS, BLOCKS = 64, 200, 1000, 20
FEWEST_STEPS, FEWEST_SAMPLES, TRIED = 15, 4, 3
"""Steps, and samples of a batch, below which nothing is said; steps that are timed."""

PATIENCE = 120.0
"""Seconds that the run may take; a model that needs longer is refused, with words."""

STEADY = 0.1
"""A convention: a loss that changes by less than this share of its mean over the run is steady."""

BALANCED = Band(0.8, 1.25)
"""A convention for a ratio that theory puts at 1: within a fifth."""


def read(subject: Subject) -> Iterator[Reading]:
    """The trend of the loss, and only where there is none the balance of pull and noise."""
    assert subject.lr is not None
    how, steps = _plan(subject)
    run = sgd_run(
        subject.model,
        subject.loss,
        subject.data,
        sgd=how,
        steps=steps,
        patience=PATIENCE if subject.allowance.seconds == math.inf else math.inf,
        progress=subject.progress,
    )
    if not run.finite:
        raise InputError(
            f"expected a learning rate at which SGD stays finite, got lr={subject.lr:g}, where it ran away; lower it"
        )
    where = f"{steps[1]} steps, batches of {how.batch_size}"
    yield _trend(run, where)
    if not drifting(block_trend(run.losses, blocks=_blocks(run))):
        yield _balance(run, where, how)


def drifting(trend: Estimate) -> bool:
    """Whether a change exceeds its error: three standard errors, as for any reading."""
    return abs(trend.value) > SIGMAS * trend.stderr


def balance_meaning(ratio: Estimate) -> str:
    """What the ratio of pull to noise says."""
    low, high = ratio.value - SIGMAS * ratio.stderr, ratio.value + SIGMAS * ratio.stderr
    if low > BALANCED.high:
        return "Not stationary: the loss pulls the weights in more than noise pushes them out, so they still contract."
    if high < BALANCED.low:
        return (
            "Not stationary, though the loss may look so: noise pushes the weights out more than the loss pulls them in, so they "
            "still spread, for instance along flat directions."
        )
    if BALANCED.low <= low and high <= BALANCED.high:
        return "Pull and noise balance: SGD is stationary at this learning rate. To reduce the loss, reduce the learning rate."
    return "The run is too short to say whether pull and noise balance."


def _trend(run: SgdRun, where: str) -> Reading:
    trend = block_trend(run.losses, blocks=_blocks(run))
    mean = float(run.losses.mean())
    # over the larger end of the line: a loss that is not negative cannot fall by more than all of it
    ends = [abs(mean - trend.value / 2), abs(mean + trend.value / 2)]
    mean = max(*ends, abs(trend.value) if run.losses.min() >= 0 else 0.0, 1e-300)
    falls = "falls" if trend.value < 0 else "rises"
    return Reading(
        quantity="relative change of the loss over a short run of SGD",
        where=where,
        measured=trend.value / mean,
        stderr=trend.stderr / mean,
        expected=Band(-STEADY, STEADY),
        against="chance",
        meaning=f"The loss still {falls}, so SGD is not stationary. Train longer."
        if drifting(trend)
        else "The loss neither falls nor rises beyond its error.",
    )


def _balance(run: SgdRun, where: str, how: Sgd) -> Reading:
    demanded = dissipation(1.0, lr=how.lr, momentum=how.momentum) * run.squares
    ratio = block_ratio(run.pulls, demanded, blocks=_blocks(run))
    return Reading(
        quantity="pull of the loss, relative to stationary SGD",
        where=where,
        measured=ratio.value,
        stderr=ratio.stderr,
        expected=BALANCED,
        meaning=balance_meaning(ratio),
    )


def _blocks(run: SgdRun) -> int:
    """Twenty of a full run; fewer of a shorter one, four steps or more each."""
    return max(3, min(BLOCKS, len(run.losses) // 4))


def _plan(subject: Subject) -> tuple[Sgd, tuple[int, int]]:
    """Batch size, steps to settle and steps to look at: fewer steps where time is short, then smaller batches."""
    assert subject.lr is not None
    source, limit = subject.data.source, subject.allowance
    told = source.batch_size if isinstance(source, DataLoader) else None
    size = max(1, min(told or BATCH, sample_count(subject) // 2))  # more than half of the data would leave no noise
    steps = SETTLE + STEPS
    if not limit.is_endless:
        passes = FEWEST_STEPS / 0.7
        size = max(
            min(size, FEWEST_SAMPLES),
            min(size, pace_of(subject, "gradient").affordable("gradient", limit, passes=passes)),
        )
        each = _step_price(subject, Sgd(subject.lr, subject.momentum, size))
        steps = max(FEWEST_STEPS, min(steps, int(0.8 * limit.seconds / max(1e-9, each))))
    settle = steps * SETTLE // (SETTLE + STEPS)
    return Sgd(subject.lr, subject.momentum, size), (settle, steps - settle)


def _step_price(subject: Subject, how: Sgd) -> float:
    """What a step of the run costs, with all that is noted of it."""
    with counter_for(subject) as counter:
        sgd_run(subject.model, subject.loss, subject.data, sgd=how, steps=(0, TRIED))
    return float(counter.seconds) / TRIED


instrument = Instrument(
    question="Is SGD stationary here, or is it still drifting?",
    read=read,
    needs={"model", "data", "loss", "lr"},
    cost="train",
    sees={"gradient": 90},
    laws=("constant-step-noise-floor", "fluctuation-dissipation"),
)
