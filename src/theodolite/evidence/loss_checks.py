"""What a loss does, measured on outputs drawn for it: whether it listens to them, to whom a target belongs, what it likes."""

import itertools
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from types import CellType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from theodolite.core.state import untouched
from theodolite.core.subject import Subject, once
from theodolite.evidence.batches import asked_batch, batches, distinct_batches, first_rows, reads_targets, samples
from theodolite.evidence.drawn_outputs import drawn_outputs, members_of, output_shapes, quiet, rebuilt, size_of
from theodolite.evidence.kernel_machine import class_labels_of
from theodolite.evidence.output_tail import least_loss, output_tail, reach
from theodolite.evidence.thresholds import (
    A_FEW,
    CRITICAL,
    FEWEST,
    LADDER,
    NEARLY_ALL,
    NOTHING,
    PART,
    ROUNDING,
    ROWS,
    SAME,
    STILL,
)
from theodolite.io.batches import Batch

FAR = 12.0
"""An output whose logistic function is as good as 1."""


@once("drawn answers")
def drawn_answers(subject: Subject) -> list[Tensor]:
    """Outputs for `asked_batch` drawn at random, three times; none where the answer is not one tensor of some rows."""
    batch = asked_batch(subject)
    with untouched(subject.model), torch.no_grad(), quiet():
        own = subject.answer(batch)
    if not isinstance(own, Tensor) or not own.is_floating_point() or own.ndim < 1 or len(own) < A_FEW:
        return []
    return [drawn[0] for drawn in drawn_outputs(own, batch.target, 3)]


def _values(subject: Subject, answers: list[Any], target: Any) -> list[float]:
    with quiet(), torch.no_grad():
        return [float(subject.loss(answer, target)) for answer in answers]


def _equal(first: float, second: float) -> bool:
    return abs(first - second) <= SAME * max(abs(first), abs(second))


def is_blind(subject: Subject, answers: list[Tensor]) -> bool:
    """Whether the loss is the same whatever the answers are."""
    first, *rest = _values(subject, answers, asked_batch(subject).target)
    return math.isfinite(first) and all(_equal(first, other) for other in rest)


def is_dealt_out(subject: Subject, answers: list[Tensor]) -> bool:
    """Whether the loss stays when targets are dealt out anew among samples, although it changes with them otherwise."""
    target = asked_batch(subject).target
    if target.ndim == 0 or len(target) < A_FEW or bool((target == target[:1]).all()):
        return False
    generator = torch.Generator().manual_seed(0)
    if answers[0].numel() == target.numel():  # far from all targets an absolute error asks for their mean alone
        near = target.flip(0).reshape(answers[0].shape).to(answers[0])
        with suppress(RuntimeError, ValueError, IndexError):  # a loss that takes nothing but probabilities
            _values(subject, [near], target)
            answers = [*answers, near]  # drawn ones, too: beside near ones one yes among many zeros may be any
    first = _values(subject, answers, target)
    for _ in range(3):
        order = torch.randperm(len(target), generator=generator).to(target.device)
        if not all(_equal(a, b) for a, b in zip(first, _values(subject, answers, target[order]), strict=True)):
            return False
    # a loss that never looks at its targets (made for learning without labels) is something else
    alone = _values(subject, answers, target[:1].expand_as(target).contiguous())
    return not all(_equal(a, b) for a, b in zip(first, alone, strict=True))


def is_linear(subject: Subject, answers: list[Tensor]) -> bool:
    """Whether a loss of classes takes off as much again for each step that all answers grow by, so that it has no least value.

    So does a loss of logarithms of probabilities, of a class each, of the shares of all or of a whole sequence, where it is given
    something else.
    """
    target = asked_batch(subject).target
    like = answers[0]
    if target.is_floating_point():
        asks = target.shape == like.shape and _are_shares(target)
    else:
        asks = like.ndim == target.ndim + 1
    if not asks or (like.shape[-1] > 1 and _are_shares(like.exp())):
        return False
    for answer in answers:
        first, second, third = _values(subject, [answer, answer + 1, answer + 2], target)
        size = max(map(abs, (first, second, third)))
        if not math.isfinite(size) or first - second <= SAME * size or abs(first - 2 * second + third) > SAME * size:
            return False
    return True


