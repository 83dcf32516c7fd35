"""The learning rate that a training would be best with, tried out on copies of it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import Any, ClassVar

import torch
from rich.console import Group, RenderableType
from torch import Generator, nn
from torch.utils.data import DataLoader, Sampler, SequentialSampler

from theodolite.core.budget import budget_seconds
from theodolite.core.checks import InputError, at_least, positive
from theodolite.core.run import Run
from theodolite.core.statistics import mean_estimate
from theodolite.core.subject import Subject
from theodolite.evidence.batches import batches, first_rows, joined, price, training_and_held_out
from theodolite.evidence.start import largest_lr
from theodolite.evidence.trial import Change, Trial, present_score
from theodolite.evidence.work import Work
from theodolite.instruments.width_scaling import rule_of
from theodolite.io.batches import Batch
from theodolite.measure import normalizes_batches
from theodolite.measure.curvature import extreme_eigenpairs, hessian
from theodolite.measure.dynamics import gradient_moments
from theodolite.report.text import as_cell, plain_table
from theodolite.theory.dynamics import step_size_edge
from theodolite.theory.dynamics.scaling_rules import StepRule
from theodolite.verbs._presented import Presentable
from theodolite.verbs.subjects import subject_to_judge

COARSE, REACH = 4.0, 5
"""First all learning rates are tried by factors of four, so many times up and down from the optimizer's own: a million in all."""
BRIEF, HALFWAY = 1 / 8, 1 / 2
"""Shares of the steps after which the first trials, and the best of them, are judged."""
WORTH = 0.1
"""A learning rate works where the loss falls by at least this share of what it falls by at the best one."""
SAMPLES = 128


@dataclass(frozen=True)
class TriedStep:
    """One learning rate: the loss on held-out data after so many steps, infinite where it blew up."""

    lr: float
    steps: int
    loss: float


@dataclass(frozen=True)
class StepSizes(Presentable):
    """The best learning rate ``lr``, right within a factor of ``factor``, and the range from ``low`` to ``high`` that works.

    ``edge`` is the learning rate above which plain gradient descent diverges at the initial weights; ``noise_scale`` is the
    batch size at which noise and signal of the gradient are equal, at the end of the best trial. ``price`` is in
    training steps.
    """

    lr: float
    factor: float
    low: float
    high: float
    tried: tuple[TriedStep, ...]
    steps: int
    planned: int
    price: int
    rule: StepRule | None
    batch_size: int
    noise_scale: float | None = None
    edge: float | None = None
    columns: ClassVar[tuple[str, ...]] = ("lr", "steps", "loss")

    def at_batch_size(self, batch_size: int) -> float:
        r"""The learning rate for another batch size: $\eta\propto1/(1+S/B)$ of descent, its root of Adam; S is the noise scale.

        Source: mccandlish2018; malladi2022.
        """
        at_least(1, batch_size=batch_size)
        if self.noise_scale is None:
            raise InputError("expected a gradient larger than its noise, got none; the noise scale is not known here")
        change = (1 + self.noise_scale / self.batch_size) / (1 + self.noise_scale / batch_size)
        return self.lr * (change if self.rule == "sgd" else math.sqrt(change))

    def at_width(self, growth: float) -> float:
        """The learning rate of the same network so many times as wide in the usual parametrization; by `th.transfer` it stays.

        That of theory, for large widths: of networks that were measured, those with few units or under SGD moved less.
        """
        positive(growth=growth)
        return self.lr / growth

    def rows(self) -> list[dict[str, Any]]:
        """One flat dictionary a learning rate."""
        return [asdict(one) for one in self.tried]

    @property
    def headline(self) -> str:
        """The best learning rate in a sentence."""
        found = (
            f"lr = {self.lr:.2g}, right within a factor of {self.factor:.2g}; the loss falls from {self.low:.2g} to "
            f"{self.high:.2g}. This took {self.price:,} steps of training on copies."
        )
        if self.steps < self.planned:
            found += f" Tried for {self.steps} of {self.planned} steps: longer training may need a smaller one."
        return found

    def table(self) -> RenderableType:
        """For the terminal."""
        table = plain_table("lr", "steps", "loss on held-out data")
        for one in self.tried:
            table.add_row(f"{one.lr:.3g}", str(one.steps), f"{one.loss:.4g}" if math.isfinite(one.loss) else "blew up")
        lines = [as_cell(self.headline)]
        if self.edge is not None:
            lines.append(as_cell(f"At the initial weights gradient descent diverges above lr = {self.edge:.2g}."))
        if self.noise_scale is not None:
            double = self.at_batch_size(2 * self.batch_size)
            words = f"Noise scale {self.noise_scale:.3g} samples at batches of {self.batch_size}: "
            words += f"doubling the batch allows {double:.2g}."
            lines.append(as_cell(words))
        return Group(table, "", *lines)

    def document(self) -> dict[str, Any]:
        """What `json` writes."""
        return asdict(self)


