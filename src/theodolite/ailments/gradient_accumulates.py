"""Is the gradient not cleared between steps, so that each step repeats all earlier ones?

Exact, from a watched run: a new gradient was added to a parameter whose gradient was still the one that the last step had used,
unchanged and not zero. Gradient accumulation over several batches before one step never does this. Without a watched run
nothing is reported.
"""

from collections.abc import Iterator

from theodolite.core.ailment import Ailment, Finding, evidence
from theodolite.core.run import Run
from theodolite.core.subject import Subject
from theodolite.evidence.thresholds import A_FEW, RARELY


def judge(subject: Subject) -> Iterator[Finding]:
    yield from while_training(subject.run) if subject.run is not None else ()


def while_training(run: Run) -> Iterator[Finding]:
    kept, steps = run.events.get("gradient kept", 0.0), run.events.get("optimizer steps", 0.0)
    if kept < A_FEW or kept < RARELY * steps:
        return
    yield Finding(
        severity="critical",
        says=f"The gradient was not cleared before {kept:.0f} of {steps:.0f} steps: each step adds the gradients of earlier "
        "batches again.",
        remedy="optimizer.zero_grad() before loss.backward()",
        suggested={"zero_grad": True},
        evidence=(
            evidence("steps before which the gradient was kept", kept),
            evidence("steps of the optimizer", steps),
        ),
    )


ailment = Ailment(
    question="Is the gradient not cleared between steps?",
    needs={"run"},
    judge=judge,
    while_training=while_training,
    exact=True,
)
