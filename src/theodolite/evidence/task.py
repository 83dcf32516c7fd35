"""What a model's outputs and targets mean, found by experiment on the loss, and how well a model does at it.

Outputs are drawn at random, and the gradient of the loss in them tells classes from numbers: of a class the loss pulls just
one output up at each place that counts, and that is the output of the target. So the axis of the classes, the places that
count and the targets that are ignored are seen, not read off names and shapes. Where the experiment does not tell, the task is
unknown and nothing is judged by its accuracy.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from theodolite.core.state import untouched
from theodolite.core.subject import Subject, once
from theodolite.evidence.batches import (
    asked_batch,
    batches,
    distinct_batches,
    first_rows,
    joined,
    price,
    reads_targets,
    samples_coupled,
    validation_parts,
)
from theodolite.evidence.drawn_outputs import drawn_outputs, members_of, quiet, rebuilt
from theodolite.evidence.thresholds import FEWEST, NEARLY_ALL, ROUNDING, ROWS, SAME
from theodolite.evidence.work import work_of
from theodolite.io.batches import Batch

Kind = Literal["classes", "labels", "numbers", "unknown"]


@dataclass(frozen=True)
class Task:
    """``kind`` of the targets; of classes the ``axis`` of an answer that holds them, and the targets that are ``ignored``.

    ``member`` says which tensor of an answer of several the targets belong to. ``shift``: the loss itself asks each
    place for the target so many places further on. ``labels`` are answers that are right or wrong
    one by one: those above ``threshold`` say yes, or those ``below`` it, as where answers are distances. ``viewed``: the loss
    finds classes where another shape, not another order of axes, puts them. ``summed``: the loss is a sum over samples, not a
    mean. ``coupled``: what it asks of a sample depends on the answers to the others of its batch, as where these are compared.
    ``why`` says what could not be told.
    """

    kind: Kind
    member: int = 0
    axis: int = -1
    shift: int = 0
    ignored: tuple[int, ...] = ()
    threshold: float = 0.0
    below: bool = False
    summed: bool = False
    coupled: bool = False
    one_hot: bool = False
    viewed: bool = False
    why: str = ""

    def right(self, answer: Any, target: Tensor) -> Tensor | None:
        """At each place that counts, whether the answer is right; None where answers are not right or wrong."""
        if self.kind not in ("classes", "labels"):
            return None
        output = members_of(answer)[self.member]
        if self.kind == "labels":
            wanted = target.reshape(output.shape) if target.numel() == output.numel() else target
            if wanted.shape != output.shape:
                return None
            return (self.yes(output) == (wanted > 0.5)).reshape(-1)
        told = output.argmax(self.axis)
        wanted = target.argmax(self.axis) if self.one_hot else target.reshape(told.shape).long()
        if self.shift:
            told, wanted = told[:, : -self.shift], wanted[:, self.shift :]
        return (told == wanted)[self.counts(wanted)]

    def yes(self, output: Tensor) -> Tensor:
        """Which answers to labels say yes."""
        return output < self.threshold if self.below else output > self.threshold

    def counts(self, wanted: Tensor) -> Tensor:
        """Which of some classes the loss does not ignore."""
        return ~torch.isin(wanted, torch.tensor(self.ignored, dtype=wanted.dtype, device=wanted.device))

    def classes_of(self, target: Tensor) -> Tensor | None:
        """The class of every place that counts; None where targets are not classes."""
        if self.kind not in ("classes", "labels"):
            return None
        if self.kind == "labels":
            return (target > 0.5).long().reshape(-1)
        wanted = (
            target.argmax(self.axis) if self.one_hot else target[:, self.shift :] if self.shift else target
        ).long()
        return wanted[self.counts(wanted)]


@dataclass(frozen=True)
class Score:
    """How well a model does on some parts of the data: the loss a place that counts, and the share of right answers.

    ``losses``, ``shares`` and ``weights`` are those of the parts one by one: loss, share of right answers, places.
    """

    loss: float
    accuracy: float
    samples: int
    losses: tuple[float, ...]
    shares: tuple[float, ...]
    weights: tuple[float, ...]

    @property
    def stderr(self) -> float:
        """The standard error of the loss, from part to part."""
        return weighted_error(self.losses, self.weights)[1]

    @property
    def accuracy_error(self) -> float:
        """The binomial standard error of the accuracy, that of one half a sample more right and wrong."""
        n = sum(self.weights)
        share = (self.accuracy * n + 0.5) / (n + 1) if n else 0.5
        return math.sqrt(share * (1 - share) / max(1.0, n))


@once("task")
def task(subject: Subject) -> Task:
    """What outputs and targets mean here."""
    if subject.model is None or subject.loss is None or not batches(subject):
        return Task("unknown", why="there is no model, no loss or no data")
    batch = first_rows(asked_batch(subject), ROWS)
    target = batch.target
    with untouched(subject.model), torch.no_grad(), quiet():
        answer = subject.answer(batch)
    own = members_of(answer)
    if not own or not isinstance(target, Tensor) or not target.numel():
        return Task("unknown", why="the targets or the outputs are not tensors")
    try:
        drawn, slopes = _slopes(subject.loss, answer, target)
    except Exception as error:
        return Task("unknown", why=f"the loss fails on random outputs ({type(error).__name__})")
    summed = _is_sum(subject.loss, answer, drawn, target)
    coupled = samples_coupled(subject)
    if not reads_targets(subject):
        return Task("unknown", summed=summed, coupled=coupled, why="the loss does not read the targets")
    told: list[Task] = []
    for member, (z, slope) in enumerate(zip(drawn, slopes, strict=True)):
        if slope is None or not bool(slope.any()):
            continue
        found = _kind_of(subject.loss, answer, member, z, slope, target)
        if found is not None:
            told.append(Task(**{"member": member, "summed": summed, "coupled": coupled, **found}))
    why = "the gradient of the loss with respect to the outputs fits neither classes nor numbers"
    known = [one for one in told if one.kind != "unknown"]
    return [*known, *told, Task("unknown", summed=summed, coupled=coupled, why=why)][0]


def is_language(subject: Subject) -> bool:
    """Whether the answers are classes at many places of sequences of tokens: such models are judged by their loss."""
    whole = batches(subject)
    given = whole[0].tensors() if whole else []
    tokens = bool(given) and not given[0].is_floating_point() and isinstance(whole[0].target, Tensor)
    return tokens and task(subject).kind == "classes" and whole[0].target.ndim > 1


@once("scores")
def scores(subject: Subject) -> tuple[Score | None, Score | None]:
    """Those on the data that the model is trained on, and on validation data, in evaluation mode; None where there are none."""
    if subject.model is None or not subject.has("loss") or not is_finite(subject):
        return None, None
    return score_of(subject, distinct_batches(subject)), score_of(subject, validation_parts(subject))


def score_of(
    subject: Subject,
    parts: Sequence[Batch],
    model: nn.Module | None = None,
    *,
    loss: Callable[[nn.Module, Batch], Tensor] | None = None,
) -> Score | None:
    """The score of the subject's model, or of a copy of it, on some parts of the data, in evaluation mode."""
    one = subject.model if model is None else model
    if one is None or not parts or subject.loss is None:
        return None
    meant = task(subject)
    losses, shares, weights, samples = [], [], [], 0
    with untouched(one), torch.no_grad(), quiet():
        torch.manual_seed(1)
        for batch, answer in answers(subject, parts, one, _fold(subject, parts, one)):
            value = float(subject.loss(answer, batch.target) if loss is None else loss(one, batch))
            right = meant.right(answer, batch.target)
            places = len(batch) if right is None else right.numel()
            if not places:  # every place is ignored
                continue
            losses.append(value / len(batch) if meant.summed else value)
            shares.append(math.nan if right is None else float(right.double().mean()))
            weights.append(float(places))
            samples += len(batch)
    if not losses:
        return None
    total = sum(weights)
    mean = sum(a * w for a, w in zip(losses, weights, strict=True)) / total
    accuracy = sum(a * w for a, w in zip(shares, weights, strict=True)) / total
    return Score(mean, accuracy, samples, tuple(losses), tuple(shares), tuple(weights))


