"""Does the loss ignore every target, so that there is nothing to learn?

Exact: the gradient of the loss with respect to the outputs is zero everywhere, and all targets have the value that
cross-entropy ignores (-100), or the loss of some batches is NaN because no target in them counts.
"""

from collections.abc import Iterator

from torch import Tensor, nn

from theodolite.core.ailment import Ailment, Finding, evidence
from theodolite.core.subject import Subject
from theodolite.evidence.batches import batches

IGNORED = nn.CrossEntropyLoss().ignore_index
"""The target that cross-entropy leaves out."""


def judge(subject: Subject) -> Iterator[Finding]:
    targets = [b.target for b in batches(subject) if isinstance(b.target, Tensor) and not b.target.is_floating_point()]
    empty = [bool((t == IGNORED).all()) for t in targets if t.numel()]
    if not any(empty):
        return
    whole = all(empty)
    yield Finding(
        severity="critical" if whole else "note",
        where="targets",
        says=f"No label counts in {'any' if whole else sum(empty)} of {len(empty)} batches: all are {IGNORED}, "
        "which the loss ignores.",
        remedy="check how the labels are made: in chat data the answers must keep theirs, in a masked model the masked tokens",
        evidence=(evidence("batches without a target", sum(empty)),),
    )


ailment = Ailment(
    question="Does the loss ignore every label?", needs={"model", "data", "loss"}, judge=judge, exact=True
)