def is_over_samples(subject: Subject, answers: list[Tensor]) -> bool:
    """Whether a loss of classes makes probabilities over the samples of a batch: a class that gains in all gains nothing."""
    target = asked_batch(subject).target
    if target.is_floating_point() or any(z.ndim != 2 or z.shape[:1] != target.shape for z in answers):
        return False
    names, which = target.unique(return_inverse=True)
    if len(names) == len(target):  # each sample is a class of its own: answers are compared with each other
        return False
    same, renamed = (_values(subject, answers[:1], y)[0] for y in (target, names.roll(1)[which]))
    if _equal(same, renamed):  # it asks which samples are of one class, and not which class that is: a distance, say
        return False
    for answer in answers:
        first, classes, samples = _values(subject, [answer, answer + answer[:1], answer + answer[:, :1]], target)
        if not math.isfinite(first) or not _equal(first, classes) or _equal(first, samples):
            return False
    return True


def _are_shares(rows: Tensor) -> bool:
    """Whether each row is of probabilities."""
    return bool((rows >= 0).all()) and bool((rows.float().sum(-1) - 1).abs().max() < ROUNDING)


def class_numbers(subject: Subject) -> Tensor | None:
    """The targets of `samples` as classes 0, 1, ..., where they are such: integers without gaps, three at least."""
    targets = [b.target for b in distinct_batches(subject)]
    if not all(isinstance(t, Tensor) and (t.ndim == 1 or (t.ndim == 2 and t.shape[1] == 1)) for t in targets):
        return None
    whole = torch.cat([t.reshape(-1) for t in targets])
    if whole.is_floating_point():
        if not bool((whole == whole.round()).all()):
            return None
        whole = whole.long()
    kinds = torch.unique(whole)
    fits = len(kinds) > 2 and int(kinds[0]) == 0 and int(kinds[-1]) == len(kinds) - 1
    return whole if fits and len(whole) >= 10 * len(kinds) else None


def likes_the_number(subject: Subject, like: Tensor) -> bool:
    """Whether outputs that descend on the loss freely go to the number of the class, or as near as they can be let."""
    loss, batch = subject.loss, first_rows(asked_batch(subject), ROWS)
    start, target = like[: len(batch)].clone(), batch.target
    found: list[Tensor] = []

    def value(answer: Tensor) -> Tensor:
        found[:] = [answer.detach()]
        return loss(answer, target)

    try:
        least_loss(value, start, size=size_of(target))
    except (RuntimeError, ValueError, IndexError):
        return False
    numbers = target.reshape(len(batch), *[1] * (start.ndim - 1)).to(start)
    spread = float(numbers.float().std())
    return spread > 0 and float((found[0] - numbers).float().square().mean()) ** 0.5 < PART * spread


def is_past_its_range(subject: Subject) -> bool:
    """Whether targets lie where the loss rewards outputs without end: binary cross-entropy with a target of 2 or of -1, say.

    Within its range, from 0 to 1, it does not: a loss that falls without end there too is meant to.
    """
    batch = first_rows(asked_batch(subject), ROWS)
    target = batch.target
    answers = drawn_answers(subject)
    if not answers or not target.is_floating_point() or answers[0].numel() != asked_batch(subject).target.numel():
        return False
    low = len(torch.unique(target)) == 2  # labels: of numbers that may be negative the loss may be meant to be
    beyond = (target > 1.0 + STILL).to(target) - ((target < -STILL) & low).to(target)
    if not bool(beyond.any()):
        return False
    shape, like = output_shapes(answers[0])[-1], answers[0][: len(batch)]
    inside = target.clamp(0.0, 1.0)
    far, best = (FAR * z.reshape(like.shape).to(like) for z in (beyond, 2 * inside - 1))
    try:
        zero, high = _values(subject, [shape(torch.zeros_like(like)), shape(far)], target)
        least = _values(subject, [shape(best)], inside)[0]
    except (RuntimeError, ValueError, IndexError):
        return False
    return high < -abs(zero) and least > -SAME * FAR  # a negative loss where perfect answers have none


