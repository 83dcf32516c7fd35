"""The user's training with one thing changed, on a copy: their batches, their optimizer and schedule, from their own start.

Two trials are compared in pairs, part by part of data that neither was trained on. Work is counted beforehand, so that a trial
makes the same steps on every machine; nothing of the user's is touched.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.checks import InputError
from theodolite.core.state import untouched
from theodolite.core.subject import Subject, once
from theodolite.evidence.batches import judged_is_trained, price, samples_coupled, training_and_held_out
from theodolite.evidence.constant_answers import constant_loss, held_out_constant
from theodolite.evidence.drawn_outputs import quiet
from theodolite.evidence.start import (
    base_lr,
    beginning,
    clip_as_the_run,
    largest_lr,
    load,
    origin_tensors,
    passes,
    schedule,
    steps_made,
)
from theodolite.evidence.task import Score, is_language, majority, score_of, scores, skill, weighted_error
from theodolite.evidence.thresholds import LATE, NOTHING, PART, SURE, WORST, WORTH
from theodolite.evidence.work import work_of
from theodolite.io.batches import Batch
from theodolite.measure.dynamics.training_copies import copied_training

Loss = Callable[[nn.Module, Batch], Tensor]


@dataclass(frozen=True)
class Change:
    """One thing that a trial does differently; every part is left as the user has it where it is None.

    ``prepare`` changes the copies of model and optimizer before the first step, ``lr`` multiplies every step size, ``rows``
    changes each batch, in training and in judging, ``order`` the sequence of training batches, ``loss`` what a step descends on,
    ``network`` builds another network in place of the copy. ``from_here``: the run is gone on with, from its present weights, in
    place of begun again. ``reorders``: the order of the batches is itself what is tried, so that the training beside it keeps its
    own. ``scored_by`` is another loss that the copy is judged by, ``stretch`` how many steps it makes beside
    those of other trials.
    """

    name: str
    prepare: Callable[[nn.Module, torch.optim.Optimizer], None] | None = None
    lr: float = 1.0
    rows: Callable[[Batch], Batch] | None = None
    order: Callable[[Sequence[Batch]], Sequence[Batch]] | None = None
    loss: Loss | None = None
    network: Callable[[], nn.Module | None] | None = None
    from_here: bool = False
    reorders: bool = False
    scored_by: Loss | None = None
    stretch: float = 1.0

    def at_lr(self, factor: float) -> Change:
        """The same with another step size."""
        return replace(self, name=f"{self.name}, lr x {factor:g}", lr=self.lr * factor)


AS_IT_IS = Change("as it is")


def held_too(names: Sequence[str], model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """The change that trains these parameters with the others: free, and in the optimizer's hands, as its first group is."""
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    first = optimizer.param_groups[0]
    rest = {name: value for name, value in first.items() if name not in ("params", "param_names")}
    new = [p for p in (model.get_parameter(name).requires_grad_() for name in names) if id(p) not in held]
    if new:
        optimizer.add_param_group({"params": new, **rest})


