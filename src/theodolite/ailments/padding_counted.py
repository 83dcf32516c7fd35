"""Does the loss count padding?

Exact: positions that count hold padding (an input that fills the ends or the beginnings of sequences and occurs nowhere else)
and all have one target; or targets are tokens and most of them are one that never occurs among the inputs, as in a masked
model whose labels are 0 where nothing is masked. The network learns to predict padding. Tags of words are not tokens: most of
them may be the same.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from theodolite.core.ailment import Ailment, Finding, evidence
from theodolite.core.subject import Subject
from theodolite.evidence.batches import samples
from theodolite.evidence.task import task
from theodolite.evidence.thresholds import A_FEW, CRITICAL, FEWEST, NEARLY_ALL, PART, RARELY, WELL


def judge(subject: Subject) -> Iterator[Finding]:
    meant, sample = task(subject), samples(subject)
    if meant.kind != "classes" or meant.one_hot or sample is None or sample.target is None:
        return
    y = sample.target
    counts = meant.counts(y)
    # a mask's padding never counts
    tokens = [x for x in sample.inputs if not x.is_floating_point() and int(x.max()) > 1]
    beside = [x for x in tokens if x.shape == y.shape] or [part for x in tokens for part in _said(x, y, counts)]
    if y.ndim != 2 or not beside:
        return
    x = beside[0]
    if int(counts.sum()) < FEWEST:
        return
    padded = counts & (_padding(x) | _padding(x.flip(1)).flip(1))
    share = float(padded.sum() / counts.sum())
    alike = 2 * int(y[counts].max()) > int(x.max())  # tags are fewer
    common = int(y[padded].mode().values) if bool(padded.any()) else 0
    if share < PART or float((y[padded] == common).double().mean()) < WELL:
        values, numbers = torch.unique(y[counts], return_counts=True)
        common, share = int(values[numbers.argmax()]), float(numbers.max() / numbers.sum())
        others = values[values != common]
        alike = len(others) > 0 and 2 * int(others.max()) > int(x.max())
        if share < CRITICAL or not alike or bool((x == common).any()):
            return
        padded = counts & (y == common)
    says = f"have the target {common}, which is padding"
    remedy = f"ignore_index={common} in the loss, or targets of -100 at those positions"
    alone = alike or not bool((counts & ~padded & (y == common)).any())
    if not alone:  # such as the first of some tags: to ignore it would take that tag away
        says = f"hold padding, with the target {common}, which other positions have too"
        remedy = f"targets of -100 where the input is {int(x[padded].mode().values)}; the loss ignores those"
    yield Finding(
        severity="critical" if share > CRITICAL else "warning",
        where="targets",
        says=f"Padding counts in the loss: {share:.0%} of the positions {says}. The network learns to predict padding.",
        remedy=remedy,
        suggested={"ignore_index": common if alone else -100},
        evidence=(evidence("share of counted positions that are padding", share),),
    )


def _said(x: Tensor, y: Tensor, counts: Tensor) -> Iterator[Tensor]:
    """What a decoder is told to have said, among the columns of its input: the target one place later."""
    if x.ndim != 2 or y.ndim != 2 or y.shape[1] < A_FEW:
        return
    for first in range(x.shape[1] - y.shape[1] + 1):
        part = x[:, first : first + y.shape[1]]
        same = (part[:, 1:] == y[:, :-1])[counts[:, :-1]]
        if float(same.double().mean()) > NEARLY_ALL:  # the end of the longest may be cut off
            yield part


def _padding(x: Tensor) -> Tensor:
    """Places that hold what fills the ends of sequences, in runs, and nothing else; none where there is no such input."""
    inside = x == x[:, -1].mode().values
    ends = inside.flip(1).cumprod(1).flip(1).bool()  # runs that reach the end of the sequence
    alone = not bool((inside & ~ends).any()) and float((ends.sum(1) > 1).double().mean()) > RARELY
    return ends if alone else torch.zeros_like(ends)


ailment = Ailment(question="Does padding count in the loss?", needs={"model", "data", "loss"}, judge=judge)
