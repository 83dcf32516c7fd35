"""What sequences of tokens tell by counting alone: the losses of answers that know no, or one, token before the one asked for."""

from dataclasses import dataclass

import torch
from torch import Tensor

from theodolite.core.subject import Subject, once
from theodolite.evidence.batches import Sample, samples
from theodolite.evidence.task import task
from theodolite.evidence.thresholds import A_FEW, FEWEST, MANY, NEARLY_ALL

PRIOR = 8.0
"""Counts by which a pair leans on how often its second token occurs at all."""


@dataclass(frozen=True)
class TokenFloors:
    """Losses on held-out halves: ``unigram`` of single targets, ``bigram`` of targets given the input at their place.

    ``own_bigram`` is that of the inputs themselves, each given the one before it, beside ``own_unigram``. ``masked`` is the share
    of the commonest input among places that count: in a masked model it is the mask, and says nothing.
    """

    unigram: float
    bigram: float
    own_unigram: float
    own_bigram: float
    masked: float
    places: int


@once("token floors")
def token_floors(subject: Subject) -> TokenFloors | None:
    """The floors of the subject's tokens; None where inputs are no tokens with a target at each place."""
    found = sequence_of(subject)
    if found is None:
        return None
    x, y, counts = (t.cpu() for t in found)
    if int(counts.sum()) < MANY or int(x.min()) < 0:
        return None
    pairs = x[counts], y[counts]
    own = x[:, :-1].reshape(-1), x[:, 1:].reshape(-1)
    (unigram, bigram), (own_unigram, own_bigram) = (
        (float(losses.mean()) for losses in counted_losses(*one, len(one[0]) // 2)) for one in (pairs, own)
    )
    return TokenFloors(unigram, bigram, own_unigram, own_bigram, _share_of_commonest(pairs[0]), int(counts.sum()))


def sequence_of(subject: Subject, which: int = 0) -> tuple[Tensor, Tensor, Tensor] | None:
    """Tokens and targets, a row a sequence, and which places count; None where inputs are no tokens.

    ``which`` of the inputs is asked: a decoder is given what was said so far beside what it answers to.
    """
    sample: Sample | None = samples(subject)
    meant = task(subject)
    if sample is None or sample.target is None or meant.kind != "classes" or meant.one_hot:
        return None
    x, y = sample.inputs[which], sample.target
    if x.is_floating_point() or x.ndim != 2 or y.shape != x.shape or y.is_floating_point():
        return None
    x, y = x[:, : x.shape[1] - meant.shift], y[:, meant.shift :]
    return x, y, meant.counts(y) & (y >= 0)


def target_shift(subject: Subject, which: int = 0) -> tuple[int, float] | None:
    """How many places further on targets are inputs, and at which share of those that count; None where they are something else.

    Where the task is not known, nor is known which target the loss asks of which place: it may shift them itself.
    """
    sequences, found = sequence_of(subject, which), []
    if sequences is None:
        return None
    x, target, counts = sequences
    for shift in range(min(A_FEW, x.shape[1])):
        same, count = x[:, shift:] == target[:, : x.shape[1] - shift], counts[:, : x.shape[1] - shift]
        if int(count.sum()) >= FEWEST:
            found.append((shift, float(same[count].double().mean())))
    best = max(found, key=lambda one: one[1], default=None)
    return best if best is not None and best[1] >= NEARLY_ALL else None


def _share_of_commonest(given: Tensor) -> float:
    return float(torch.bincount(given).max() / len(given))


def counted_losses(given: Tensor, told: Tensor, half: int) -> tuple[Tensor, Tensor]:
    """Losses of counts of the places before ``half``, at those after it: of single tokens, and of pairs that lean on them."""
    size = int(max(given.max(), told.max())) + 1
    single = torch.bincount(told[:half], minlength=size).double() + 1
    single = single / single.sum()
    pairs, counts = torch.unique(given[:half] * size + told[:half], return_counts=True)
    asked = given[half:] * size + told[half:]
    at = torch.searchsorted(pairs, asked).clamp(max=max(0, len(pairs) - 1))
    seen = torch.where(pairs[at] == asked, counts[at], 0).double()
    before = torch.bincount(given[:half], minlength=size)[given[half:]]
    leaning = (seen + single[told[half:]] * PRIOR) / (before + PRIOR)
    return -single[told[half:]].log(), -leaning.log()
