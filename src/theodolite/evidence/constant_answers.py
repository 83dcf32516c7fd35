"""The loss of the best answer that ignores its input: what a training has to beat."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from theodolite.core.optimizer_steps import made_optimizer
from theodolite.core.state import untouched
from theodolite.core.subject import Subject, once
from theodolite.evidence.batches import batches, first_rows, reads_targets, training_and_held_out, validation_parts
from theodolite.evidence.drawn_outputs import Shape, drawn_outputs, members_of, output_shapes, quiet, rebuilt, size_of
from theodolite.evidence.loss_checks import falls_as_its_gradient_says
from theodolite.evidence.output_tail import least_loss
from theodolite.evidence.task import task
from theodolite.evidence.thresholds import A_FEW, AT_ONCE, CRITICAL, MANY, ROUNDING, ROWS, SAME, SEARCH
from theodolite.io.batches import Batch


def constant_loss(subject: Subject, on: Sequence[Batch] | None = None) -> float:
    """The loss of the best answer that ignores its input on the training data, read where it was not fitted if it can be.

    One answer for all places where targets are classes; of numbers the better of one for each place and one for all.
    """
    if on is not None:
        return _constant_on(subject, on)[0]
    if not validation_parts(subject):
        return held_out_constant(subject)[0]

    def measured() -> float:
        return _constant_on(subject, training_and_held_out(subject)[0])[0]

    return float(subject.once("constant loss", measured))


@once("held-out constant")
def held_out_constant(subject: Subject) -> tuple[float, list[float]]:
    """The same on the data that trials are judged by, and part by part of them."""
    return _constant_on(subject, training_and_held_out(subject)[1], own=bool(validation_parts(subject)))


def _constant_on(subject: Subject, parts: Sequence[Batch], *, own: bool = False) -> tuple[float, list[float]]:
    """The least mean loss of a constant answer, and its losses.

    ``own``: the shares of these parts may be better than those of the training data, where other classes are common there.
    """
    if told_from(subject) or compares_answers(subject):
        losses = [_equal_answers(subject, part) for part in parts]
        sizes = [len(part) for part in parts]
        return sum(a * n for a, n in zip(losses, sizes, strict=True)) / max(1, sum(sizes)), losses
    answers = list(best_constants(subject))
    if own and answers and subject.model is not None:
        with untouched(subject.model), torch.no_grad(), quiet():
            like = subject.answer(first_rows(parts[0], 2))
        answers += [answer for answer in [_shares(subject, like, parts)] if answer is not None]
    found = [_mean_of(subject, answer, parts) for answer in answers]
    return min((one for one in found if math.isfinite(one[0])), default=(math.nan, []))


@once("candidates of a sample")
def told_from(subject: Subject) -> int:
    """From how many a loss without targets tells each sample of a batch, by a softmax; 0 where that is not what it asks.

    Where all answers are equal such a loss is the logarithm of that number, which grows with the batch; nothing else gives that.
    """
    if subject.model is None or subject.loss is None or not batches(subject) or reads_targets(subject):
        return 0
    batch = first_rows(batches(subject)[0], ROWS)
    values = [_equal_answers(subject, first_rows(batch, rows)) for rows in (len(batch), len(batch) // 2)]
    if len(batch) < A_FEW or not all(0 < value < math.log(A_FEW * len(batch)) for value in values):
        return 0
    counts = [math.exp(value) for value in values]
    whole = [round(value) for value in counts]
    grown, rows = whole[0] - whole[1], len(batch) - len(batch) // 2
    near = all(abs(a - b) <= ROUNDING * b for a, b in zip(counts, whole, strict=True))
    return whole[0] if near and grown in (rows, 2 * rows) else 0


@once("compares answers")
def compares_answers(subject: Subject) -> bool:
    """Whether a loss without targets compares answers with each other alone, and can fall below what equal ones cost.

    Equal answers then cost the same whatever they are, as in a triplet loss the margin.
    """
    if subject.model is None or subject.loss is None or not batches(subject) or reads_targets(subject):
        return False
    batch, loss = first_rows(batches(subject)[0], ROWS), subject.loss
    equal = [_equal_answers(subject, batch, seed) for seed in range(2)]
    if not equal[0] > 0 or abs(equal[1] - equal[0]) > ROUNDING * equal[0]:
        return False
    with untouched(subject.model), torch.no_grad(), quiet():
        answer = subject.answer(batch)
    drawn = drawn_outputs(answer, None)[0]
    sizes = [t.numel() for t in drawn]

    def cost(row: Tensor) -> Tensor:
        parts = [part.reshape(t.shape) for part, t in zip(torch.split(row, sizes), drawn, strict=True)]
        return loss(rebuilt(answer, parts), batch.target)

    return least_loss(cost, torch.cat([t.flatten() for t in drawn])) < (1 - CRITICAL) * equal[0]


def _equal_answers(subject: Subject, batch: Batch, seed: int = 0) -> float:
    """The loss where every sample has the same answer, of ones or drawn; not a number where it refuses."""
    try:
        with untouched(subject.model), torch.no_grad(), quiet():
            answer = subject.answer(batch)
            own = members_of(answer)
            if not own or any(len(t) != len(batch) for t in own):
                return math.nan
            one = [torch.randn(t.shape[1:][-1:], generator=torch.Generator().manual_seed(seed)).to(t) for t in own]
            same = [(each if seed else torch.ones_like(each)).expand_as(t) for each, t in zip(one, own, strict=True)]
            return float(subject.loss(rebuilt(answer, same), batch.target))
    except Exception:  # a loss of whole batches only
        return math.nan


@once("constants")
def best_constants(subject: Subject) -> list[Callable[[int], Any]]:
    """The best answers that ignore their input, each a function of how many samples are answered."""
    if subject.model is None or not subject.has("loss") or not reads_targets(subject):
        return []  # what a loss without targets makes of an answer that no network gives is no reference
    if not falls_as_its_gradient_says(subject):
        return []  # nor what is found by descent on something else than its value
    training, _ = training_and_held_out(subject)
    with untouched(subject.model), torch.no_grad(), quiet():
        like = subject.answer(first_rows(training[0], 2))
    own = members_of(like)
    if not own:
        return []
    few, samples = [], 0
    enough = min(MANY, AT_ONCE // max(1, sum(t[:1].numel() for t in own)))
    for batch in training:
        few.append(first_rows(batch, max(2, enough - samples)))
        samples += len(few[-1])
        if samples >= enough:
            break
    kinds = output_shapes(own[task(subject).member])
    ways = [False, True] if task(subject).kind == "numbers" and any(t.ndim > 2 for t in own) else [None]
    size = size_of(few[0].target)
    others = [1.0, size, size**2] if len(own) > 1 and size > 1 else [1.0]  # such as a variance beside a mean
    found = [_fitted(subject, like, shape, few, way, start) for shape in kinds for way in ways for start in others]
    return [answer for answer in (*found, _shares(subject, like, training)) if answer is not None]


def _shares(subject: Subject, like: Any, training: Sequence[Batch]) -> Callable[[int], Any] | None:
    """The logarithms of the classes' shares, each counted once more than it was seen: rare ones may come up elsewhere."""
    meant, own = task(subject), members_of(like)
    output = own[meant.member]
    if meant.kind != "classes" or len(own) > 1 or len(output_shapes(output)) > 1:
        return None
    classes = output.shape[meant.axis]
    known = [meant.classes_of(b.target) for b in training]
    found = torch.cat([part for part in known if part is not None])
    if not len(found) or int(found.min()) < 0 or int(found.max()) >= classes:
        return None
    shares = torch.bincount(found, minlength=classes).double() + 1
    sizes = [classes if place == meant.axis % output.ndim else 1 for place in range(output.ndim)]
    logits = (shares / shares.sum()).log().to(output).reshape(sizes)
    return lambda count: rebuilt(like, [logits.expand(count, *output.shape[1:])])