def trained_beside(subject: Subject) -> bool:
    """Whether the gradient goes through another network, as of a generator its critic, that this optimizer does not train."""
    others = asked_beside(subject)
    if not others:
        return False
    batch = asked_batch(subject)
    try:
        with untouched(subject.model), torch.no_grad(), quiet():
            answer = subject.answer(batch)
        free = [z.requires_grad_() for z in drawn_outputs(answer, batch.target)[0]]
        with torch.enable_grad(), quiet():
            value = subject.loss(rebuilt(answer, free), batch.target)
            slopes: tuple[Any, ...] = torch.autograd.grad(value.sum(), others, allow_unused=True)
    except (RuntimeError, ValueError, TypeError, IndexError):
        return True
    return any(slope is not None for slope in slopes)


def asked_beside(subject: Subject) -> list[nn.Parameter]:
    """The free parameters of networks that the loss holds and this optimizer does not: those of a critic, of a target network."""
    loss: Any = subject.loss
    owner = getattr(loss, "__self__", None)
    cells = [cell.cell_contents for cell in getattr(loss, "__closure__", None) or () if cell != CellType()]
    reached = [loss, owner, *cells]
    reached += [value for one in (owner, *cells) if hasattr(one, "__dict__") for value in vars(one).values()]
    own = {id(p) for p in subject.model.parameters()} | {
        id(p) for g in subject.optimizer.param_groups for p in g["params"]
    }
    return [
        p
        for one in reached
        if isinstance(one, nn.Module)
        for p in one.parameters()
        if p.requires_grad and id(p) not in own
    ]


def goes_down_for_good(value: Callable[[list[Tensor]], Tensor], drawn: list[Tensor]) -> bool:
    """Whether a value falls below zero in proportion as these numbers go down its slope: as far again as they go."""
    free = [z.clone().requires_grad_() for z in drawn]
    try:
        with torch.enable_grad(), quiet():
            slopes: tuple[Tensor, ...] = torch.autograd.grad(value(free).sum(), free, materialize_grads=True)
        unit = max((float(slope.abs().max()) for slope in slopes), default=0.0)
        if not 0 < unit < math.inf:
            return False
        with torch.no_grad(), quiet():
            start, near, far = (
                float(value([z - far / unit * slope for z, slope in zip(drawn, slopes, strict=True)]))
                for far in (0, *LADDER[1::2])
            )
    except (RuntimeError, ValueError, IndexError):
        return False
    return near < start and -math.inf < far < 0 and far - start < CRITICAL * LADDER[1] * (near - start)


@once("falls without end")
def falls_without_end(subject: Subject) -> bool:
    """Whether the loss falls below zero in proportion as outputs go down its slope.

    So does that of a policy whose advantages have both signs. It has no least, and what takes it further down need not be better.
    Outputs stay in the range of the model's own: logarithms of probabilities, and losses that a model computes, end at zero.
    """
    answer, target = _asked(subject)
    shapes, loss = [output_shapes(t)[-1] for t in members_of(answer)], subject.loss

    def cost(outputs: list[Tensor]) -> Tensor:
        return loss(rebuilt(answer, [shape(z) for shape, z in zip(shapes, outputs, strict=True)]), target)

    return goes_down_for_good(cost, drawn_outputs(answer, target)[0])


def _asked(subject: Subject) -> tuple[Any, Any]:
    """The model's answer to `asked_batch`, and its target."""
    batch = asked_batch(subject)
    with untouched(subject.model), torch.no_grad(), quiet():
        return subject.answer(batch), batch.target


