"""Does a sequence model learn to predict the token after the next?

Exact: for next-token prediction the target at each position is the input one position later. Labels shifted in the data, and
again by the loss or the model, are two positions ahead; such a model trains well and writes nonsense. Which target the loss
uses at which position is measured, so a shift inside the loss is found too.
"""

from collections.abc import Iterator

from theodolite.core.ailment import Ailment, Finding, evidence
from theodolite.core.subject import Subject
from theodolite.evidence.task import task
from theodolite.evidence.token_counts import target_shift


def judge(subject: Subject) -> Iterator[Finding]:
    shift, _ = target_shift(subject) or (0, 0.0)
    if shift < 2:
        return
    twice = " The loss shifts the labels itself, and they were shifted before." if task(subject).shift else ""
    yield Finding(
        severity="warning",
        where="targets",
        says=f"Labels are shifted too far: each target is the input {shift} positions ahead, so the model "
        f"learns to skip {shift - 1} token{'s' if shift > 2 else ''}.{twice}",
        remedy="shift once: labels = tokens if the loss or the model shifts them, otherwise targets = tokens[:, 1:]",
        suggested={"shift_labels": 1},
        evidence=(evidence("positions between input and target", shift),),
    )


ailment = Ailment(question="Are labels shifted twice?", needs={"model", "data", "loss"}, judge=judge, exact=True)