def _fitted(
    subject: Subject, like: Any, shape: Shape, few: Sequence[Batch], shared: bool | None, start: float
) -> Callable[[int], Any] | None:
    """The best answer that ignores its input; its other members are fitted within their range, in units of ``start``."""
    meant, own = task(subject), members_of(like)
    free: list[Tensor] = []
    for member, t in enumerate(own):
        sizes = [1, *t.shape[1:]]
        if meant.kind == "classes" and member == meant.member:
            sizes = [size if place == meant.axis % t.ndim else 1 for place, size in enumerate(t.shape)]
        elif shared and member == meant.member:
            sizes = [1, *(1 for _ in t.shape[1:-1]), t.shape[-1]]
        free.append(torch.zeros(sizes, dtype=torch.float32, device=t.device))
    _begin_at_the_mean(free[meant.member], few)
    ranges = [output_shapes(t)[-1] for t in own]
    for z in free:
        z.requires_grad_()

    def answer(count: int, times: float = 1.0) -> Any:
        given = []
        for member, (z, t) in enumerate(zip(free, own, strict=True)):
            value = shape(times * z) if member == meant.member else start * ranges[member](times * z)
            given.append(value.to(t.dtype).expand(count, *t.shape[1:]))
        return rebuilt(like, given)

    def mean(times: float = 1.0) -> Tensor:
        """The mean loss; its gradient is taken batch by batch, so that no more than one answer is held at a time."""
        values = []
        for b in few:
            value = subject.loss(answer(len(b), times), b.target).float() / _per(subject, b) / len(few)
            if torch.is_grad_enabled():
                torch.autograd.backward(value)
            values.append(value.detach())
        return torch.stack(values).sum()

    seeker = made_optimizer(torch.optim.LBFGS, free, max_iter=SEARCH, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        for t in free:
            t.grad = None
        return mean()

    try:
        with torch.enable_grad(), quiet():
            seeker.step(closure)
        with torch.no_grad(), quiet():
            least, beyond = float(mean()), float(mean(2.0))
        perfect = _is_perfect(subject, answer, few[0])
    except Exception:  # the loss refuses such answers
        return None
    if not math.isfinite(least) or beyond < least - CRITICAL * abs(least):
        return None  # a loss that falls without end has no least
    if perfect:
        return None  # inputs have no say in the loss then, but in what the model can answer
    return lambda count: answer(count)


def _is_perfect(subject: Subject, answer: Callable[[int], Any], batch: Batch) -> bool:
    """Whether no sample would rather have another answer than the constant, beside what each says to one that is off by 1."""

    def pull(off: float) -> float:
        given = answer(len(batch))
        parts = [(t.detach() + off).requires_grad_() for t in members_of(given)]
        with torch.enable_grad(), quiet():
            value = subject.loss(rebuilt(given, parts), batch.target).float().sum()
            found = torch.autograd.grad(value, parts, materialize_grads=True)
        return math.hypot(*(float(g.float().norm()) for g in found))

    try:
        return pull(0.0) <= SAME * pull(1.0)
    except (RuntimeError, ValueError):  # the loss refuses what is off, such as a probability beyond 1
        return False


def _begin_at_the_mean(free: Tensor, few: Sequence[Batch]) -> None:
    """The search begins at the mean of targets that have the shape of answers: it may lie far off."""
    targets = [b.target for b in few]
    if all(isinstance(t, Tensor) and t.is_floating_point() and t.ndim == free.ndim for t in targets):
        whole = torch.cat(targets).double()
        if whole.shape[1:] == free.shape[1:]:
            free.copy_(whole.mean(0, keepdim=True))


def _per(subject: Subject, batch: Batch) -> float:
    return float(len(batch)) if task(subject).summed else 1.0


def _mean_of(subject: Subject, answer: Callable[[int], Any], parts: Sequence[Batch]) -> tuple[float, list[float]]:
    """The loss of an answer over all places that count, and that of each part that has any."""
    losses, weights = [], []
    with torch.no_grad(), quiet():
        for batch in parts:
            try:
                value = float(subject.loss(answer(len(batch)), batch.target)) / _per(subject, batch)
            except Exception:
                return math.nan, []
            found = task(subject).classes_of(batch.target) if isinstance(batch.target, Tensor) else None
            places = float(len(batch) if found is None else len(found))
            losses += [value] if places else []
            weights += [places] if places else []
    total = sum(weights)
    return (sum(a * w for a, w in zip(losses, weights, strict=True)) / total if total else math.nan), losses
