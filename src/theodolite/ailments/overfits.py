"""Does the network fit its training data at the expense of held-out data?

Every trained network has a gap; it is a fault when something was lost. With the held-out loss of a run: at the end it is above
its best by more than three standard errors and by a material amount, while the training loss kept falling. Without: the
training data are fitted while the held-out loss is close to that of ignoring the input, or above it, and the held-out accuracy
is far below the training accuracy (three binomial standard errors). If nothing was lost, three standard errors are exceeded
once in 700.
"""

import math
from collections.abc import Iterator, Sequence

from theodolite.ailments.validation_differs import differences
from theodolite.core.ailment import Ailment, Finding, evidence
from theodolite.core.run import Run, RunMoment
from theodolite.core.subject import Subject
from theodolite.evidence.constant_answers import constant_loss
from theodolite.evidence.task import Score, scores, task
from theodolite.evidence.thresholds import A_FEW, MISSED, MOST, PART, RARELY, SURE, WORTH
from theodolite.evidence.trial import judged_constant


def judge(subject: Subject) -> Iterator[Finding]:
    training, held = scores(subject)
    constant = constant_loss(subject)
    if training is None or held is None or not math.isfinite(constant) or not training.loss < held.loss:
        return
    moments = () if subject.run is None else subject.run.moments
    looked = moments[-1].facts.get("validation_samples", held.samples) if moments else held.samples
    unit = looked if task(subject).summed else 1.0  # looks note the loss as it is, the sum over their samples too
    best = _best_moment(moments, unit * constant, unit * held.stderr * math.sqrt(held.samples / looked))
    if best is not None and not unit * training.loss < best.validation_loss:
        best = None
    gap = training.accuracy - held.accuracy
    known = gap == gap
    far = not known or gap > max(WORTH, SURE * held.accuracy_error)
    shares = constant > 0 and training.loss >= 0  # else zero is not the least loss, and shares of it mean nothing
    fitted = shares and training.loss < MISSED * constant
    apart = fitted and held.loss - SURE * held.stderr > MOST * judged_constant(subject) and far
    gross = fitted and known and gap > max(MISSED, SURE * held.accuracy_error)
    # numbers that are met exactly, and clearly missed elsewhere
    if not known and shares and training.loss < RARELY * constant:
        lost = held.loss - training.loss
        gross = lost > PART * constant and lost > SURE * held.stderr
    if (best is not None or apart or gross) and not differences(subject):
        yield _finding(subject, training, held, best)


def _best_moment(moments: Sequence[RunMoment], constant: float, stderr: float) -> RunMoment | None:
    """The look with the best held-out loss, where the end is clearly worse."""
    looks = [m for m in moments if math.isfinite(m.validation_loss)]
    if len(looks) <= 2:
        return None
    best, last = min(looks, key=lambda m: m.validation_loss), looks[-1]
    risen = last.validation_loss - best.validation_loss
    error = math.hypot(stderr, _scatter([m.validation_loss for m in looks]))
    enough = risen > MISSED * abs(best.validation_loss) and risen > WORTH * abs(constant) and risen > SURE * error
    return best if enough and best.step < last.step else None


def _scatter(values: list[float]) -> float:
    """The noise from look to look: the median of second differences, which a smooth curve does not have."""
    bends = sorted(abs(a - 2 * b + c) / math.sqrt(6) for a, b, c in zip(values, values[1:], values[2:], strict=False))
    return bends[len(bends) // 2] if bends else 0.0


def _finding(subject: Subject, training: Score, held: Score, best: RunMoment | None) -> Finding:
    known = training.accuracy == training.accuracy
    told = "" if not known else f", accuracy {training.accuracy:.0%} against {held.accuracy:.0%}"
    seen, remedy, suggested = "", "more data, augmentation, weight decay or dropout; a smaller network", {}
    if best is not None:
        assert subject.run is not None
        last = subject.run.moments[-1]
        seen = f" It was {best.validation_loss:.3g} on held-out data at step {best.step}, and is {last.validation_loss:.3g} now."
        remedy = f"stop at step {best.step} and keep those weights; or more data, augmentation, weight decay or dropout"
        suggested = {"early_stopping": best.step}
    return Finding(
        severity="warning",
        says=f"The network overfits: its loss is {training.loss:.3g} on training data and {held.loss:.3g} on held-out data "
        f"({held.samples} samples){told}.{seen}",
        remedy=remedy,
        suggested=suggested,
        evidence=(
            evidence("loss on training data", training.loss, stderr=training.stderr),
            evidence("loss on held-out data", held.loss, stderr=held.stderr),
            evidence("loss when ignoring the input", constant_loss(subject)),
        ),
    )


def while_training(run: Run) -> Iterator[Finding]:
    told = [m for m in run.moments if math.isfinite(m.validation_loss)]
    if len(told) < A_FEW:
        return
    start = told[0].validation_loss
    best = _best_moment(told, abs(start), 0.0)
    if best is None or not all(m.validation_loss > (1 + MISSED) * best.validation_loss for m in told[-2:]):
        return
    if not told[-1].loss < best.loss:
        return
    yield Finding(
        severity="warning",
        says=f"The held-out loss was {best.validation_loss:.3g} at step {best.step} and is now "
        f"{told[-1].validation_loss:.3g}, while the loss on the probe still falls.",
        remedy=f"keep the weights of step {best.step}, or regularize",
        suggested={"stop_at": best.step},
    )


ailment = Ailment(
    question="Does it overfit?",
    needs={"model", "data", "loss", "validation"},
    judge=judge,
    while_training=while_training,
)
