"""Did the run end while it was still learning fast?

The run is continued on a copy, from where it ended, at its largest learning rate. It was too short if at most four times as
many steps recover what it has lost on held-out data; a run within noise of its end never shows this. If the schedule had
come to nothing before, the schedule is the cause. Losses fall as a power of the number of steps for as long as anyone has
looked, so more steps always gain something: a run that already has most of it gets a note. A run of less than fifty steps that is
no better than ignoring the input, with nothing else found, is too short to be judged otherwise.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

from theodolite.core.ailment import Ailment, Finding, evidence
from theodolite.core.subject import Subject
from theodolite.evidence.interventions import Intervention, Outcome, finding_of
from theodolite.evidence.start import after_steps, ended_early, steps_are_known, steps_made, was_trained
from theodolite.evidence.task import is_finite
from theodolite.evidence.thresholds import A_RUN, NOTHING, SHORT, SURE
from theodolite.evidence.trial import Change, judged_constant, present_score, present_skill

STRETCH = 4.0
"""Short runs are gone on with for so many times as many steps, and a run is suggested to be so many times as long."""


def interventions(subject: Subject) -> Iterator[Intervention]:
    """The run gone on with."""
    if not was_trained(subject) or not steps_are_known(subject) or ended_early(subject):
        return
    stretch = STRETCH if steps_made(subject) <= SHORT else 1.0
    yield Intervention(Change("more steps", from_here=True, stretch=stretch), _found, rank=60)


def judge(subject: Subject) -> Iterator[Finding]:
    made = steps_made(subject)
    if not steps_are_known(subject) or not 0 < made < A_RUN or not is_finite(subject):
        return
    score, constant = present_score(subject), judged_constant(subject)
    if score is None or not math.isfinite(constant) or present_skill(subject) > NOTHING + SURE * score.accuracy_error:
        return  # it knows something, or nobody can say
    yield Finding(
        severity="warning",
        says=f"Nothing has been learned yet {after_steps(subject)}: the loss is {score.loss:.3g}, and {constant:.3g} when "
        "ignoring the input. That is too few steps to judge anything else.",
        remedy=f"train on, and diagnose again after {A_RUN} steps or more",
        evidence=(
            evidence("loss", score.loss, stderr=score.stderr),
            evidence("loss when ignoring the input", constant),
        ),
    )


def _found(outcome: Outcome) -> Finding:
    subject, made = outcome.subject, steps_made(outcome.subject)
    more = int(STRETCH * max(made, outcome.trial.steps))
    ended = f"The run ended {after_steps(subject)} while it was still learning."
    remedy = f"train for {more:,} steps in all: {outcome.trial.steps:,} more did this on a copy"
    found = finding_of(outcome, ended, remedy, {"steps": more})
    return found if outcome.misses_much else replace(found, severity="note")


ailment = Ailment(
    question="Did the run end too early?",
    needs={"model", "data", "loss", "optimizer", "run"},
    judge=judge,
    interventions=interventions,
)
