r"""Are the batches so small that their noise holds the loss up?

The gradient of a batch of $B$ samples is the mean gradient plus noise of variance $\mathrm{tr}\,\Sigma/B$; above the noise
scale $\mathrm{tr}\,\Sigma/|\bar g|^2$ larger batches gain nothing more (McCandlish et al. 2018), and below it noise outweighs
the signal. Every constant step ends at a floor of noise, so that alone is no ailment: it is one where a few steps from the
start with batches joined 8 or 16 fold, at the same step size, come down to far less than the whole run reached, and surely to
less than the same training tried longer with its own batches; or where no more steps than the run made take off a tenth of a
constant answer's loss more than it did. A run that has won nine tenths of what there is is let alone. Batches that hold their
classes in order are another noise, undone by dealing the same samples out anew. By chance joined batches win once in 100 (three
standard errors over 8 parts of the data or more); classes that were drawn at random exceed ten deviations of chi squared less
than once in 100000.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from theodolite.ailments._common.batching import joined
from theodolite.ailments._common.chart import Chart, at_weights, seen
from theodolite.ailments._common.patients import patient
from theodolite.ailments._common.trials import (
    GOES_BADLY,
    LONG,
    PIECES,
    SHORT,
    SURE,
    TrialComparison,
    has_won,
    held_out_parts,
    is_below,
    joined_by,
    longer_trial,
    loss_here,
    parts_of,
    rows_of,
    steps_made,
    training_and_held_out,
)
from theodolite.core.ailment import Ailment, Finding
from theodolite.io.batches import Batch
from theodolite.measure.dynamics import gradient_moments
from theodolite.measure.dynamics.trial_runs import TrialRun

FOLDS = (16, 8)
POOR_ORDER = 0.2
"""The same for batches in order: a network that does well in spite of it is let alone."""
POOR, LEAST = 0.4, 0.4
"""A run is held up where its loss is above that share of a constant answer's, and larger batches take that share off it."""
NOISY = 1.0
"""The noise scale must be so many batches: then more than half of what a step follows is noise."""
LONGEST = 1000
"""Steps of the longest trial."""
LARGEST = 32
"""Batches of more samples than this are not called small."""


def judge(chart: Chart) -> Iterator[Finding]:
    if chart.thinned:
        return
    in_order = _in_order(chart)
    if in_order is not None:
        yield in_order
        return
    told = chart.events.get("batch size", math.nan)  # not a number where a watch could not see it
    size = float(len(chart.batches[0])) if math.isnan(told) else told
    on = held_out_parts(chart) or None
    here, made = longer_trial(chart, steps=0, from_start=False, on=on), steps_made(chart)
    if here is None or not made or not size <= LARGEST or size != len(chart.batches[0]):
        return
    if has_won(chart):
        return
    for fold in FOLDS:
        tried = _joined(chart, fold)
        if tried is None:
            continue
        surely = tried.is_better(LEAST / 3) and is_below(tried.changed, here)
        if here.after < POOR * chart.chance or not surely or tried.changed.after > (1 - LEAST) * here.after:
            tried = _as_long(chart, fold, here)
        scale = None if tried is None else _noise_scale(chart)
        if tried is None or scale is None or scale < NOISY * size:
            return
        yield _finding(int(size), int(size) * fold, tried, scale, here.after)
        return


def _in_order(chart: Chart) -> Finding | None:
    """The same samples dealt out anew to batches of the same size, where batches are unlike and the run stands high."""
    here = loss_here(chart)
    if here is None or not steps_made(chart) or here.after < POOR_ORDER * chart.chance or not _batches_unlike(chart):
        return None
    training, aside = training_and_held_out(chart)
    dealt = _dealt(training, len(training))
    on = held_out_parts(chart) or _dealt(
        aside, PIECES
    )  # parts of one class each would differ too much to tell anything
    plain = longer_trial(chart, steps=LONG, on=on)
    if plain is None or len(dealt) < len(training):
        return None
    rounds = iter([dealt[i % len(dealt)] for i in range(LONG)])

    def mixed(model: Any, batch: Any) -> Any:
        return chart.loss_on(model, next(rounds) if torch.is_grad_enabled() else batch)

    other = longer_trial(chart, "in another order", steps=LONG, loss=mixed, on=on)
    if other is None or not is_below(other, plain) or not other.certain > SURE:
        return None
    far = TrialComparison(plain, other).is_better(LEAST) and other.after <= (1 - LEAST) * here.after
    reached = longer_trial(chart, steps=0, from_start=False, on=on)
    worth = GOES_BADLY.training * chart.chance
    if not far and (reached is None or not is_below(other, reached) or reached.after - other.after < worth):
        return None
    return Finding(
        severity="critical" if not plain.after < chart.chance else "warning",
        says="The batches are not drawn at random: classes come in order, and each batch pulls away from the last. "
        f"{len(other.losses)} steps on a copy take the loss to {plain.after:.3g}, with the same samples shuffled to "
        f"{other.after:.3g}; the run stands at {here.after:.3g}.",
        remedy="DataLoader(..., shuffle=True)",
        suggested={"shuffle": True},
        evidence=(
            seen("loss after trial steps, as it is", plain.after, stderr=plain.stderr),
            seen("loss after trial steps, changed", other.after, stderr=other.stderr),
        ),
    )


def _dealt(batches: Sequence[Batch], count: int) -> list[Batch]:
    """All samples of some batches, dealt out anew to so many; none where their tensors do not fit together."""
    whole = joined_by(batches, len(batches))
    if not whole:
        return []
    order = torch.randperm(len(whole[0]), generator=torch.Generator().manual_seed(0)).to(whole[0].target.device)
    return parts_of(rows_of(whole[0], order), count)