def warming_up(steps: int, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """The change by which the first steps of an optimizer rise linearly; its own step sizes stand between them."""
    made, own = [0], list[float]()

    def before(optimizer: torch.optim.Optimizer, *_: object) -> None:
        own[:] = [group["lr"] for group in optimizer.param_groups]
        for group in optimizer.param_groups:
            group["lr"] *= min(1.0, (made[0] + 1) / steps)

    def after(optimizer: torch.optim.Optimizer, *_: object) -> None:
        made[0] += 1
        for group, lr in zip(optimizer.param_groups, own, strict=True):
            group["lr"] = lr

    optimizer.register_step_pre_hook(before)
    optimizer.register_step_post_hook(after)


class Trial:
    """A training on a copy that can be taken further; `score` is read on data that no step was taken on.

    Another ``seed`` draws the order of the batches, and what the model draws, anew.
    """

    def __init__(self, subject: Subject, change: Change, seed: int = 0) -> None:
        self.subject, self.change = subject, change
        self.losses: list[float] = []
        self.released = False
        self.broken = ""
        self._scores: dict[int, Score | None] = {}
        with untouched(None):
            torch.manual_seed(seed)
            self.model, self.optimizer = copied_training(subject.model, subject.optimizer)
            start = None if change.from_here else beginning(subject)
            if start is not None:
                load(self.model, start)
                self.optimizer.state.clear()
            if change.network is not None:
                self._replace_network(change.network)
            self._restart_lr()
            self.model.train()
            if change.prepare is not None:
                change.prepare(self.model, self.optimizer)
            self._fuse()
            self._random = torch.get_rng_state()
        self._base = [float(group.get("lr", 0.0)) for group in self.optimizer.param_groups]
        training, _ = training_and_held_out(subject)
        on_cpu = all(p.device.type == "cpu" for p in self.model.parameters())
        self._most = sys.maxsize if on_cpu or samples_coupled(subject) else max(map(len, training), default=1)
        self._batches: Sequence[Batch] = training if change.order is None else change.order(training)
        if seed:
            order = torch.randperm(len(self._batches), generator=torch.Generator().manual_seed(seed)).tolist()
            self._batches = [self._batches[place] for place in order]
        if change.rows is not None:
            self._batches = [change.rows(batch) for batch in self._batches]

    def _replace_network(self, build: Callable[[], nn.Module | None]) -> None:
        """Another network with an optimizer of the same kind, which holds the parameters of the same names.

        The settings of the first group are every parameter's.
        """
        built = build()
        if built is None:
            raise InputError("expected a network of another size, got none: it cannot be built")
        own = self.optimizer.param_groups[0]
        held = {id(p) for group in self.optimizer.param_groups for p in group["params"]}
        names = {name for name, p in self.model.named_parameters() if id(p) in held}
        settings = {key: value for key, value in own.items() if key not in ("params", "param_names")}
        kind: Any = type(self.optimizer)
        self.model = built
        stepped = [p for name, p in built.named_parameters() if p.requires_grad and name in names]
        self.optimizer = kind(stepped, lr=settings.get("lr", 1e-3))
        self.optimizer.param_groups[0].update(settings)

    def _restart_lr(self) -> None:
        """The largest step of the run: a schedule may have ended at nothing."""
        top = max((base_lr(group) for group in self.optimizer.param_groups), default=0.0)
        most = largest_lr(self.subject)
        for group in self.optimizer.param_groups:
            if "lr" in group:
                group["lr"] = base_lr(group) * (most / top if top > 0 and most > 0 else 1.0) * self.change.lr

    def _fuse(self) -> None:
        """Let Adam's step be one operation on a processor, where it is a third of the time of a small model's step."""
        if type(self.optimizer) not in (torch.optim.Adam, torch.optim.AdamW):
            return
        for group in self.optimizer.param_groups:
            plain = all(p.device.type == "cpu" and p.dtype == torch.float32 for p in group["params"])
            if plain and not group.get("capturable") and not group.get("differentiable"):
                group["fused"], group["foreach"] = True, False

    @property
    def steps(self) -> int:
        """Steps made so far."""
        return len(self.losses)

    @property
    def diverged(self) -> bool:
        """Whether it has ended in numbers that are not finite, or could not be made."""
        return bool(self.broken) or (bool(self.losses) and not math.isfinite(self.losses[-1]))

    def advance(self, steps: int) -> Trial:
        """Take it on to that many steps in all; it ends where the loss is no number."""
        wanted = steps - self.steps
        if wanted <= 0 or self.diverged or not self._batches:
            return self
        subject, loss = self.subject, self.change.loss
        rates = None if self.change.from_here else schedule(subject, steps)
        work, cost, added_up = work_of(subject), price(subject), passes(subject)
        with untouched(None), torch.enable_grad(), quiet():
            torch.set_rng_state(self._random)
            for _ in range(wanted):
                first = added_up * self.steps
                batches = [self._batches[(first + i) % len(self._batches)] for i in range(added_up)]
                work.spend(evaluations(self.optimizer) * sum(cost.step(len(batch)) for batch in batches))
                if rates is not None:
                    for group, base in zip(self.optimizer.param_groups, self._base, strict=True):
                        group["lr"] = base * rates[self.steps]
                for parameter in self.model.parameters():  # also those that no group holds
                    parameter.grad = None
                try:
                    self.losses.append(self._gradients(batches, loss))
                    if not math.isfinite(self.losses[-1]):
                        break
                    if isinstance(self.optimizer, torch.optim.LBFGS):  # asks for the loss several times in a step
                        self.optimizer.step(lambda batches=batches: self._again(batches, loss))  # type: ignore[no-untyped-call]
                    else:
                        clip_as_the_run(subject, self.model.parameters())
                        self.optimizer.step()
                except (RuntimeError, ValueError, TypeError, IndexError, AttributeError) as error:
                    self.broken = f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
                    break
            self._random = torch.get_rng_state()
            for parameter in self.model.parameters():
                parameter.grad = None
        return self

    def _gradients(self, batches: Sequence[Batch], loss: Loss | None) -> float:
        """The mean loss of the batches that a step is made of, its gradient added up; none where it is no number."""
        mean = 0.0
        for piece, part in (one for batch in batches for one in self._pieces(batch)):
            value = self.subject.loss_on(piece, self.model) if loss is None else loss(self.model, piece)
            share = part / len(batches)
            value = value * share if share < 1 else value
            mean += float(value.detach())
            if not math.isfinite(mean):
                break
            torch.autograd.backward(value)
        return mean

    def _pieces(self, batch: Batch) -> list[tuple[Batch, float]]:
        """The batch in pieces with their shares: on a GPU, whose memory training fills, none is larger than training's own."""
        most = self._most
        if len(batch) <= most or not batch.in_rows:
            return [(batch, 1.0)]
        cut = [batch.picked(slice(start, start + most)) for start in range(0, len(batch), most)]
        return [(piece, len(piece) / len(batch)) for piece in cut]

    def _again(self, batches: Sequence[Batch], loss: Loss | None) -> float:
        """The loss with its gradients, and nothing of those before."""
        for parameter in self.model.parameters():
            parameter.grad = None
        return self._gradients(batches, loss)

    def release(self) -> None:
        """Let go of the copies, once the trial has been scored: it is not taken further."""
        self.score()
        self._batches, self.released = [], True
        del self.model, self.optimizer

    def score(self) -> Score | None:
        """How well the copy does now on the parts that trials are judged by; None where it has diverged."""
        if self.diverged:
            return None
        if self.steps not in self._scores:
            self._scores[self.steps] = self.score_on(judged_parts(self.subject))
        found = self._scores[self.steps]
        return found if found is not None and math.isfinite(found.loss) else None

    @property
    def score_at_half(self) -> Score | None:
        """The score at about half of the steps made, where it was read there; else the present one."""
        early = [self._scores[steps] for steps in self._scores if abs(2 * steps - self.steps) <= PART * self.steps]
        return early[0] if early else self.score()

    def score_on(self, parts: Sequence[Batch]) -> Score | None:
        """How well the copy does on some parts of the data."""
        change = self.change
        if change.rows is not None:
            parts = [change.rows(batch) for batch in parts]
        try:
            return score_of(self.subject, parts, self.model, loss=change.scored_by)
        except (RuntimeError, ValueError, TypeError, IndexError, AttributeError):
            return None


def evaluations(optimizer: Any) -> int:
    """How often a step asks for the loss."""
    return int(optimizer.param_groups[0]["max_iter"]) if isinstance(optimizer, torch.optim.LBFGS) else 1


def judged_parts(subject: Subject) -> Sequence[Batch]:
    """Data that no trial is trained on: the validation data, else what is held out of the training data."""
    return training_and_held_out(subject)[1]


def judged_constant(subject: Subject) -> float:
    """The loss when ignoring the input on the same data."""
    return held_out_constant(subject)[0]


def loss_to_beat(subject: Subject) -> float:
    """The loss when ignoring the input; where no such answer is known, the least of a network that no step has trained."""
    constant = judged_constant(subject)
    if math.isfinite(constant) or (steps_made(subject) and origin_tensors(subject) is None):
        return constant
    untrained: list[float] = subject.seen.get("untrained losses", [])
    return min([loss_before(subject), *untrained])


@once("loss before training")
def loss_before(subject: Subject) -> float:
    """The loss of the weights before training, on the same data."""
    score = Trial(subject, AS_IT_IS).score()
    return math.nan if score is None else score.loss


@once("judged majority")
def judged_majority(subject: Subject) -> float:
    """The share of right answers when always saying the commonest class, on the same data."""
    return majority(subject, judged_parts(subject))


def present_skill(subject: Subject, score: Score | None = None) -> float:
    """How far the model, or a score of a copy of it, has gone from ignoring the input to a perfect answer, on the same data."""
    own = present_score(subject) if score is None else score
    return skill(subject, own, judged_constant(subject), judged_majority(subject))


@once("present score")
def present_score(subject: Subject) -> Score | None:
    """How well the model does now on the parts that trials are judged by."""
    try:
        found = score_of(subject, judged_parts(subject))
    except (RuntimeError, ValueError, TypeError, IndexError):
        return None
    return found if found is not None and math.isfinite(found.loss) else None


@dataclass(frozen=True)
class Gain:
    """What one training is ahead of another: the share of what the better one has learned that the other has not.

    ``by_loss`` counts from the loss when ignoring the input, ``by_accuracy`` from the share of the commonest class, with
    ``accuracy_error``; ``lost`` is the smaller of the two, where the accuracy tells. ``sure`` is the difference in standard
    errors, part by part.
    """

    by_loss: float
    by_accuracy: float
    sure: float
    accuracy_error: float = 0.0

    @property
    def lost(self) -> float:
        """The share of attainable skill that the worse one has lost."""
        if math.isnan(self.by_loss) or math.isnan(self.by_accuracy):
            return max((v for v in (self.by_loss, self.by_accuracy) if not math.isnan(v)), default=0.0)
        return min(self.by_loss, self.by_accuracy + 2 * self.accuracy_error)

    def is_worth(self, share: float) -> bool:
        """Whether at least that share was lost, beyond chance."""
        return self.lost >= share and self.sure > SURE


def gain_of(subject: Subject, better: Score | None, worse: Score | None, *, losses_alike: bool = True) -> Gain:
    """By how much the first is ahead of the second; a run that blew up (None) has learned nothing."""
    if better is None:
        return Gain(-math.inf, math.nan, -math.inf)
    constant, common = loss_to_beat(subject), judged_majority(subject)
    before = not math.isfinite(judged_constant(subject))
    if before and better.loss < 0 and (worse is None or worse.loss < constant):
        constant = math.nan  # a loss that may have no least: to fall further is not to be better
    if worse is None:
        loss_share = (constant - better.loss) / abs(constant) if math.isfinite(constant) and constant else 1.0
        learned = loss_share if losses_alike else math.nan
        if better.accuracy == better.accuracy and common < 1 and not losses_alike:
            learned = (better.accuracy - common) / (1 - common)
        return Gain(1.0 if learned > NOTHING else 0.0, math.nan, math.inf if learned > NOTHING else 0.0)
    by_loss = math.nan
    if losses_alike and math.isfinite(constant):
        room = constant - better.loss
        learned = room > NOTHING * abs(constant) and _is_below_constant(subject, better)
        by_loss = min(1.0, (worse.loss - better.loss) / room) if learned else -math.inf
    by_accuracy, points, uncertain = math.nan, better.accuracy - worse.accuracy, 0.0
    apart, error = _paired(worse.shares, better.shares, better.weights, math.inf) if points == points else (0.0, 0.0)
    if points == points and len(better.shares) == 1:  # one part, such as a whole graph: its places tell
        apart, error = points, math.hypot(better.accuracy_error, worse.accuracy_error)
    if points == points and common < 1 and better.accuracy - common > SURE * better.accuracy_error:
        room = better.accuracy - common
        by_accuracy, uncertain = min(1.0, points / room), min(1.0, error / room)
    elif points == points:
        by_accuracy = -math.inf if points < 0 else math.nan
    # where many answers are likely the loss is what counts
    if losses_alike and math.isfinite(constant) and is_language(subject):
        by_accuracy, uncertain = math.nan, 0.0
    late = losses_alike and steps_made(subject) >= LATE
    if late and worse.loss > (1 + WORTH) * constant > 0 and not _knows_its_answers(subject):
        by_loss, by_accuracy, uncertain = min(1.0, (worse.loss - better.loss) / (worse.loss - constant)), math.nan, 0.0
    sure = [_ratio(*_paired(better.losses, worse.losses, better.weights, constant))] if losses_alike else []
    sure += [_ratio(apart, error)] if points == points else []
    if judged_is_trained(subject):  # all the samples there are
        sure, uncertain = (
            [math.copysign(math.inf, worse.loss - better.loss) if losses_alike else _ratio(points, 0.0)],
            0.0,
        )
    return Gain(by_loss, by_accuracy, max(sure, default=0.0), uncertain)


def _knows_its_answers(subject: Subject) -> bool:
    """Whether the run knows on its own training data how often each answer occurs: elsewhere they may occur otherwise."""
    own, constant = scores(subject)[0], constant_loss(subject)
    return own is not None and own.loss <= (1 + WORTH) * constant


def _is_below_constant(subject: Subject, score: Score) -> bool:
    """Whether a score is better than ignoring the input beyond chance, part by part; else nothing was learned."""
    constant, losses = held_out_constant(subject)
    if judged_is_trained(subject):
        return True
    if not losses:
        return loss_to_beat(subject) - score.loss > SURE * score.stderr
    if len(score.losses) == 1 and score.accuracy == score.accuracy:
        return score.accuracy - judged_majority(subject) > SURE * score.accuracy_error
    mean, error = _paired(score.losses, losses, score.weights, math.inf)
    return mean > SURE * error if len(losses) == len(score.losses) > 1 else constant - score.loss > SURE * score.stderr


def _ratio(mean: float, error: float) -> float:
    return mean / error if error > 0 else math.copysign(math.inf, mean) if mean else 0.0


def _paired(
    low: Sequence[float], high: Sequence[float], weights: Sequence[float], constant: float
) -> tuple[float, float]:
    """By how much the second lies above the first, part by part, and the standard error of that."""
    if len(low) != len(high) or len(low) < 2:
        return 0.0, 0.0
    a, b = torch.tensor(low, dtype=torch.float64), torch.tensor(high, dtype=torch.float64)
    if math.isfinite(constant) and constant > 0:
        a, b = a.clamp(max=WORST * constant), b.clamp(max=WORST * constant)
    return weighted_error((b - a).tolist(), weights)
