"""Does a sequence model learn to predict the token after the next?

Exact: for next-token prediction the target at each place is the input one place further on. Labels shifted in the data and
again by the loss or the model are two places on; such a model trains well and writes nonsense. Which target the loss uses at
which place is measured, so a shift inside the loss is seen too.
"""

from collections.abc import Iterator

from theodolite.core.ailment import Ailment, Finding, evidence
from theodolite.core.subject import Subject
from theodolite.evidence.sequences import target_shift
from theodolite.evidence.task import task


def judge(subject: Subject) -> Iterator[Finding]:
    found = target_shift(subject)
    if found is None or found.shift < 2:
        return
    twice = " The loss shifts the labels itself, and they were shifted before." if task(subject).shift else ""
    yield Finding(
        severity="warning",
        where="targets",
        says=f"Labels are shifted too far: each target is the input {found.shift} positions ahead, so the model "
        f"learns to skip {found.shift - 1} token{'s' if found.shift > 2 else ''}.{twice}",
        remedy="shift once: labels = tokens where the loss or the model shifts them, else targets = tokens[:, 1:]",
        suggested={"shift_labels": 1},
        evidence=(evidence("positions between input and target", found.shift),),
    )


ailment = Ailment(question="Are labels shifted twice?", needs={"model", "data", "loss"}, judge=judge)
