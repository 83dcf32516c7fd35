"""Does the model see what it has to predict?

Exact, in two ways. The inputs contain the target: position by position in a sequence (shifted or not), as the input of a
decoder, as a column of a table, or as the end of a window, the target equals the input everywhere it counts. Or the outputs
look ahead: if the target at one position is the input at a later one (next-token prediction), changing later inputs must not
change earlier outputs. A model that sees its target learns to copy it, and its loss says nothing about how well it will work
in use.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from theodolite.core.ailment import Ailment, Finding, evidence
from theodolite.core.state import untouched
from theodolite.core.subject import Subject
from theodolite.evidence.batches import Sample, batches, first_rows, samples
from theodolite.evidence.drawn_outputs import members_of
from theodolite.evidence.task import scores, task
from theodolite.evidence.thresholds import A_FEW, CRITICAL, FEWEST, MOST, ROUNDING, ROWS, WORST
from theodolite.evidence.token_counts import target_shift
from theodolite.io.batches import Batch


def judge(subject: Subject) -> Iterator[Finding]:
    sample = samples(subject)
    if sample is None or sample.target is None or len(sample) < FEWEST:
        return
    places = [
        i
        for i, x in enumerate(sample.inputs)
        if not x.is_floating_point() and x.dtype != torch.bool and x.ndim == 2 and x.shape == sample.target.shape
    ]
    for which in places:  # a decoder is given its targets beside what it answers to
        found = [*_sequence(subject, sample, which)]
        yield from found
        if found:
            return
    if not places:
        yield from _part(subject, sample)
        yield from _column(subject, sample)
        yield from _window(subject, sample)


def _part(subject: Subject, sample: Sample) -> Iterator[Finding]:
    """A part of the input tokens that is the target, where each answer depends on its own target and on none after it.

    So is what a decoder is given one place too early. The source of a copy is not: its answers depend on all of it.
    """
    y = sample.target
    for which, x in enumerate(sample.inputs):
        if y is None or y.ndim != 2 or x.ndim != 2 or x.is_floating_point() or y.is_floating_point():
            continue
        length, aside = y.shape[1], ~task(subject).counts(y)
        for first in range(x.shape[1] - length + 1):
            same = (x[:, first : first + length] == y) | aside
            if length < 2 or int((~aside).sum()) < FEWEST or not bool(same.all()):
                continue
            middle = length // 2
            if _moves(subject, which, first + middle, middle) and not _moves(
                subject, which, first + middle, middle - 1
            ):
                yield Finding(
                    severity="critical",
                    where=f"column {first}",
                    says=f"The model sees what it must predict: columns {first} to {first + length - 1} of the inputs are the "
                    "target, and changing one of them changes the output at the same position.",
                    remedy="shift the decoder's input by one position: a start token, then target[:, :-1]",
                    suggested={"shift_labels": 1},
                    evidence=(evidence("columns of the inputs that are the target", length),),
                )
                return


def _moves(subject: Subject, which: int, seen: int, place: int, *, by_place: bool = False) -> bool:
    """Whether another token at one place of an input changes the answer at a place, or at all where answers have no places."""
    moved = _moved(subject, which, seen)
    if by_place and len(moved) < 2:
        return False
    return float(moved[place] if place < len(moved) else moved.max()) > ROUNDING


def _copies(subject: Subject, which: int, seen: int) -> bool:
    """Whether an answer depends on the input at its own place, and not only as much as earlier answers do.

    Where most places count a text may be put into a code and read from it.
    """
    moved, target = _moved(subject, which, seen), batches(subject)[0].target
    if len(moved) <= seen or float(task(subject).counts(target).double().mean()) < CRITICAL:
        return float(moved[min(seen, len(moved) - 1)]) > ROUNDING
    return float(moved[seen]) > max(ROUNDING, WORST * float(moved[:seen].median()))


@torch.no_grad()
def _moved(subject: Subject, which: int, seen: int) -> Tensor:
    """How far another token at one place of an input moves the answer at each place, or all of it where it has no places."""
    batch = first_rows(batches(subject)[0], ROWS)
    if len(batch.inputs) + len(batch.keywords) != len(batch.tensors()) or len(batch.tensors()) <= which:
        return torch.zeros(1)
    x = batch.tensors()[which]
    changed, other = x.clone(), x.roll(1, 0)[:, seen]
    changed[:, seen] = other.where(other != x[:, seen], x[:, seen - 1])
    with untouched(subject.model):
        before, after = (
            members_of(subject.answer(_with(batch, which, given)))[task(subject).member] for given in (x, changed)
        )
    moved = (after - before).abs() / before.abs().max().clamp(min=1e-300)
    return moved.transpose(0, 1).flatten(1).amax(1) if before.ndim > 2 else moved.max().reshape(1)


def _sequence(subject: Subject, sample: Sample, which: int) -> Iterator[Finding]:
    assert sample.target is not None
    match = target_shift(subject, which)
    if match is None:
        yield from _visible(subject, sample.inputs[which], sample.target)
        return
    shift, share = match
    own = scores(subject)[0]
    reached = "" if own is None else f" That explains the training loss of {own.loss:.3g}."
    middle = sample.target.shape[1] // 2
    if shift == 0 and not _copies(subject, which, middle):
        return  # labels that a model is given for its own loss, say: its answers do not depend on them
    if shift == 0:
        yield Finding(
            severity="critical",
            where="targets",
            says=f"The target is the input itself at {share:.0%} of the positions that count: the model is asked to copy "
            f"what it sees.{reached}",
            remedy="shift the labels by one: inputs = tokens[:, :-1], targets = tokens[:, 1:]; in a masked model hide the "
            "input where the label counts",
            suggested={"shift_labels": 1},
            evidence=(evidence("share of positions where target and input are equal", share),),
        )
        return
    length = sample.target.shape[1]
    leaks = [s for s in (length - 1, length // 2) if s >= shift and _moves(subject, which, s, s - shift, by_place=True)]
    if not leaks:
        return
    seen = leaks[0]
    place = seen - shift
    yield Finding(
        severity="critical",
        where=f"position {place}",
        says=f"The model sees what it must predict: each target is the input {shift} position{'s' * (shift != 1)} "
        f"ahead, and changing the input at position {seen} changes the output at position {place}.{reached}",
        remedy="a causal mask: F.scaled_dot_product_attention(q, k, v, is_causal=True), or nn.Transformer with is_causal=True",
        suggested={"causal_mask": True},
        evidence=(evidence("positions ahead that an answer sees", float(seen - place)),),
    )


def _visible(subject: Subject, x: Tensor, target: Tensor) -> Iterator[Finding]:
    """A masked model whose loss counts what it was shown: hidden places hold one symbol that is never asked for."""
    meant = task(subject)
    if meant.kind != "classes" or meant.shift:
        return
    counts = meant.counts(target)
    hidden = x[counts & (x != target)]
    if len(hidden) < FEWEST:
        return
    shown = 1 - len(hidden) / int(counts.sum())
    mask = int(hidden.mode().values)
    if shown < CRITICAL or float((hidden == mask).double().mean()) < MOST or bool((target[counts] == mask).any()):
        return
    yield Finding(
        severity="warning",
        where="targets",
        says=f"The input shows the target at {shown:.0%} of the positions that count: only the others hold {mask}, the mask "
        "token. Most of the loss rewards copying the input.",
        remedy="count only the masked positions: targets[inputs != mask] = -100, with F.cross_entropy(..., ignore_index=-100)",
        suggested={"ignore_visible": True},
        evidence=(evidence("share of positions that show their target", shown),),
    )


def _with(batch: Batch, which: int, x: Tensor) -> Batch:
    """The batch with another tensor in the place of one of its inputs."""
    inputs = list(batch.inputs)
    if which < len(inputs):
        inputs[which] = x
        return Batch(tuple(inputs), batch.keywords, batch.target)
    name = [n for n, value in batch.keywords.items() if isinstance(value, Tensor)][which - len(inputs)]
    return Batch(batch.inputs, {**batch.keywords, name: x}, batch.target)


def _column(subject: Subject, sample: Sample) -> Iterator[Finding]:
    """A column of a table that is the target, or of classes another name of it: one value a class.

    Of a series it is the last place that counts: to remember an earlier one may be what is asked.
    """
    x, y = sample.numbers, sample.target
    if x is None or y is None or x.ndim not in (2, 3) or y.numel() != len(y) or len(torch.unique(y)) < 2:
        return
    numbers = x[0].numel()
    x, place = (x, "") if x.ndim == 2 else (x[:, -1], " at the last place")
    truth = y.reshape(-1).double()
    codes = torch.unique(truth, return_inverse=True)[1] if task(subject).kind in ("classes", "labels") else None
    same = [c for c in range(x.shape[1]) if torch.equal(x[:, c].double(), truth) or _renames(x[:, c], codes)]
    if same and len(same) <= numbers // 2:  # more than half: then the input is made of nothing else
        yield Finding(
            severity="critical",
            where=f"column {same[0]}",
            says=f"Column {same[0]} of the inputs{place} is the target itself, in all {len(truth):,} samples.",
            remedy="end the inputs one position before the target"
            if place
            else f"leave column {same[0]} out of the inputs",
            suggested={"drop_column": same[0]},
            evidence=(evidence("columns that are the target", len(same)),),
        )


def _window(subject: Subject, sample: Sample) -> Iterator[Finding]:
    """A forecast of several steps whose inputs end after its targets begin, where answers depend on what they have in common.

    A filter that answers at each place from what stands before it does not.
    """
    x, y = sample.numbers, sample.target
    if x is None or y is None or len(sample.inputs) > 1 or x.ndim not in (2, 3) or task(subject).kind != "numbers":
        return
    channels = x[:, :, None] if x.ndim == 2 else x
    wanted = y.reshape(len(y), -1)
    length, steps = channels.shape[1], wanted.shape[1]
    if steps < 2 or float(wanted.std(0).min()) == 0:
        return
    ends = [
        (shared, c)
        for shared in range(min(length - 1, steps), 0, -1)
        for c in range(channels.shape[2])
        if torch.equal(channels[:, length - shared :, c], wanted[:, :shared].to(channels))
    ]
    if not ends or not _is_counted(subject, ends[0][0] - 1) or not _answers_move(subject, ends[0], length):
        return
    shared = ends[0][0]
    yield Finding(
        severity="critical" if shared >= CRITICAL * steps else "warning",
        where=f"column {length - shared}",
        says=f"The model sees what it must predict: the last {shared} of the {length} steps of each input are the first {shared} "
        f"of the {steps} steps of its target.",
        remedy=f"begin the targets {shared} steps later, where the inputs end",
        evidence=(evidence("steps of the target that the input holds", shared),),
    )


@torch.no_grad()
def _is_counted(subject: Subject, place: int) -> bool:
    """Whether the loss reads the target at a place."""
    batch = first_rows(batches(subject)[0], ROWS)
    with untouched(subject.model):
        answer = subject.answer(batch)
        other = batch.target.clone()
        other.reshape(len(other), -1)[:, place] += 1
        return float(subject.loss(answer, other)) != float(subject.loss(answer, batch.target))


@torch.no_grad()
def _answers_move(subject: Subject, end: tuple[int, int], length: int) -> bool:
    """Whether the last answer whose target stands among the inputs depends on the input there."""
    shared, channel = end
    batch = first_rows(batches(subject)[0], ROWS)
    x = batch.tensors()[0]
    changed = x.clone()
    column = changed[:, length - 1] if x.ndim == 2 else changed[:, length - 1, channel]
    column.copy_(column.roll(1, 0))
    with untouched(subject.model):
        before, after = (
            members_of(subject.answer(_with(batch, 0, given)))[task(subject).member].reshape(len(x), -1)[:, shared - 1]
            for given in (x, changed)
        )
    return bool((after - before).abs().max() > ROUNDING * before.abs().max())


def _renames(column: Tensor, codes: Tensor | None) -> bool:
    """Whether a column has one value for each class, and no two classes share one."""
    # two classes have one value each by chance once in 2^14
    if codes is None or int(codes.bincount().min()) < 2 * A_FEW:
        return False
    values, own = torch.unique(column, return_inverse=True)
    classes = int(codes.max()) + 1
    return len(values) == classes == len(torch.unique(own * classes + codes))


ailment = Ailment(question="Does the model see its target?", needs={"model", "data", "loss"}, judge=judge, exact=True)
