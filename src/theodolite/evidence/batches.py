"""The samples that a subject is judged by: some of its batches, what is held out of them, and whole columns of samples."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from theodolite.core.lazy_torch import is_tensor
from theodolite.core.model_wrappers import copied_model
from theodolite.core.state import untouched
from theodolite.core.subject import Subject, once
from theodolite.evidence.drawn_outputs import is_coupled, members_of, quiet
from theodolite.evidence.thresholds import A_FEW, AT_ONCE, FEWEST, MANY, PARTS, RARELY, ROWS, SAMPLES, WORTH
from theodolite.evidence.work import PASSES, Price, counted_price, work_of
from theodolite.io.batches import Batch, Batches, together

MOST_SAMPLES, MOST_BYTES = 16_384, 1 << 26
"""What is kept of the data for all measurements together."""

A_PASS = 0.04
"""The share of the budget that a pass of all samples may take; a step takes a tenth of it, and a pass of the validation data, by
which each arm is scored, a quarter."""

WHOLE = 2.0
"""Batches are not thinned to where their samples cost less than so many times a step without any: that would buy little."""


@once("batches")
def batches(subject: Subject) -> tuple[Batch, ...]:
    """Some batches of the data, as training has them, on the model's device; batches are thinned where a step is dear."""
    return _read(subject, subject.data)