@once("falls as its gradient says")
def falls_as_its_gradient_says(subject: Subject) -> bool:
    """Whether a small step of each of the outputs along its gradient changes the loss by as much as the gradient promises.

    A loss that detaches part of what it is made of (a policy's advantage or importance weight) is descended on by something else
    than its value: of two answers the one that costs less need not be better.
    """
    (answer, target), loss = _asked(subject), subject.loss
    try:
        kept = [_kept_promises(loss, answer, drawn, target) for drawn in drawn_outputs(answer, target, 3)]
    except Exception:  # the loss refuses such answers
        return True
    return all(map(any, zip(*kept, strict=True)))  # where a loss has an edge one of three steps may cross it


def _kept_promises(loss: Callable[[Any, Any], Tensor], answer: Any, drawn: list[Tensor], target: Any) -> list[bool]:
    """Of each tensor, whether a step to and fro, of a hundredth of its size, changes the loss as its gradient promises."""

    def value(outputs: list[Tensor]) -> Tensor:
        torch.manual_seed(0)  # of a loss that draws
        return loss(rebuilt(answer, outputs), target).sum()

    kept = []
    with untouched(None), torch.enable_grad(), quiet():
        free = [z.to(torch.promote_types(z.dtype, torch.float32)).requires_grad_() for z in drawn]
        slopes = torch.autograd.grad(value(free), free, materialize_grads=True)
        for place, slope in enumerate(slopes):
            most = float(slope.abs().max())
            step = 0.01 * float(free[place].detach().square().mean().sqrt()) / most * slope if most else slope
            there, back = (
                float(value([z.detach() + way * step if z is free[place] else z.detach() for z in free]))
                for way in (1, -1)
            )
            promised = 2 * float((slope * step).sum())
            rounding = promised <= ROUNDING * max(abs(there), abs(back))
            kept.append(rounding or not abs(there - back - promised) > NOTHING * promised)
    return kept


def shrinks_volumes(subject: Subject) -> bool:
    """Whether the loss rises with the logarithm of the volume to which the model stretches the inputs, where it gives that.

    An image of the inputs with the logarithm of the determinant of its slope is there for a density of the inputs: that of the
    image times the volume, so that its negative logarithm falls with the second.
    """
    batch = first_rows(asked_batch(subject), FEWEST)
    given = batch.tensors()
    if len(given) != 1 or len(batch.inputs) != 1 or not given[0].is_floating_point() or given[0][:1].numel() > ROWS:
        return False
    try:
        with untouched(subject.model), torch.enable_grad(), quiet():
            x = given[0].detach().clone().requires_grad_()
            answer = subject.answer(replace(batch, inputs=(x,)))
            own = members_of(answer)
            if [t.shape for t in own] not in ([x.shape, x.shape[:1]], [x.shape, (len(x), 1)]) or x.ndim < 2:
                return False
            image, volume = own[0].flatten(1), own[1].detach()
            rows = [torch.autograd.grad(column.sum(), x, retain_graph=True)[0] for column in image.unbind(1)]
            truth = torch.linalg.slogdet(torch.stack([row.flatten(1) for row in rows], 1).double()).logabsdet
            free = [t.detach().clone().requires_grad_() for t in own]
            slope = torch.autograd.grad(subject.loss(rebuilt(answer, free), batch.target).sum(), free)[1].flatten()
    except (RuntimeError, ValueError, TypeError, IndexError):
        return False
    size = float(truth.abs().max())
    for sign in (1, -1):  # of the map, or of its inverse
        if float((sign * volume.flatten().double() - truth).abs().max()) <= NOTHING * size and size > NOTHING:
            return bool((sign * slope > 0).all())
    return False


