"""Remedies tried out before they are given: the same training with one thing changed, beside the training as it is."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.ailments._common.chart import Chart, at_weights
from theodolite.io.batches import Batch
from theodolite.measure.dynamics.trial_runs import TrialRun, trial_run

SURE = 3.0
"""Standard errors by which a difference between two trials must stand out: chance does so once in 100 with 8 held-out parts
(Student's t), once in 700 with many."""

SHORT, LONG = 60, 300
"""Steps of a trial that looks for a sign, and of one that decides; fewer where time does not allow them."""

WORST = 3.0
"""Losses beyond so many times the first are as bad as those."""

PIECES, LEAST_PIECE = 8, 8
"""Held-out batches are cut into so many parts, of at least so many samples, that the error of their mean can be told."""

Change = Callable[[nn.Module, torch.optim.Optimizer], None]
Loss = Callable[[nn.Module, Batch], Tensor]


@dataclass(frozen=True)
class TrialComparison:
    """Training as it is beside training with one thing changed: ``gain`` is the share of the loss that the change took off."""

    as_it_is: TrialRun
    changed: TrialRun

    @property
    def gain(self) -> float:
        """1 when the change takes all of the loss away, 0 when it changes nothing; negative when it harms."""
        worst = max(self.as_it_is.before, 1e-300) if self.as_it_is.after == math.inf else self.as_it_is.after
        return 1.0 - self.changed.after / worst if worst > 0 else 0.0

    def is_better(self, least: float) -> bool:
        """Whether the change takes off at least that share of the loss, and surely more than chance would."""
        return is_below(self.changed, self.as_it_is) and self.gain >= least and self.changed.certain > SURE


def told(tried: TrialComparison | None, how: str) -> str:
    """A trial in words, to end a sentence with; nothing where there was none."""
    if tried is None:
        return ""
    return (
        f" {how} {len(tried.changed.losses)} steps reach a loss of {tried.changed.after:.3g} instead of "
        f"{tried.as_it_is.after:.3g}."
    )


def is_below(one: TrialRun, other: TrialRun) -> bool:
    """Whether one ends surely lower than the other, batch by batch where both were read on the same ones."""
    if other.after == math.inf or one.after == math.inf:
        return one.after < other.after
    error = math.hypot(one.stderr, other.stderr)
    if len(one.ends) == len(other.ends) > 1:
        most = WORST * max(one.before, other.before, one.after)  # how far a lost run is lost says nothing
        low, high = (torch.tensor(run.ends, dtype=torch.float64).clamp(max=most) for run in (one, other))
        apart = high - low
        return float(apart.mean()) > SURE * float(apart.std()) / math.sqrt(len(apart))
    return other.after - one.after > SURE * error


def compared(chart: Chart, what: str, change: Change, *, from_start: bool = True) -> TrialComparison | None:
    """The trial with a change beside the one without; None where either could not be made."""
    place = "" if from_start else " from here"
    plain = chart.trial("as it is" + place, from_start=from_start)
    other = chart.trial(what + place, change, from_start=from_start)
    return None if plain is None or other is None else TrialComparison(plain, other)


def with_lr(factor: float) -> Change:
    """The change that multiplies every step size."""

    def change(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        for group in optimizer.param_groups:
            group["lr"] = float(group["lr"]) * factor

    return change


def steps_made(chart: Chart) -> int:
    """How many steps the run has made, as far as is known; 0 before training."""
    last = max((moment.step for moment in chart.history), default=0)
    if chart.history:
        return last
    if chart.origin is None or chart.model is None:
        return _counted(chart) or ((chart.steps or LONG) if chart.was_trained else 0)
    state = chart.model.state_dict()
    moved = any(
        name in state and state[name].is_floating_point() and not torch.equal(value.to(state[name]), state[name])
        for name, value in chart.origin.items()
    )
    return (chart.steps or LONG) if moved else 0


def run_in_words(chart: Chart) -> str:
    """After how many steps, where that is known."""
    known = chart.history or chart.steps or _counted(chart)
    return f"after {steps_made(chart)} steps" if known else "after training"


def _counted(chart: Chart) -> int:
    """The steps that the optimizer has counted itself, as Adam does; 0 where it keeps no count."""
    states = () if chart.optimizer is None else chart.optimizer.state.values()
    return int(max((float(state["step"]) for state in states if "step" in state), default=0.0))


def longer_trial(
    chart: Chart,
    what: str = "as it is",
    change: Change | None = None,
    *,
    steps: int = SHORT,
    from_start: bool = True,
    loss: Loss | None = None,
    on: Sequence[Batch] | None = None,
) -> TrialRun | None:
    """Like `Chart.trial`, for so many steps (batches come round again), the loss read ``on`` other batches where given."""
    place = "" if from_start else " from here"
    stem, where = f"{what}{place}", "" if on is None else ", elsewhere"
    name = f"{stem}, {steps} steps{where}"
    if name not in chart._trials:
        known = _ended_early(chart, stem, where, steps)
        chart._trials[name] = known or _longer(chart, change, steps, from_start, loss, on)
    return chart._trials[name]


def _ended_early(chart: Chart, stem: str, where: str, steps: int) -> TrialRun | None:
    """The same trial with other steps planned that time ended before either number: made again, it would be the same."""
    for name, run in chart._trials.items():
        planned = re.fullmatch(rf"{re.escape(stem)}, (\d+) steps{where}", name)
        if (
            planned
            and run is not None
            and math.isfinite(run.after)
            and len(run.losses) < min(int(planned[1]), steps + 1)
        ):
            return run
    return None


def _longer(
    chart: Chart, change: Change | None, steps: int, from_start: bool, loss: Loss | None, on: Sequence[Batch] | None
) -> TrialRun | None:
    model, optimizer = chart.model, chart.optimizer
    if model is None or optimizer is None or not chart.has("loss") or chart.left < 0.1 * chart.budget:
        return None
    training, held_out = training_and_held_out(chart)
    weights = chart.beginning if from_start else None

    def changed(copied: nn.Module, stepper: torch.optim.Optimizer) -> None:
        if weights is not None:
            chart.start_over(stepper)
        if change is not None:
            change(copied, stepper)

    rounds: Any = list(itertools.islice(itertools.cycle(training), steps))
    most = min(chart.budget / 10, chart.left / 2)
    with at_weights(model, weights):
        try:
            return trial_run(
                model,
                optimizer,
                loss or chart.loss_on,
                training=rounds,
                held_out=held_out if on is None else on,
                change=changed,
                most_seconds=most,
            )
        except (RuntimeError, ValueError, TypeError, IndexError):  # a forward pass that fails in training mode, say
            return None


def beside(chart: Chart, what: str, change: Change, *, steps: int, from_start: bool = True) -> TrialComparison | None:
    """A longer trial with a change beside one without, both of as many steps as the first had time for."""
    plain = longer_trial(chart, steps=steps, from_start=from_start)
    if plain is None:
        return None
    made = steps if plain.after == math.inf else len(plain.losses)
    other = longer_trial(chart, what, change, steps=made, from_start=from_start)
    if other is None or (other.after != math.inf and len(other.losses) < 0.7 * made):
        return None
    return TrialComparison(plain, other)


def loss_here(chart: Chart) -> TrialRun | None:
    """The loss at the present weights where trials read it, in training mode; infinite where it is not a number."""
    name = "no step"
    if name not in chart._trials:
        chart._trials[name] = _longer(chart, None, 0, False, None, None)
    return chart._trials[name]


def training_and_held_out(chart: Chart) -> tuple[Sequence[Batch], Sequence[Batch]]:
    """The batches that a trial steps on, and a quarter on which its loss is read, cut into parts where they are few."""
    held_out = chart.batches[::4]  # spread: data may lie in order
    training = [batch for i, batch in enumerate(chart.batches) if i % 4] or chart.batches
    if len(held_out) >= PIECES:
        return training, held_out
    return training, [part for batch in held_out for part in parts_of(batch, math.ceil(PIECES / len(held_out)))]


def held_out_parts(chart: Chart) -> Sequence[Batch]:
    """The validation data, cut into parts where its batches are few."""
    few = len(chart.held_out) < PIECES
    return [part for b in chart.held_out for part in parts_of(b, PIECES)] if few else chart.held_out


def parts_of(batch: Batch, count: int) -> list[Batch]:
    """A batch cut into at most so many parts, where all its tensors have one row a sample."""
    n = len(batch)
    tensors = [*batch.tensors(), batch.target]
    count = min(count, n // LEAST_PIECE)
    if count < 2 or not all(isinstance(t, Tensor) and t.ndim and len(t) == n for t in tensors):
        return [batch]
    if len(batch.tensors()) < len(batch.inputs) + len(batch.keywords):
        return [batch]
    edges = [round(i * n / count) for i in range(count + 1)]
    return [rows_of(batch, slice(a, b)) for a, b in itertools.pairwise(edges)]


def rows_of(batch: Batch, part: Any) -> Batch:
    """Some samples of a batch, in the order asked for."""
    keywords = {name: value[part] for name, value in batch.keywords.items()}
    return Batch(tuple(value[part] for value in batch.inputs), keywords, batch.target[part])


def joined_by(batches: Sequence[Batch], fold: int) -> list[Batch]:
    """Batches joined by so many; none where their tensors do not fit together."""
    whole = []
    for start in range(0, len(batches) - fold + 1, fold):
        few = batches[start : start + fold]
        first = few[0]
        if len(first.tensors()) < len(first.inputs) + len(first.keywords) or not isinstance(first.target, Tensor):
            return []
        try:
            keywords = {name: torch.cat([b.keywords[name] for b in few]) for name in first.keywords}
            inputs = tuple(torch.cat([b.inputs[i] for b in few]) for i in range(len(first.inputs)))
            whole.append(Batch(inputs, keywords, torch.cat([b.target for b in few])))
        except (RuntimeError, KeyError, IndexError):
            return []
    return whole


def at_largest_lr(chart: Chart) -> Change:
    """The change back to the largest step of the run, the optimizer's state kept."""

    def change(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        top = max((float(group["lr"]) for group in optimizer.param_groups), default=0.0)
        for group in optimizer.param_groups:
            group["lr"] = float(group["lr"]) * chart.largest_lr / top if top > 0 else chart.largest_lr

    return change


def step_left(chart: Chart) -> float:
    """The present step size over the largest of the run; 1 where no schedule has lowered it."""
    groups = [] if chart.optimizer is None else chart.optimizer.param_groups
    now = max((float(group["lr"]) for group in groups), default=0.0)
    return min(1.0, now / chart.largest_lr) if chart.largest_lr else 1.0


@dataclass(frozen=True)
class GoneOn:
    """A run taken up again on a copy, with its largest step: the loss on training data and on held-out data."""

    training: TrialRun
    elsewhere: TrialRun | None

    @property
    def held(self) -> str:
        """What it did to held-out data, in words."""
        on = self.elsewhere
        return "" if on is None else f", and on held-out data from {on.before:.3g} to {on.after:.3g}"


@dataclass(frozen=True)
class Worth:
    """What going on must take off: of a constant answer's loss on training data and held out, and of the present loss."""

    training: float
    held_out: float
    share: float


GOES_BADLY, GOES_WELL = Worth(0.1, 0.05, 0.3), Worth(0.06, 0.06, 0.3)
"""Of a run that has not learnt most of what there is, and of one that has."""


def gone_on(chart: Chart) -> GoneOn | None:
    """The run gone on with, where that takes clearly more off the loss, on training data and on held-out data; else None."""
    made, here = steps_made(chart), loss_here(chart)
    worth = GOES_WELL if does_well(chart) else GOES_BADLY
    if not made or here is None or not chart.finite or here.after < 2 * worth.training * chart.chance or has_won(chart):
        return None
    steps = max(SHORT // 3, min(4 * made, LONG))
    on = longer_trial(chart, "gone on", at_largest_lr(chart), steps=steps, from_start=False)
    if on is None or not on.losses:
        return None
    if on.before - on.after < worth.training * chart.chance or on.fell < worth.share or on.certain < SURE:
        return None
    if not chart.held_out:
        return GoneOn(on, None)
    there = longer_trial(
        chart, "gone on", at_largest_lr(chart), steps=steps, from_start=False, on=held_out_parts(chart)
    )
    if there is None or there.before - there.after < worth.held_out * chart.chance or there.certain < SURE:
        return None
    return GoneOn(on, there)


def does_well(chart: Chart) -> bool:
    """Whether the model has learnt most of what there is: its loss, held out where that is known, is far below a constant's."""
    if chart.fit is None:
        return False
    scores = chart.fit.validation or chart.fit.training
    known = scores.accuracy == scores.accuracy
    right = known and scores.accuracy > 1 - 0.1 * (1 - chart.fit.majority)
    return scores.loss < 0.3 * chart.chance or bool(right)


WON = 0.9
"""The share of the way from a constant answer to a perfect one beyond which no other training could win much."""


def has_won(chart: Chart) -> bool:
    """Whether nearly all was won that can be: by accuracy where targets are classes, else by loss; held out where known."""
    if chart.fit is None:
        return False
    scores = chart.fit.validation or chart.fit.training
    if scores.accuracy == scores.accuracy:
        return scores.accuracy - chart.fit.majority >= WON * (1 - chart.fit.majority)
    return scores.loss <= (1 - WON) * chart.chance