def find_lr(
    model: nn.Module,
    data: Any,
    loss: Callable[[Any, Any], Any],
    optimizer: Any,
    *,
    steps: int = 300,
    validation: Any = None,
    budget: str | float | None = "60s",
) -> StepSizes:
    """The best learning rate for a training of ``steps`` steps, tried on copies of that training.

    Learning rates over six orders of magnitude run for an eighth of the steps, the best and smaller ones continue to half of
    them, and factors of two around the best are trained to the end; a parabola through the lowest losses gives the best one
    and its error. ``budget`` bounds the work, counted and not timed: an expensive training is tried for fewer steps. Your
    model, data and optimizer are not changed.
    """
    at_least(8, steps=steps)
    facts = {"data": data, "loss": loss, "optimizer": optimizer, "validation": validation, "run": Run(steps=steps)}
    subject = subject_to_judge(model, **facts)
    if not subject.has("loss") or optimizer is None:
        raise InputError("expected data with targets, a loss and an optimizer, got less; pass all of them")
    subject.seen["work"] = Work(budget=budget_seconds(budget))
    size = len(subject.data.first())
    step = price(subject).step(size)
    afforded = max(16, min(steps, int(subject.seen["work"].budget / (10 * step)))) if step > 0 else steps
    search = _Search(subject, min(steps, afforded), largest_lr(subject))
    best = search.run()
    curve = search.final
    falls = search.start - WORTH * (search.start - best.loss)
    works = [one.lr for one in search.tried_steps() if one.loss <= falls]
    return StepSizes(
        lr=best.lr,
        factor=search.error,
        low=min([best.lr, *works]),
        high=max([best.lr, *works]),
        tried=tuple(sorted(search.tried_steps(), key=lambda one: one.lr)),
        steps=search.steps,
        planned=steps,
        price=sum(trial.steps for trial in search.trials.values()),
        rule=rule_of(optimizer),
        batch_size=size,
        noise_scale=_noise_scale(subject, curve),
        edge=_edge(subject),
    )


class _Search:
    """Trials at powers of two times the optimizer's own learning rate."""

    def __init__(self, subject: Subject, steps: int, lr: float) -> None:
        if not lr > 0:
            raise InputError("expected an optimizer with lr above 0, got 0; set one to start from")
        self.subject, self.steps, self.lr = subject, steps, lr
        self.trials: dict[int, Trial] = {}
        self.order = _epochs(subject, steps)
        self.error = 2.0
        before = present_score(subject)
        self.start = before.loss if before is not None else math.inf
        self.final: Trial | None = None

    def loss(self, power: int, steps: int) -> float:
        """The held-out loss at a learning rate 2^power times the optimizer's after so many steps."""
        if power not in self.trials:
            self.trials[power] = Trial(self.subject, Change("another learning rate", lr=2.0**power, order=self.order))
        score = self.trials[power].advance(steps).score()
        return math.inf if score is None else score.loss

    def run(self) -> TriedStep:
        """Coarse and brief, then finer and longer."""
        brief, half = max(4, round(BRIEF * self.steps)), max(8, round(HALFWAY * self.steps))
        wide = [round(math.log2(COARSE)) * k for k in range(-REACH, REACH + 1)]
        losses = {power: self.loss(power, brief) for power in wide}
        first = min(wide, key=losses.__getitem__)
        # Brief trials favor large steps, which fall fast and end high: more of the small ones go on
        near = [power for power in range(first - 6, first + 3, 2) if math.isfinite(losses.get(power, math.inf))]
        losses = {power: self.loss(power, half) for power in near or [first]}
        best = min(losses, key=losses.__getitem__)
        ends = {best: self.loss(best, self.steps)}
        while True:
            best = min(ends, key=ends.__getitem__)
            missing = [power for power in range(best - 2, best + 3) if power not in ends]
            if not missing or max(map(abs, ends)) > 30:
                break
            ends |= {power: self.loss(power, self.steps) for power in missing}
        self.final = self.trials[best]
        return self._vertex(best, ends)

    def _vertex(self, best: int, ends: dict[int, float]) -> TriedStep:
        """By a parabola through three losses, each a mean with its neighbors, since one run is noisy.

        The error is where the parabola has risen by the error of their differences. A loss above that before training has blown
        up, whether or not it is still a number: how large it is says nothing of the bottom.
        """
        near = (ends.get(best + k, math.inf) for k in range(-2, 3))
        far, a, b, c, beyond = (loss if loss <= max(self.start, ends[best]) else math.inf for loss in near)
        if all(map(math.isfinite, (far, a, b, c, beyond))):
            a, b, c = (far + 2 * a + b) / 4, (a + 2 * b + c) / 4, (b + 2 * c + beyond) / 4
        if not all(map(math.isfinite, (a, b, c))) or a - 2 * b + c <= 0:
            return TriedStep(self.lr * 2.0**best, self.steps, b)
        bend = a - 2 * b + c
        shift = max(-1.0, min(1.0, 0.5 * (a - c) / bend))
        noise = max(self._noise(best, best - 1), self._noise(best, best + 1))
        self.error = 2.0 ** min(3.0, max(0.25, math.sqrt(2 * noise / bend)))
        return TriedStep(self.lr * 2.0 ** (best + shift), self.steps, min(b, b - (a - c) ** 2 / (8 * bend)))

    def _noise(self, one: int, other: int) -> float:
        """The standard error of the difference of two trials' losses, part by part of the held-out data."""
        scores = [self.trials[power].score() for power in (one, other)]
        if scores[0] is None or scores[1] is None or len(scores[0].losses) < 2:
            return 0.0
        return mean_estimate([x - y for x, y in zip(scores[0].losses, scores[1].losses, strict=True)]).stderr

    def tried_steps(self) -> list[TriedStep]:
        """Every trial with the loss that it ended with."""
        found = []
        for power, trial in self.trials.items():
            score = trial.score()
            found.append(TriedStep(self.lr * 2.0**power, trial.steps, math.inf if score is None else score.loss))
        return found


