"""Which tokens does a sequence model predict: those that come late in the context, the frequent ones, or all of them?

The cross-entropy by position and by frequency of the token, compared with two floors that are counted on other rows of the
same data: the loss of guessing by frequency alone (unigram), and that of knowing one token (bigram). A model below the first
uses its input; below the second, more than the current token. Counting itself costs (k-1)/2n for k tokens and n positions,
which is taken off the first floor. By frequency there is no floor for each part alone: a flat prediction trades frequent
tokens for rare ones.
"""

import itertools
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from theodolite.core.instrument import Instrument
from theodolite.core.reading import Band, Estimate, Reading, Series
from theodolite.core.state import untouched
from theodolite.core.subject import Subject
from theodolite.evidence.batches import distinct_batches
from theodolite.evidence.drawn_outputs import members_of, quiet
from theodolite.evidence.task import task
from theodolite.evidence.thresholds import MANY
from theodolite.evidence.token_counts import counted_losses, sequence_of
from theodolite.instruments._common.data_visit import afforded

MOST = 256
"""Rows whose losses are looked at: each is a loss at many places."""
SHARES = (0.0, 0.5, 0.75, 0.9, 1.0)
"""Tokens from frequent to rare are cut where they make up these shares of all places."""


def read(subject: Subject) -> Iterator[Reading]:
    """The loss by position, then by frequency."""
    found = sequence_of(subject)
    if found is None or int(found[2].sum()) < MANY or int(found[0].min()) < 0:
        return
    x, y, counts = (t.cpu() for t in found)
    rows = min(len(x) // 2, MOST, afforded(subject, "forward", passes=1.5, fewest=8))
    losses = None if rows < 2 else _losses(subject, rows, y.shape[1])
    if losses is None:
        return
    counted, seen = counts[:-rows], counts[-rows:]
    floors = counted_losses(x[counts], y[counts], int(counted.sum()))
    unigram, bigram = (torch.zeros(seen.shape, dtype=torch.float64).masked_scatter_(seen, floor) for floor in floors)
    seen_before = torch.bincount(y[:-rows][counted], minlength=int(y.max()) + 1)
    cost = (int((seen_before > 0).sum()) - 1) / (2 * int(counted.sum()))
    parts = [*_by_position(seen), *_by_frequency(seen_before, y[-rows:], seen)]
    yield from _readings(parts, losses, (unigram - cost, bigram))


def _losses(subject: Subject, rows: int, length: int) -> Tensor | None:
    """The cross-entropy at each place of the last rows; None where answers and targets do not fit."""
    meant, found, left = task(subject), list[Tensor](), rows
    first = distinct_batches(subject)[0]
    like = [t.shape[1:] for t in first.tensors()]
    with untouched(subject.model), torch.no_grad(), quiet():
        for batch in reversed([b for b in distinct_batches(subject) if [t.shape[1:] for t in b.tensors()] == like]):
            logits = members_of(subject.answer(batch))[meant.member].movedim(meant.axis, -1)
            wanted = batch.target[:, meant.shift :].long()
            logits = logits[:, : logits.shape[1] - meant.shift]
            if logits.ndim != 3 or logits.shape[:2] != wanted.shape or wanted.shape[1] != length:
                return None
            kept = wanted.clamp(0, logits.shape[-1] - 1)
            found.insert(0, F.cross_entropy(logits.double().flatten(0, 1), kept.flatten(), reduction="none"))
            found[0] = found[0].reshape(wanted.shape).cpu()
            left -= len(wanted)
            if left <= 0:
                break
    return torch.cat(found)[-rows:] if left <= 0 else None


def _by_position(seen: Tensor) -> Iterator[tuple[str, str, Tensor]]:
    """Places 0, 1, 2 to 3, 4 to 7 and so on."""
    first, length = 0, seen.shape[1]
    while first < length:
        last = min(length, max(1, 2 * first)) - 1
        within = torch.zeros_like(seen)
        within[:, first : last + 1] = True
        yield (
            "loss by position",
            f"position {first}" if first == last else f"positions {first} to {last}",
            within & seen,
        )
        first = last + 1


def _by_frequency(count: Tensor, y: Tensor, seen: Tensor) -> Iterator[tuple[str, str, Tensor]]:
    """Tokens in the order of how often they were counted, cut at shares of all places."""
    order = count.argsort(descending=True, stable=True)
    before = (count[order].cumsum(0) - count[order]) / count.sum()  # the share of all tokens that are more frequent
    share = torch.empty_like(before).scatter_(0, order, before)[y.clamp(min=0)]
    for low, high in itertools.pairwise(SHARES):
        own = int(((before >= low) & (before < high) & (count[order] > 0)).sum())
        if own:
            named = f"{own} tokens, {low:.0%} to {high:.0%} of all positions"
            yield "loss by frequency of the token", named, (share >= low) & (share < high) & seen


def _readings(parts: list[tuple[str, str, Tensor]], losses: Tensor, floors: tuple[Tensor, Tensor]) -> Iterator[Reading]:
    told: list[tuple[str, str, Estimate, float, float]] = []
    for quantity, where, places in parts:
        rows = places.any(1)
        if int(rows.sum()) < 2:
            continue
        mean = float(losses[places].mean())
        off = ((losses - mean) * places)[rows].sum(1)  # rows differ in how many of the places they have
        error = float((off.square().sum() / (len(off) - 1) * len(off)).sqrt()) / int(places.sum())
        unigram, bigram = (float(floor[places].mean()) for floor in floors)
        told.append((quantity, where, Estimate(mean, error), unigram, bigram))
    for quantity, where, found, unigram, bigram in told:
        own = [one for one in told if one[0] == quantity]
        by_position = quantity == "loss by position"
        yield Reading(
            quantity=quantity,
            where=where,
            measured=found.value,
            stderr=found.stderr,
            expected=Band(low=max(0.0, unigram)) if by_position else None,
            against="chance",
            meaning=f"Guessing by frequency alone gives {unigram:.3g}, knowing the current token {bigram:.3g}. "
            + (_meaning(found.value, unigram, bigram) if by_position else "Tokens from frequent to rare."),
            series=Series(
                x=tuple(one[1] for one in own),
                measured=tuple(one[2].value for one in own),
                stderr=tuple(one[2].stderr for one in own),
                x_label=quantity.removeprefix("loss by "),
                y_label="loss",
            ),
        )


def _meaning(loss: float, unigram: float, bigram: float) -> str:
    if loss >= unigram:
        return "Here the model knows no more than how frequent tokens are."
    if loss >= bigram:
        return "The model uses its input here, but less than a table of pairs does."
    return "The model uses more than the current token."


instrument = Instrument(
    question="Which tokens does the model predict?",
    read=read,
    needs={"model", "data", "loss"},
    cost="forward",
    sees={"forward": 16},
    laws=("counted-shares",),
)