@once("asked batch")
def asked_batch(subject: Subject) -> Batch:
    """The first batch, or so many of its samples that answers to them are not too many numbers to be drawn several times."""
    whole = batches(subject)[0]
    with untouched(subject.model), torch.no_grad(), quiet():
        answer = subject.answer(first_rows(whole, A_FEW))
    numbers = sum(t[:1].numel() for t in members_of(answer))
    return first_rows(whole, max(A_FEW, AT_ONCE // max(1, numbers)))


@once("validation batches")
def validation_batches(subject: Subject) -> tuple[Batch, ...]:
    """Some batches of the validation data."""
    return _read(subject, subject.validation)


@once("price")
def price(subject: Subject) -> Price:
    """What a pass to the loss costs, counted once on the first batch; on some where each is one sample by itself."""

    def passed(batch: Batch) -> None:
        answer = subject.answer(batch)
        if subject.loss is not None:
            with suppress(Exception):  # one that refuses its targets: findings say so
                subject.loss(answer, batch.target)

    model = subject.model
    if model is None or not subject.has("data"):
        return Price(0.0, 0.0)
    batch = first_rows(subject.data.first().on(model), ROWS)
    if len(batch) > 1 or not isinstance(subject.data.source, list):
        with untouched(model):
            return counted_price(model, lambda: passed(batch), len(batch))
    whole = list(subject.data)  # steps of a script, graphs: one may be many times another, and two are twice the work
    some = [one.on(model) for one in whole[:: math.ceil(len(whole) / PARTS)]]
    with untouched(model):
        each = [counted_price(model, lambda one=one: passed(one), 1) for one in some]  # type: ignore[misc]
    return Price(0.0, sum(one.forward(1) for one in each) / len(each), update=each[0].update)


def is_thinned(subject: Subject) -> bool:
    """Whether batches were made smaller than training has them, so that steps can be afforded."""
    batches(subject)
    return bool(subject.seen.get("thinned"))


def batch_size(subject: Subject) -> int | None:
    """Samples of a batch as training has them; None where that is not known."""
    if subject.run is not None and subject.run.events.get("batch size", math.nan) > 0:
        return int(subject.run.events["batch size"])
    source = getattr(subject.data, "source", None)
    if source is None or _in_memory(source) is not None:
        return None
    few = batches(subject)
    return len(few[0]) if few and not is_thinned(subject) else None


def _read(subject: Subject, data: Any) -> tuple[Batch, ...]:
    model = subject.model
    if data is None or model is None:
        return ()
    kept: list[Batch] = []
    samples, cost = 0, price(subject)
    most = _affordable(subject, cost, A_PASS)
    with untouched(None):
        for read in _in_training_order(subject, data):
            batch = read.on(model)
            if not len(batch):
                continue
            # a few sequences with a target at each place are many answers: smaller batches, and as many times as many steps
            least = _affordable(subject, cost, WORTH * A_PASS / (PASSES * (A_FEW if has_places(batch) else 1)))
            least = max(2 * A_FEW, least, int(WHOLE * cost.start / max(cost.sample, 1e-12)))
            kept.append(batch if data is subject.validation else first_rows(batch, least))  # no step is taken on those
            subject.seen["thinned"] = subject.seen.get("thinned") or len(kept[-1]) < len(batch)
            samples += len(kept[-1])
            wanted = max(SAMPLES, _affordable(subject, cost, A_PASS / A_FEW)) if data is subject.validation else most
            enough = samples >= min(MOST_SAMPLES, wanted) and len(kept) >= A_FEW
            if len(kept) >= MANY or enough:
                break
    return tuple(kept)


def has_places(batch: Batch) -> bool:
    """Whether each sample is a sequence of tokens with a target at each place."""
    given = batch.tensors()
    tokens = bool(given) and not given[0].is_floating_point() and given[0].ndim == 2
    others = [*given[1:], batch.target]  # a recorded loss has its targets among what it is given
    return tokens and given[0].shape[1] >= PARTS and any(getattr(t, "shape", ()) == given[0].shape for t in others)


def _affordable(subject: Subject, cost: Price, share: float) -> int:
    budget = work_of(subject).budget
    room = share * budget - cost.start
    return (
        MOST_SAMPLES if cost.sample <= 0 or math.isinf(budget) else max(1, int(min(room / cost.sample, MOST_SAMPLES)))
    )


def _in_training_order(subject: Subject, data: Any) -> Iterable[Batch]:
    """Batches as a loader gives them; columns in memory are dealt out at random, as a loader that shuffles would."""
    source = data.source if isinstance(data, Batches) else data
    columns = _in_memory(source)
    size = ROWS
    if subject.run is not None and subject.run.events.get("batch size", math.nan) > 0:
        size = int(subject.run.events["batch size"])
    if columns is None:
        return data if isinstance(data, Batches) else Batches(data, subject.model)
    count = len(columns[0])
    if any(len(column) != count for column in columns):
        return Batches(source, subject.model)  # which says what is wrong
    row = sum(column[:1].numel() * column.element_size() for column in columns)
    most = max(size, min(MOST_SAMPLES, MOST_BYTES // max(1, row)))
    order = torch.randperm(count, generator=torch.Generator().manual_seed(0))[:most]
    return Batches(tuple(column[order] for column in columns), subject.model, batch_size=min(size, max(1, count)))


def _in_memory(source: Any) -> tuple[Tensor, ...] | None:
    """The columns of data that are tensors or arrays, inputs first; None of anything else."""
    if isinstance(source, Tensor | np.ndarray):
        source = (source,)
    if not isinstance(source, tuple) or not source or not all(isinstance(m, Tensor | np.ndarray) for m in source):
        return None
    found = tuple(m if is_tensor(m) else torch.as_tensor(m) for m in source)
    return found if all(m.ndim for m in found) else None


@once("split")
def training_and_held_out(subject: Subject) -> tuple[Sequence[Batch], Sequence[Batch]]:
    """The batches that trials step on, and parts of data that they do not; the same for every trial.

    Held out are the validation data, where there are any; else a quarter of the samples, spread over the data.
    """
    other = validation_parts(subject)
    if other:
        return batches(subject), other
    training, held = _split(batches(subject))
    return training, _held_parts(subject, held)


def _split(whole: Sequence[Batch]) -> tuple[Sequence[Batch], Sequence[Batch]]:
    if not all(batch.in_rows for batch in whole):
        return (whole, whole) if len(whole) < A_FEW else ([b for i, b in enumerate(whole) if i % 4], whole[::4])
    keys = [_row_keys(batch) for batch in whole]
    total, distinct = sum(map(len, keys)), len({key for part in keys for key in part})
    if distinct < FEWEST:
        return whole, whole
    if len(whole) >= 2 * A_FEW and distinct == total:  # every fourth batch: training batches stay as they are
        return [b for i, b in enumerate(whole) if i % 4], whole[::4]
    return _split_by_row(whole, keys)


def _split_by_row(whole: Sequence[Batch], keys: Sequence[Sequence[bytes]]) -> tuple[Sequence[Batch], Sequence[Batch]]:
    """A quarter of the distinct samples is held out wherever they occur: epochs, and data themselves, repeat samples."""
    order = list(dict.fromkeys(key for part in keys for key in part))
    aside = set(order[::4])
    training, held, told = [], [], set()
    for batch, part in zip(whole, keys, strict=True):
        stays = torch.tensor([key not in aside for key in part])
        new = torch.tensor([key in aside and not (key in told or told.add(key)) for key in part])  # type: ignore[func-returns-value]
        training += [batch.picked(stays)] if bool(stays.any()) else []
        held += [batch.picked(new)] if bool(new.any()) else []
    size = max(map(len, whole))
    together = joined(held)
    one = joined(training)
    cut = [one[0].picked(slice(a, a + size)) for a in range(0, len(one[0]), size)] if one else training
    return cut, together or held


@once("judged is trained")
def judged_is_trained(subject: Subject) -> bool:
    """Whether every sample that trials are judged on is one that they train on: then nothing is left to chance of a draw."""
    training, held = training_and_held_out(subject)
    if not all(b.in_rows for b in (*training, *held)):
        return False
    judged = set[bytes]()
    for batch in held:
        judged.update(_row_keys(batch))
        if len(judged) > FEWEST:
            return False
    return judged <= {k for b in training for k in _row_keys(b)}


def _row_keys(batch: Batch) -> list[bytes]:
    """What tells the samples of a batch apart: all their numbers."""
    members = [*batch.inputs, *batch.keywords.values(), batch.target]
    flat = [t.detach().cpu().flatten().contiguous() for t in members]
    flat = [t.to(torch.uint8) if t.dtype == torch.bool else t.view(torch.uint8) for t in flat]
    rows = torch.cat([t.reshape(len(batch), -1) for t in flat], 1).numpy()
    return [row.tobytes() for row in rows]


def repeat_themselves(whole: Sequence[Batch]) -> bool:
    """Whether more than one in twenty samples of some batches are copies of others, as rows of a few categories are."""
    keys = [key for batch in whole if batch.in_rows for key in _row_keys(batch)]
    return len(set(keys)) < (1 - RARELY) * len(keys)


@once("distinct batches")
def distinct_batches(subject: Subject) -> Sequence[Batch]:
    """The same batches, each sample once: epochs repeat them, and what is counted or left out must not be there again."""
    whole, seen, found = batches(subject), set[bytes](), []
    if not all(batch.in_rows for batch in whole):
        return whole
    for batch in whole:
        new = torch.tensor([not (key in seen or seen.add(key)) for key in _row_keys(batch)])  # type: ignore[func-returns-value]
        found += [batch if bool(new.all()) else batch.picked(new)] if bool(new.any()) else []
    return found


@once("samples")
def samples(subject: Subject) -> Sample | None:
    """All samples that were read, each once, as whole columns; None where their tensors do not fit together.

    Without targets where the loss does not read them: what stands in their place means nothing.
    """
    found = sample_of(distinct_batches(subject))
    return found if found is None or reads_targets(subject) else Sample(found.inputs, None)


@once("reads targets")
def reads_targets(subject: Subject) -> bool:
    """Whether the loss depends on the targets, and they say something.

    A loss made for learning without labels is given something in their place, and the residual of an equation is asked to be 0.
    """
    model, loss = subject.model, subject.loss
    batch = next(iter(batches(subject)), None)
    if model is None or loss is None or batch is None or not isinstance(batch.target, Tensor):
        return True
    target = batch.target
    others = [~target if target.dtype == torch.bool else target + 1, target.flatten().flip(0).reshape(target.shape)]
    with untouched(model), torch.no_grad(), quiet():
        answer = subject.answer(batch)
        try:
            values = [_drawn_alike(loss, answer, other) for other in (target, *others)]
        except Exception:  # it refuses other targets, so it reads them
            return True
        if len(set(values)) == 1 and math.isfinite(values[0]):
            return False
        return not target.is_floating_point() or bool(target.any()) or not _is_residual(subject, batch)


def _is_residual(subject: Subject, batch: Batch) -> bool:
    """Whether the model's answer is not up to its weights alone: with weights of 0 it is neither 0 nor 1/2, a sigmoid's."""
    bare = copied_model(subject.model)
    for parameter in bare.parameters():
        parameter.zero_()
    answers = members_of(subject.answer(batch, bare))
    return any(bool((answer.isfinite() & (answer != 0) & (answer != 0.5)).any()) for answer in answers)


@once("coupled")
def samples_coupled(subject: Subject) -> bool:
    """Whether what the loss asks of one sample depends on the others of its batch, as contrastive losses do."""
    if subject.model is None or subject.loss is None or not batches(subject):
        return False
    batch = first_rows(asked_batch(subject), ROWS)
    with untouched(subject.model), torch.no_grad(), quiet():
        answer = subject.answer(batch)
        half = subject.answer(first_rows(batch, len(batch) // 2)) if len(batch) > 1 else answer
    pairs = any(
        t.ndim == 2 and t.shape[1] - part.shape[1] == len(t) - len(part) > 0  # a number for each pair of samples
        for t, part in zip(members_of(answer), members_of(half), strict=False)
        if part.ndim == 2
    )
    return pairs or (isinstance(batch.target, Tensor) and is_coupled(subject.loss, answer, batch.target))


def _drawn_alike(loss: Any, answer: Any, target: Tensor) -> float:
    torch.manual_seed(0)  # of a loss that draws
    return float(loss(answer, target))


@once("validation parts")
def validation_parts(subject: Subject) -> Sequence[Batch]:
    """The validation data, cut into parts where its batches are few."""
    found = _held_parts(subject, validation_batches(subject))
    often = {} if not found or samples_coupled(subject) else times_drawn(subject, found)
    if not often:
        return found
    rows = [[i for i, label in enumerate(_labels(b)) for _ in range(often.get(label, 1))] for b in found]
    return [b.picked(torch.tensor(r, device=b.target.device)) for b, r in zip(found, rows, strict=True)]


def times_drawn(subject: Subject, held: Sequence[Batch]) -> dict[float, int]:
    """How often held-out samples of each class count where training repeats those of some, as it does with rare ones.

    Such a training is not meant to learn how often each class occurs elsewhere: what is held out counts as training is drawn.
    """
    every = (batches(subject), distinct_batches(subject), held)
    drawn, own, there = (Counter(label for batch in whole for label in _labels(batch)) for whole in every)
    if not own or min(own.values()) < 2 * A_FEW or own.keys() != there.keys():
        return {}
    times = [drawn[label] / count for label, count in own.items()]
    if max(times) < 2 * min(times):  # a pass that is not whole repeats no class twice as often as another
        return {}
    shares = {label: drawn[label] / count for label, count in there.items()}
    return {label: round(share / min(shares.values())) for label, share in shares.items()}


def _labels(batch: Batch) -> list[float]:
    """The target of each sample, where it is one number."""
    fits = batch.in_rows and batch.target.numel() == len(batch)
    return batch.target.reshape(-1).tolist() if fits else []


def _held_parts(subject: Subject, held: Sequence[Batch]) -> Sequence[Batch]:
    """Held-out data in parts; in the size of training batches where the loss of a sample depends on the others of its batch."""
    if held and samples_coupled(subject) and all(batch.in_rows for batch in held):
        size = len(batches(subject)[0])
        return [b.picked(slice(a, a + size)) for b in held for a in range(0, max(1, len(b) - size + 1), size)]
    if len(held) > 2 * PARTS:  # small batches: a pass costs its calls, whatever it holds
        together = joined(held)
        on_cpu = bool(together) and together[0].target.device.type == "cpu"
        size = max(map(len, batches(subject)))
        count = PARTS if on_cpu else max(PARTS, math.ceil(sum(map(len, held)) / size))
        return _parts_of(together[0], count) if together and count < len(held) else held
    return parts(held, PARTS)


def parts(whole: Sequence[Batch], count: int) -> Sequence[Batch]:
    """Batches cut so that there are about so many."""
    if not whole or len(whole) >= count:
        return whole
    each = math.ceil(count / len(whole))
    return [part for batch in whole for part in _parts_of(batch, each)]


def _parts_of(batch: Batch, count: int) -> list[Batch]:
    n = len(batch)
    count = min(count, n // A_FEW if n >= PARTS * A_FEW else n)
    if count < 2 or not batch.in_rows:
        return [batch]
    edges = [round(i * n / count) for i in range(count + 1)]
    return [batch.picked(slice(a, b)) for a, b in itertools.pairwise(edges)]


def slopes_of(subject: Subject, tensors: Sequence[Tensor], model: nn.Module | None = None) -> list[Tensor | None]:
    """The gradient of the loss of some samples in tensors that need one; None of those that it does not depend on."""
    one = subject.model if model is None else model
    assert one is not None
    with untouched(one), torch.enable_grad(), quiet():
        value = subject.loss_on(first_rows(batches(subject)[0], ROWS), one)
        if not value.requires_grad or not tensors:
            return [None] * len(tensors)
        return list(torch.autograd.grad(value, list(tensors), allow_unused=True))


def first_rows(batch: Batch, rows: int) -> Batch:
    """The first samples of a batch, where all its tensors have one row a sample; else all of it."""
    return batch if len(batch) <= rows or not batch.in_rows else batch.picked(slice(0, rows))


def joined(whole: Sequence[Batch], fold: int | None = None) -> list[Batch]:
    """Batches joined by so many, or all of them; none where their tensors do not fit together."""
    fold = fold or len(whole)
    found = [together(whole[start : start + fold]) for start in range(0, len(whole) - fold + 1, fold)]
    fit = [batch for batch in found if batch is not None]
    return fit if len(fit) == len(found) else []


def shuffled(whole: Sequence[Batch], count: int) -> list[Batch]:
    """All samples of some batches, dealt out anew to so many; none where their tensors do not fit together."""
    one = joined(whole)
    if not one:
        return []
    order = torch.randperm(len(one[0]), generator=torch.Generator().manual_seed(0)).to(one[0].target.device)
    return _parts_of(one[0].picked(order), count)


@dataclass(frozen=True, eq=False)
class Sample:
    """``inputs`` are all tensors that the model is given, each (n, ...); ``target`` is (n, ...) or None."""

    inputs: tuple[Tensor, ...]
    target: Tensor | None

    def __len__(self) -> int:
        return len(self.inputs[0])

    @property
    def numbers(self) -> Tensor | None:
        """The one floating input, where there is just one that is more than a mask."""
        floating = [x for x in self.inputs if x.is_floating_point() and x.ndim > 1]
        return floating[0] if len(floating) == 1 else None


def sample_of(whole: Sequence[Batch]) -> Sample | None:
    """Batches joined where their tensors fit together; those that do not fit to the first are left out."""
    if not whole or not whole[0].tensors():
        return None
    first = whole[0]
    shapes = [t.shape[1:] for t in first.tensors()]
    if any(t.ndim < 1 or len(t) != len(first) for t in first.tensors()):
        return None
    same = [b for b in whole if [t.shape[1:] for t in b.tensors()] == shapes]
    inputs = tuple(torch.cat([b.tensors()[i].detach() for b in same]) for i in range(len(shapes)))
    targets = [b.target for b in same]
    like = targets[0]
    fits = isinstance(like, Tensor) and like.ndim > 0 and len(like) == len(first)
    fits = fits and all(isinstance(t, Tensor) and t.shape[1:] == like.shape[1:] for t in targets)
    return Sample(inputs, torch.cat(targets) if fits else None)


def whole_columns(data: Any) -> tuple[Tensor, ...] | None:
    """All of the data, where it lies in memory as tensors; None where it must be read sample by sample."""
    data = data.source if isinstance(data, Batches) else data
    data = getattr(data, "dataset", data)
    members = getattr(data, "tensors", data)
    return _in_memory(members) if isinstance(members, tuple) else None


def all_targets(subject: Subject) -> Tensor | None:
    """The targets of all samples where they are at hand, else of those that were read; None where the loss reads none."""
    if not reads_targets(subject):
        return None
    whole = whole_columns(subject.data)
    if whole is not None and len(whole) > 1:
        return whole[-1]
    source = subject.data.source if isinstance(subject.data, Batches) else subject.data
    kept = getattr(getattr(source, "dataset", None), "targets", None)
    if isinstance(kept, Tensor | list) and len(kept) and not isinstance(kept[0], str):
        return torch.as_tensor(kept)
    sample = samples(subject)
    return None if sample is None else sample.target
