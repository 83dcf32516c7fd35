"""Does training fail because it starts at its full learning rate without a warm-up?

Early in training a moving average of squared gradients is based on little: Adam's first updates are signs of single gradients,
whatever their size, and with normalization after the residual (post-norm) gradients near the output are large at the start.
Neither is taken for granted: the same training runs on a copy with its learning rate rising linearly over its first tenth, at
least fifty steps where that leaves half of the trial. A missing warm-up is reported if this recovers what the run has lost; if
a smaller learning rate is needed throughout, the trial fails in its other part.
"""

from collections.abc import Iterator
from functools import partial

from theodolite.core.ailment import Ailment, Finding
from theodolite.core.subject import Subject
from theodolite.evidence.experiment import longest_trial
from theodolite.evidence.interventions import Intervention, Outcome, finding_of
from theodolite.evidence.start import largest_lr, planned_steps
from theodolite.evidence.thresholds import A_FEW, A_RUN, CRITICAL, DEPTH, WORTH
from theodolite.evidence.trial import Change, warming_up


def interventions(subject: Subject) -> Iterator[Intervention]:
    """The same training with a step that rises linearly at first."""
    if subject.model is None or not largest_lr(subject) or _warms_up(subject):
        return
    if sum(p.ndim > 1 for p in subject.model.parameters()) < DEPTH:
        return
    yield Intervention(Change("warm-up", prepare=partial(warming_up, _steps(longest_trial(subject)))), _found, rank=38)


def _steps(whole: int) -> int:
    """Of so many steps a tenth; in fewer than fifty nothing has become calmer, but half of a short training is left as it was."""
    return max(A_FEW, int(WORTH * whole), min(A_RUN, whole // 2))


def _warms_up(subject: Subject) -> bool:
    """Whether the first look saw a step well below the largest."""
    seen = [] if subject.run is None else subject.run.lrs
    return bool(seen) and seen[0] < CRITICAL * max(seen)


def _found(outcome: Outcome) -> Finding:
    steps = _steps(planned_steps(outcome.subject))
    return finding_of(
        outcome,
        f"A warm-up is missing: training starts with its full learning rate of {largest_lr(outcome.subject):g} and does not "
        "recover from its first steps.",
        f"warm up: torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, (step + 1) / {steps})), stepped after each "
        "optimizer.step()",
        {"warm_up_steps": steps},
    )


ailment = Ailment(
    question="Is a warm-up missing?", needs={"model", "data", "loss", "optimizer"}, interventions=interventions
)
