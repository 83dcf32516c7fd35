"""Is every target one that the loss ignores, so that there is nothing to learn from?

Exact: the gradient of the loss in the outputs is zero at every place, and targets are all the value that cross-entropy leaves
out (-100), or the loss of some batches is not a number because no place of them counts.
"""

from collections.abc import Iterator

from torch import Tensor

from theodolite.core.ailment import Ailment, Finding, evidence
from theodolite.core.subject import Subject
from theodolite.evidence.batches import batches

IGNORED = -100


def judge(subject: Subject) -> Iterator[Finding]:
    targets = [b.target for b in batches(subject) if isinstance(b.target, Tensor) and not b.target.is_floating_point()]
    empty = [bool((t == IGNORED).all()) for t in targets if t.numel()]
    if not any(empty):
        return
    whole = all(empty)
    yield Finding(
        severity="critical" if whole else "note",
        where="targets",
        says=f"{'All' if whole else sum(empty)} of {len(empty)} batches have no target that counts: every label is {IGNORED}.",
        remedy="check how labels are made: in a chat the answers must keep their labels, in a masked model the masked tokens",
        evidence=(evidence("batches without a target", sum(empty)),),
    )


ailment = Ailment(question="Does the loss ignore every label?", needs={"model", "data", "loss"}, judge=judge)