def _fold(subject: Subject, parts: Sequence[Batch], model: nn.Module) -> int:
    """Parts that are answered in one pass: on a GPU, where a pass costs its calls, as many as make a batch of training."""
    alone = all(p.device.type == "cpu" for p in model.parameters()) or samples_coupled(subject)
    return 1 if alone else max(1, len(batches(subject)[0]) // max(map(len, parts)))


def answers(subject: Subject, parts: Sequence[Batch], model: nn.Module, fold: int) -> Iterator[tuple[Batch, Any]]:
    """Each part with the model's answer to it, of one pass through so many parts where they fit together."""
    for start in range(0, len(parts), fold):
        few = parts[start : start + fold]
        together = joined(few) if len(few) > 1 else []
        answer = None
        if together:
            work_of(subject).spend(price(subject).forward(len(together[0])))
            answer = subject.answer(together[0], model)
        if together and isinstance(answer, Tensor) and len(answer) == len(together[0]):
            yield from zip(few, torch.split(answer, [len(batch) for batch in few]), strict=True)
            continue
        for batch in few:
            work_of(subject).spend(price(subject).forward(len(batch)))
            yield batch, subject.answer(batch, model)


@once("finite")
def is_finite(subject: Subject) -> bool:
    """Whether weights, inputs and targets are all finite; what is learned is measured only then."""
    tensors = [t for batch in batches(subject) for t in (*batch.tensors(), batch.target)]
    own = [] if subject.model is None else list(subject.model.parameters())
    floating = (t for t in (*tensors, *own) if isinstance(t, Tensor) and t.is_floating_point())
    return all(bool(torch.isfinite(t).all()) for t in floating)


@once("class counts")
def class_counts(subject: Subject) -> Tensor | None:
    """How often each class occurs in the training data; None where targets are not classes."""
    return _counted(subject, distinct_batches(subject))


def _counted(subject: Subject, parts: Sequence[Batch]) -> Tensor | None:
    found = [task(subject).classes_of(b.target) for b in parts if isinstance(b.target, Tensor)]
    known = [part for part in found if part is not None and len(part) and int(part.min()) >= 0]
    return torch.bincount(torch.cat(known)) if known else None


def has_rare_classes(subject: Subject) -> bool:
    """Whether classes are so many that their shares are not known: fitted to a sample they are better there than elsewhere."""
    counts = class_counts(subject)
    return counts is not None and int(counts.sum()) < FEWEST * int((counts > 0).sum())


def majority(subject: Subject, on: Sequence[Batch] | None = None) -> float:
    """The share of right answers when always saying the commonest class of the training data, there or on other data.

    Not a number where targets are not classes.
    """

    own = class_counts(subject)
    if own is None:
        return math.nan
    there = own if on is None else _counted(subject, on)
    common = int(own.argmax())
    if there is None:
        return math.nan
    return float(there[common] / there.sum()) if common < len(there) else 0.0


def _kind_of(loss: Any, answer: Any, member: int, z: Tensor, slope: Tensor, target: Tensor) -> dict[str, Any] | None:
    binary = bool(((target == 0) | (target == 1)).all())
    if not target.is_floating_point():
        for axis in range(z.ndim - 1, 0, -1):
            if z.shape[axis] > 1 and z.shape[:axis] + z.shape[axis + 1 :] == target.shape:
                found = _classes_on(axis, slope, target)
                if found is not None:
                    return found
        if z.ndim > 2 and z.shape[:-1] == target.shape:
            moved = slope.reshape(z.shape[0], z.shape[-1], *z.shape[1:-1])
            if _classes_on(1, moved, target) is not None:
                why = "the loss reshapes the outputs before it reads the classes"
                return {"kind": "unknown", "viewed": True, "why": why}
        if z.numel() == target.numel() and binary:
            return {"kind": "labels", **_side(loss, answer, member, target)}
        return _numbers(loss, answer, member, z, target)
    if z.numel() != target.numel():
        return None
    if not binary:
        return _numbers(loss, answer, member, z, target)
    if z.shape == target.shape and z.ndim > 1 and z.shape[-1] > 1 and bool((target.sum(-1) == 1).all()):
        return {"kind": "classes", "axis": z.ndim - 1, "one_hot": True}
    return {"kind": "labels", **_side(loss, answer, member, target)}


def _numbers(loss: Any, answer: Any, member: int, z: Tensor, target: Tensor) -> dict[str, Any] | None:
    """Numbers, where the target itself is a better answer than one nearer to the mean of all targets, or farther from it.

    A loss may mean something else by its outputs: their exponential (a rate), their logistic function, the side they lie on, or
    their order alone, where it is no worse with all of them moved by as much.
    """
    if z.numel() != target.numel():
        return None
    wanted = target.to(z.dtype).reshape(z.shape)
    mean, own = wanted.mean(0, keepdim=True), members_of(answer)

    def at(part: float, moved: float = 0.0) -> float:
        filled = [mean + part * (wanted - mean) + moved if i == member else t for i, t in enumerate(own)]
        return float(loss(rebuilt(answer, filled), target))

    try:
        with torch.no_grad(), quiet():
            exact, nearer = at(1.0), at(0.8)
    except Exception:
        return None
    try:
        with torch.no_grad(), quiet():
            farther = min(at(1.2), at(1.0, moved=float(wanted.std())))
    except Exception:  # it takes nothing beyond its range
        farther = math.inf
    if not all(exact < other - SAME * abs(other) for other in (nearer, farther)):
        return {"kind": "unknown", "why": "the outputs that minimize the loss are not the targets"}
    return {"kind": "numbers"}


def _classes_on(axis: int, slope: Tensor, target: Tensor) -> dict[str, Any] | None:
    """Classes on this axis, where at each place that counts the output of the target is the one that is pulled up most."""
    counts, pulled = slope.abs().amax(axis) > 0, slope.argmin(axis)
    for shift in (0, 1) if target.ndim > 1 and target.shape[1] > 1 else (0,):
        count = counts[:, : target.shape[1] - shift] if shift else counts
        told, wanted = (pulled[:, :-shift], target[:, shift:]) if shift else (pulled, target)
        if not bool(count.any()) or not bool((told == wanted)[count].double().mean() > NEARLY_ALL):
            continue
        aside = torch.unique(wanted[~count]).tolist()
        ignored = tuple(int(v) for v in aside if not bool((wanted[count] == v).any()))
        return {"kind": "classes", "axis": axis, "shift": shift, "ignored": ignored}
    return None


def _side(loss: Any, answer: Any, member: int, target: Tensor) -> dict[str, Any]:
    """Where yes begins: 0 where ever larger outputs are ever better for a yes, one half where 1 is best.

    Where larger outputs are worse for a yes and better for a no, as distances are, below where both cost the same.
    """
    own = members_of(answer)

    def at(level: float, wanted: float) -> float:
        filled = [torch.full_like(t, level) if i == member else t for i, t in enumerate(own)]
        return float(loss(rebuilt(answer, filled), torch.full_like(target, wanted)))

    try:
        with torch.no_grad(), quiet():
            if at(4.0, 1.0) < at(1.0, 1.0):
                return {"threshold": 0.0}
            low, high = 0.0, 4.0
            if not (at(low, 1.0) < at(high, 1.0) and at(low, 0.0) > at(high, 0.0)):
                return {"threshold": 0.5}
            while high - low > ROUNDING:
                middle = (low + high) / 2
                low, high = (middle, high) if at(middle, 1.0) < at(middle, 0.0) else (low, middle)
            return {"threshold": high, "below": True}
    except Exception:  # it takes nothing but probabilities
        return {"threshold": 0.5}


def _is_sum(loss: Any, answer: Any, drawn: list[Tensor], target: Tensor) -> bool:
    """Whether the loss of a batch and its copy together is that of both added."""
    try:
        with torch.no_grad(), quiet():
            one = float(loss(rebuilt(answer, drawn), target))
            twice = float(loss(rebuilt(answer, [torch.cat([z, z]) for z in drawn]), torch.cat([target, target])))
    except Exception:
        return False
    return abs(twice - 2 * one) <= ROUNDING * abs(twice) and abs(twice) > 0


def _slopes(loss: Any, answer: Any, target: Tensor) -> tuple[list[Tensor], list[Tensor | None]]:
    drawn = drawn_outputs(answer, target)[0]
    free = [z.detach().clone().requires_grad_() for z in drawn]
    with torch.enable_grad(), quiet():
        value = loss(rebuilt(answer, free), target)
        found = torch.autograd.grad(value.sum(), free, allow_unused=True)
    return [z.detach() for z in free], list(found)


def skill(subject: Subject, score: Score | None, constant: float, common: float | None = None) -> float:
    """The share of the way from ignoring the input to a perfect answer that a score has gone, by loss or by right answers.

    The better of the two where both can be told; not a number where neither can. ``common`` is the share of right answers when
    ignoring the input on the same data; that of the training data where it is not given.
    """
    if score is None:
        return math.nan
    shares = []
    if math.isfinite(constant) and constant > 0:
        shares.append((constant - score.loss) / constant if math.isfinite(score.loss) else -math.inf)
    common = majority(subject) if common is None else common
    if score.accuracy == score.accuracy and common < 1:
        shares.append((score.accuracy - common) / (1 - common))
    return max(shares, default=math.nan)


def weighted_error(values: Sequence[float], weights: Sequence[float]) -> tuple[float, float]:
    """The mean of values of parts with their weights, and its standard error from part to part."""
    v, w = torch.tensor(values, dtype=torch.float64), torch.tensor(weights, dtype=torch.float64)
    share, n = w / w.sum(), len(values)
    mean = (share * v).sum()
    error = float(((share * (v - mean)).square().sum() * n / (n - 1)).sqrt()) if n > 1 else 0.0
    return float(mean), error