def _batches_unlike(chart: Chart) -> bool:
    """Whether classes differ from batch to batch by far more than draws would: chi squared beyond ten standard deviations."""
    targets = [b.target for b in chart.batches]
    if len(targets) < 4 or not all(
        isinstance(t, torch.Tensor) and t.ndim == 1 and not t.is_floating_point() for t in targets
    ):
        return False
    classes = int(max(int(t.max()) for t in targets)) + 1
    counts = torch.stack([torch.bincount(t.clamp(min=0), minlength=classes).double() for t in targets])
    counts = counts[:, counts.sum(0) > 0]  # (batches, classes)
    expected = counts.sum(1, keepdim=True) * counts.sum(0) / counts.sum()
    squares = float(((counts - expected).square() / expected).sum())
    degrees = (counts.shape[0] - 1) * (counts.shape[1] - 1)
    return degrees > 0 and squares > degrees + 10 * math.sqrt(2 * degrees)


def _joined(chart: Chart, fold: int) -> TrialComparison | None:
    """A trial with batches joined beside a longer one with single ones, both from the start and read on the same samples."""
    training, _ = training_and_held_out(chart)
    large = joined_by(training, fold)
    on = held_out_parts(chart) or None
    plain = longer_trial(chart, steps=LONG, on=on)
    if len(large) < 2 or plain is None:
        return None
    steps = min(SHORT, steps_made(chart))
    rounds = iter([large[i % len(large)] for i in range(steps)])

    def larger(model: Any, batch: Any) -> Any:
        return chart.loss_on(model, next(rounds) if torch.is_grad_enabled() else batch)

    other = longer_trial(chart, f"batches x {fold}", steps=steps, loss=larger, on=on)
    return None if other is None or len(other.losses) < steps else TrialComparison(plain, other)


def _as_long(chart: Chart, fold: int, here: TrialRun) -> TrialComparison | None:
    """The run itself beside one of at most as many steps with batches joined, where that ends at less that is worth it.

    A control with its own batches must not: where the trial's start is better than the run's (dead units that were drawn anew,
    say) both come down, and the batches are not why the run stands where it does.
    """
    training, _ = training_and_held_out(chart)
    large, steps = joined_by(training, fold), min(steps_made(chart), LONGEST)
    rounds = iter([large[i % len(large)] for i in range(steps)])

    def larger(model: Any, batch: Any) -> Any:
        return chart.loss_on(model, next(rounds) if torch.is_grad_enabled() else batch)

    on, worth = held_out_parts(chart) or None, GOES_BADLY.training * chart.chance
    other = longer_trial(chart, f"batches x {fold}", steps=steps, loss=larger, on=on)
    if other is None or not is_below(other, here) or not other.certain > SURE or here.after - other.after < worth:
        return None
    control = longer_trial(chart, steps=steps, on=on)
    if control is None or not is_below(other, control) or control.after - other.after < worth:
        return None
    return TrialComparison(here, other)


def _noise_scale(chart: Chart) -> float | None:
    assert chart.model is not None and chart.loss is not None
    batch = joined(chart.batches, 128)
    try:
        with at_weights(
            chart.model, None if chart.finite else chart.beginning
        ):  # lost weights have no gradient: at the start
            moments = gradient_moments(chart.model, chart.loss, [(*batch.inputs, batch.target)])
    except (RuntimeError, ValueError, TypeError):
        return None
    if moments is None:
        return None
    # the least noise that the measurement allows; a mean gradient that cannot be told from zero is all noise
    signal = max(0.0, moments.squared_mean.value) + SURE * moments.squared_mean.stderr
    return moments.scatter.value / signal if signal > 0 else math.inf


def _finding(size: int, larger: int, tried: TrialComparison, scale: float, reached: float) -> Finding:
    steps, own = len(tried.changed.losses), len(tried.as_it_is.losses)
    plain = f", {own} with those of {size} to {tried.as_it_is.after:.3g}" if own else ""
    return Finding(
        severity="critical" if own and not tried.as_it_is.after < tried.as_it_is.before else "warning",
        says=f"Batches of {size} are mostly noise: the noise scale of the gradient is at least {scale:.3g} samples. {steps} "
        f"steps with batches of {larger} on a copy take the loss to {tried.changed.after:.3g}{plain}; the run stands at "
        f"{reached:.3g}.",
        remedy=f"batch_size={larger} (or a step {larger // size} times smaller, and as many times more steps)",
        suggested={"batch_size": larger},
        evidence=(
            seen("noise scale of the gradient, in samples", scale),
            seen("loss after trial steps, as it is", tried.as_it_is.after, stderr=tried.as_it_is.stderr),
            seen("loss after trial steps, changed", tried.changed.after, stderr=tried.changed.stderr),
        ),
    )


def _descent(lr: float, momentum: float = 0.0) -> Any:
    return lambda own: torch.optim.SGD(own, lr, momentum=momentum)


ailment = Ailment(
    question="Are the batches too small for the step?",
    needs={"model", "data", "loss", "optimizer"},
    signs=("trial",),
    judge=judge,
    examples={
        "sick": (lambda seed: patient(seed, _descent(0.02, 0.9), batch=1, steps=400, noise=0.1),),
        "healthy": (
            lambda seed: patient(seed, _descent(0.02), batch=4, steps=600),
            lambda seed: patient(seed, _descent(0.1), batch=32, noise=0.5),
        ),
    },
    explains=("step-too-large", "loss-stalls", "units-dead", "weights-not-finite"),
    laws=("constant-step-noise-floor",),
)