class _Epochs(Sequence["Batch"]):
    """Some batches, then the same samples in another order each time, as a loader that shuffles gives them."""

    def __init__(self, first: Sequence[Batch], whole: Batch, steps: int) -> None:
        self.first, self.whole, self.steps = first, whole, steps
        self.ends = list(accumulate(map(len, first)))

    def __len__(self) -> int:
        return self.steps

    def __getitem__(self, step: Any) -> Any:
        epoch, place = divmod(range(self.steps)[step], len(self.first))
        if not epoch:
            return self.first[place]
        order = torch.randperm(len(self.whole), generator=torch.Generator().manual_seed(epoch))
        return self.whole.picked(order[self.ends[place] - len(self.first[place]) : self.ends[place]])


def _epochs(subject: Subject, steps: int) -> Callable[[Sequence[Batch]], Sequence[Batch]] | None:
    """Training's order of batches over several epochs; None where one is enough, or where a second one is like the first.

    Without it trials that are longer than an epoch see one order again and again, and large learning rates suffer from that: on
    4,000 digits of MNIST the loss after eleven epochs is a quarter higher.
    """
    training, _ = training_and_held_out(subject)
    whole = joined(training) if 0 < len(training) < steps and _shuffles(getattr(subject.data, "source", None)) else []
    return (lambda first: _Epochs(first, whole[0], steps)) if whole else None


def _shuffles(source: Any) -> bool:
    """Whether a second pass has another order: a loader that draws its samples; columns, which trials deal out at random."""
    if isinstance(source, DataLoader):
        return isinstance(source.sampler, Sampler) and not isinstance(source.sampler, SequentialSampler)
    return isinstance(source, tuple) or isinstance(getattr(source, "generator", None), Generator)


def _noise_scale(subject: Subject, trial: Trial | None) -> float | None:
    if trial is None or trial.diverged or subject.loss is None or normalizes_batches(trial.model):
        return None
    whole = joined(batches(subject)[:8])
    if not whole:
        return None
    few = first_rows(whole[0], SAMPLES)
    if few.keywords or len(few.inputs) != 1:
        return None
    try:
        found = gradient_moments(trial.model, subject.loss, (few.inputs[0], few.target))
    except (RuntimeError, ValueError, TypeError):  # a model that vmap does not know: the rest stands without it
        return None
    return None if found is None or found.scale is None else found.scale.value


def _edge(subject: Subject) -> float | None:
    """The edge of plain descent at the weights that the training begins with."""
    if rule_of(subject.optimizer) != "sgd" or subject.model is None or subject.loss is None:
        return None
    few = first_rows(batches(subject)[0], SAMPLES)
    if few.keywords or len(few.inputs) != 1:
        return None
    try:
        operator = hessian(subject.model, subject.loss, (few.inputs[0], few.target))
        top = extreme_eigenpairs(operator, count=1, tolerance=0.05, most=lambda done: done >= 40)
    except (RuntimeError, ValueError, TypeError):
        return None
    value = float(top.values[0])
    return step_size_edge(1.0, momentum=subject.momentum) / value if value > 0 else None
