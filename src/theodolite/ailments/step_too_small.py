r"""Is the learning rate so small that training gets nowhere in the steps it has?

Far below the stability limit the loss falls by about $\mathrm{lr}\,|\nabla L|^2$ per step. The same training runs on copies
with larger learning rates, from the same start: the learning rate is too small if a larger one, in no more steps than the run
made, recovers what the run has lost. The largest learning rate of a run counts, so schedules that warm up or decay are not
reported. Before a run, all planned steps (20,000 if none are given) at the measured rate of progress must fall short of what
the larger learning rate reaches in a trial.
"""

from collections.abc import Iterator
from dataclasses import replace

from theodolite.core.ailment import Ailment, Finding
from theodolite.core.subject import Subject
from theodolite.evidence.experiment import has_fitted
from theodolite.evidence.interventions import Intervention, Outcome, finding_of, step_ladder
from theodolite.evidence.start import is_warming_up, largest_lr
from theodolite.evidence.thresholds import CRITICAL, LADDER, PART, WORTH
from theodolite.evidence.trial import Change, Trial, loss_before


def interventions(subject: Subject) -> Iterator[Intervention]:
    """Larger steps, each tried only where the one before it helped."""
    if largest_lr(subject) and not is_warming_up(subject) and not has_fitted(subject):
        yield from step_ladder(LADDER, _found, rank=42)


def _found(outcome: Outcome) -> Finding:
    trial = _refined(outcome)
    outcome = replace(outcome, trial=trial)
    was = largest_lr(outcome.subject)
    lr = float(f"{was * trial.change.lr:.2g}")
    says = f"The learning rate of {was:g} is too small: a larger one gets further in as many steps."
    found = finding_of(outcome, says, f"lr={lr:g}", {"lr": lr})
    gets_there = outcome.gain.lost < PART and not _is_at_its_start(outcome)
    return replace(found, severity="note" if gets_there else "warning")


def _is_at_its_start(outcome: Outcome) -> bool:
    """Whether the run has made less than a tenth of the way on which a copy came to half of its loss.

    A network that begins near the answer, such as one that adds to its input, is far ahead of ignoring it without any training.
    """
    run, copied = outcome.reference, outcome.trial.score()
    if not outcome.after_run or run is None or copied is None:
        return False
    start = loss_before(outcome.subject)
    return start - run.loss <= WORTH * (start - copied.loss) and 0 <= copied.loss <= CRITICAL * run.loss


def _refined(outcome: Outcome) -> Trial:
    """A third of the step, where that does as well: a margin."""
    found = outcome.trial
    smaller = 0.3 * found.change.lr
    arm = Trial(outcome.subject, Change(f"lr x {smaller:g}", lr=smaller)).advance(found.steps)
    mine, other = found.score(), arm.score()
    return arm if mine is not None and other is not None and other.loss <= mine.loss else found


ailment = Ailment(
    question="Is the learning rate too small?",
    needs={"model", "data", "loss", "optimizer"},
    interventions=interventions,
    laws=("kernel-gd-decay",),
)