def is_turned_round(subject: Subject) -> bool:
    """Whether the loss is highest where answers are right: it has the wrong sign.

    Without end it falls ever further as answers move away; where it is bounded, it is lowest where they say the opposite.
    """
    batch = first_rows(asked_batch(subject), ROWS)
    answers = drawn_answers(subject)
    if not answers or not isinstance(batch.target, Tensor):
        return False
    like, target = answers[0][: len(batch)], batch.target
    right, says = _right_answer(like, target)
    if right is None:
        return False
    shape = output_shapes(like)[-1]
    drawn = size_of(target) * torch.randn(like.shape, generator=torch.Generator().manual_seed(0)).to(like)

    def along(way: Tensor, start: Tensor | float = 0.0, steps: tuple[int, ...] = (0, 1, 10, 100)) -> list[float]:
        return _values(subject, [shape(start + step * way) for step in steps], target)

    try:
        fall = [along(way, right) for way in ([-right] if says else [drawn, -drawn])]
        if all(all(a > b for a, b in itertools.pairwise(v)) and v[-1] < -FAR * max(map(abs, v[:2])) for v in fall):
            return says or _moves_along(subject, right, target)
        most, nought, least = along(right, steps=(1, 0, -1))
        between = [*along(drawn), *along(-drawn)]
        if not most > nought > least or not all(most > value > least for value in between):
            return False
        return _are_scores(subject, like) if says else _are_angles(subject, right, target)
    except (RuntimeError, ValueError, IndexError):
        return False


def _right_answer(like: Tensor, target: Tensor) -> tuple[Tensor | None, bool]:
    """The answer that agrees with the targets, and whether these say what is true and what is not; None where it is not known."""
    if target.shape == like.shape and bool(((target == 0) | (target == 1)).all()):
        return FAR * (2 * target.to(like) - 1), True
    if target.is_floating_point() and target.numel() == like.numel():
        return target.reshape(like.shape).to(like), False
    if target.is_floating_point() and target.numel() == len(like):  # several answers to one number, such as quantiles
        return target.reshape(-1, *[1] * (like.ndim - 1)).to(like).expand_as(like), False
    labels = class_labels_of(target) if target.ndim < 3 else target
    classes = like.shape[1] if like.ndim > 1 else 1
    if labels is None or labels.is_floating_point() or labels.shape != like.shape[:1] + like.shape[2:]:
        return None, False
    if int(labels.min()) < 0 or int(labels.max()) >= classes:
        return None, False
    return FAR * (2 * F.one_hot(labels.long(), classes).movedim(-1, 1) - 1).to(like), True


def _moves_along(subject: Subject, right: Tensor, target: Tensor) -> bool:
    """Whether answers and targets that are moved together cost the same: what is asked is their difference."""
    moved = [_values(subject, [right + by], target + by)[0] for by in (0.0, 1.0)]
    return abs(moved[1] - moved[0]) <= ROUNDING


def _are_angles(subject: Subject, right: Tensor, target: Tensor) -> bool:
    """Whether answers and targets cost the same at any length: what is asked is the angle between them."""
    values = [_values(subject, [a * right], b * target)[0] for a, b in ((1, 1), (3, 1), (1, 3))]
    return max(values) - min(values) <= ROUNDING * abs(values[0])


def _are_scores(subject: Subject, like: Tensor) -> bool:
    """Whether larger answers say yes: those of both signs, a last layer's own, or from 0 to 1. Distances say no."""
    tail = output_tail(subject)
    return bool((like < 0).any()) or (tail is not None and (tail.plain or reach(tail) == (0.0, 1.0)))


