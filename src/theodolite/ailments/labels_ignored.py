"""Does the loss ignore every target, so that there is nothing to learn?

Exact: all targets of a batch are one whole number, -100 or another that the loss ignores, so the gradient of the loss with
respect to the outputs is zero or NaN. The same holds for targets with a mask that is zero everywhere.
"""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from theodolite.core.ailment import Ailment, Finding, evidence
from theodolite.core.state import untouched
from theodolite.core.subject import Subject
from theodolite.evidence.batches import batches, first_rows
from theodolite.evidence.drawn_outputs import drawn_outputs, quiet, rebuilt
from theodolite.evidence.thresholds import ROWS
from theodolite.io.batches import Batch

IGNORED = nn.CrossEntropyLoss().ignore_index
"""The target that cross-entropy leaves out."""


def judge(subject: Subject) -> Iterator[Finding]:
    empty = [none_counts(subject, batch) for batch in batches(subject)]
    if not any(empty):
        return
    whole = all(empty)
    target = batches(subject)[empty.index(True)].target
    seen = (
        f"all labels are {int(target.flatten()[0])}"
        if isinstance(target, Tensor)
        else "a mask, or weights, exclude them all"
    )
    yield Finding(
        severity="critical" if whole else "note",
        where="targets",
        says=f"The loss ignores every label in {'all' if whole else f'{sum(empty)} of'} {len(empty)} batches: {seen}.",
        remedy="check how the labels are made: chat data must keep the labels of the replies, a masked model those of the "
        "masked tokens",
        evidence=(evidence("batches without a target", sum(empty)),),
    )


def none_counts(subject: Subject, batch: Batch) -> bool:
    """Whether the loss ignores all targets of a batch: one whole number, or several parts, one of which leaves out the others."""
    target = batch.target
    if isinstance(target, Mapping | tuple):
        return not _pulls(subject, batch)
    if not isinstance(target, Tensor) or target.is_floating_point() or not target.numel():
        return False
    value = int(target.flatten()[0])
    if not bool((target == value).all()):
        return False
    return value == IGNORED or (target.numel() > 1 and not _pulls(subject, first_rows(batch, ROWS)))


def _pulls(subject: Subject, batch: Batch) -> bool:
    """Whether the loss of these targets has a gradient in outputs that are drawn at random."""
    if subject.model is None or subject.loss is None:
        return True
    try:
        with untouched(subject.model), torch.no_grad(), quiet():
            answer = subject.answer(batch)
        free = [z.requires_grad_() for z in drawn_outputs(answer, batch.target)[0]]
        with untouched(None), torch.enable_grad(), quiet():
            slopes = torch.autograd.grad(
                subject.loss(rebuilt(answer, free), batch.target), free, materialize_grads=True
            )
    except Exception:  # not what the loss takes: nothing is told
        return True
    return any(bool(slope.nan_to_num().any()) for slope in slopes)


ailment = Ailment(
    question="Does the loss ignore every label?", needs={"model", "data", "loss"}, judge=judge, exact=True
)
