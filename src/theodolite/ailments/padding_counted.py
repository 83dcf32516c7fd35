"""Does the loss count padding?

Exact: one target value makes up most of the places that count, it never occurs among the inputs (or only as padding, at the
ends of sequences), and leaving it out changes the loss. This happens in a masked model whose labels are 0 where nothing is
masked, and in a padded batch whose padding is labeled with the padding token: the network learns to predict padding.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from theodolite.core.ailment import Ailment, Finding, evidence
from theodolite.core.subject import Subject
from theodolite.evidence.batches import samples
from theodolite.evidence.task import task

MOST = 0.4
"""The share of the places that count from which padding outweighs what is to be learned."""
FEWEST = 64


def judge(subject: Subject) -> Iterator[Finding]:
    meant, sample = task(subject), samples(subject)
    if meant.kind != "classes" or meant.one_hot or sample is None or sample.target is None:
        return
    x, y = sample.inputs[0], sample.target
    if x.is_floating_point() or y.ndim != 2 or y.shape != x.shape:
        return
    counts = torch.ones_like(y, dtype=torch.bool)
    for value in meant.ignored:
        counts &= y != value
    if int(counts.sum()) < FEWEST:
        return
    values, numbers = torch.unique(y[counts], return_counts=True)
    common = int(values[numbers.argmax()])
    share = float(numbers.max() / numbers.sum())
    if share < MOST or not _is_padding(x, y, common):
        return
    yield Finding(
        severity="critical" if share > 0.5 else "warning",
        where="targets",
        says=f"Padding counts: {share:.0%} of the places in the loss have the target {common}, which is padding. The "
        "network learns to predict padding.",
        remedy=f"ignore_index={common} in the loss, or targets of -100 at those places",
        suggested={"ignore_index": common},
        evidence=(evidence("share of counted places that are padding", share),),
    )


def _is_padding(x: Tensor, y: Tensor, value: int) -> bool:
    """Whether a target value is none of the inputs, or one that fills the ends of sequences and nothing else."""
    at = y == value
    if not bool((x == value).any()):
        return True
    inside = x == value
    ends = inside.flip(1).cumprod(1).flip(1).bool()  # runs that reach the end of the sequence
    return bool((inside & ~ends).double().mean() < 0.001) and bool(inside[at].double().mean() > 0.9)


ailment = Ailment(question="Does padding count in the loss?", needs={"model", "data", "loss"}, judge=judge)