def as_classes_and_numbers(subject: Subject, labels: Tensor) -> tuple[float, float, float] | None:
    """Held-out accuracy of least squares on the inputs, for classes and for their numbers (rounded), and the standard error."""
    sample = samples(subject)
    x = None if sample is None else sample.numbers
    if x is None or len(x) != len(labels):
        return None
    x = x.flatten(1).double()
    x = x[:, :: max(1, x.shape[1] // 512)]
    x = (x - x.mean(0)) / x.std(0).clamp(min=1e-9)
    x = torch.cat([x, torch.ones_like(x[:, :1])], 1)
    half = torch.arange(len(x), device=x.device) % 2 == 0
    wanted = torch.cat([F.one_hot(labels).double(), labels.double().unsqueeze(1)], 1)
    gram = x[half].mT @ x[half]
    ridge = 1e-2 * gram.diagonal().mean() * torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
    answers = x[~half] @ torch.linalg.solve(gram + ridge, x[half].mT @ wanted[half])
    right = labels[~half]
    classes = float((answers[:, :-1].argmax(1) == right).double().mean())
    numbers = float((answers[:, -1].round() == right).double().mean())
    return classes, numbers, math.sqrt(0.5 / max(1, len(right)))


def cross_entropy_for(subject: Subject) -> Callable[[Tensor, Any], Tensor] | None:
    """The cross-entropy that fits outputs and classes here, whether these are plain, probabilities or their logarithms."""
    batch = asked_batch(subject)
    with untouched(subject.model), torch.no_grad(), quiet():
        own = subject.answer(batch)
    labels = class_labels_of(batch.target) if reads_targets(subject) else None
    if labels is None or not isinstance(own, Tensor) or len(own) != len(labels) or own.ndim > 2:
        return None
    single = own.ndim == 1 or own.shape[1] == 1
    every = [class_labels_of(b.target) for b in batches(subject)]
    top = max((int(part.max()) for part in every if part is not None), default=0)
    if top >= (2 if single else own.shape[1]) or int(labels.min()) < 0:
        return None
    chances = bool((own >= 0).all()) and bool((own <= 1).all())
    mixed = not single and bool((own.float().sum(-1) - 1).abs().max() < ROUNDING)

    def entropy(answer: Tensor, target: Any) -> Tensor:
        classes = class_labels_of(target)
        assert classes is not None
        inside = answer.clamp(1e-6, 1 - 1e-6)
        scores = answer if not chances else inside.log() if mixed else torch.logit(inside)
        if single:
            return F.binary_cross_entropy_with_logits(scores.reshape(-1), classes.to(scores.dtype))
        return F.cross_entropy(scores, classes)

    return entropy


def entropy_loss(subject: Subject, entropy: Callable[[Tensor, Any], Tensor]) -> Callable[[nn.Module, Batch], Tensor]:
    """The same as a loss of a model on a batch."""
    return lambda model, batch: entropy(subject.answer(batch, model), batch.target)


def agrees_with_cross_entropy(subject: Subject, answers: list[Tensor]) -> bool:
    """Whether the loss rises and falls with cross-entropy on outputs drawn at random, or cannot be compared with it.

    Samples of one class are compared, where there are some: a loss may weight its classes.
    """
    entropy, target = cross_entropy_for(subject), asked_batch(subject).target
    labels = class_labels_of(target)
    if entropy is None or labels is None:
        return True
    of_one = labels == labels.mode().values
    if int(of_one.sum()) >= A_FEW:
        answers, target = [answer[of_one] for answer in answers], target[of_one]
    generator, shape = torch.Generator().manual_seed(1), output_shapes(answers[0])[-1]
    many = [shape(torch.randn(answers[0].shape, generator=generator)).to(answers[0]) for _ in range(24)]
    own, like = _values(subject, many, target), [float(entropy(answer, target)) for answer in many]
    table = torch.tensor([own, like], dtype=torch.float64)
    if not bool(torch.isfinite(table).all()) or float(torch.corrcoef(table)[0, 1]) > NEARLY_ALL:
        return True
    try:  # cross-entropy itself, given probabilities for logits: then the outputs are at fault, not the loss
        plain = [float(F.cross_entropy(answer, target)) for answer in many]
    except (RuntimeError, ValueError, IndexError, TypeError):
        return False
    return all(_equal(a, b) for a, b in zip(own, plain, strict=True))
