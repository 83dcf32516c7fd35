"""What may cure an ailment, and the finding that it gives where it does."""

from dataclasses import replace

import pytest
import torch

from fixtures.judging import subject_of
from fixtures.trained import patient
from theodolite.evidence.interventions import Outcome, found_by, step_ladder
from theodolite.evidence.task import scores
from theodolite.evidence.trial import AS_IT_IS, Trial, gain_of


def test_each_rung_of_a_ladder_waits_for_the_one_before_it():
    rungs = list(step_ladder((0.1, 0.01), found_by("says", "remedy", {}), rank=20))
    assert [(rung.change.name, rung.change.lr, rung.after) for rung in rungs] == [
        ("lr x 0.1", 0.1, ""),
        ("lr x 0.01", 0.01, "lr x 0.1"),
    ]


@pytest.fixture(scope="module")
def hot():
    """A run whose step is far too large, and a smaller one tried on a copy."""
    subject = subject_of(patient(0, lambda own: torch.optim.SGD(own, 30.0), steps=40))
    (smaller,) = step_ladder((0.003,), found_by("The step is too large.", "lr=0.1", {"lr": 0.1}), rank=20)
    trial, plain = (Trial(subject, change).advance(40) for change in (smaller.change, AS_IT_IS))
    reference, _ = scores(subject)
    gain = gain_of(subject, trial.score(), reference)
    return Outcome(subject, smaller, trial, plain, gain, reference, after_run=True)


def test_what_was_lost_is_critical_where_the_run_is_no_better_than_nothing(hot):
    assert hot.gain.lost > 0.5
    assert hot.severity == "critical"


def test_the_trial_is_told_beside_the_training_as_it_is_and_the_run(hot):
    mine = hot.trial.score()
    assert hot.tried.startswith(f"Tried on a copy ({mine.samples:,} samples): loss ")
    assert hot.tried.endswith("after 40 steps, and a NaN or infinite loss without the change.")
    assert "without the change; the run itself is at loss " in replace(hot, reference=mine).tried
    hot.subject.seen["sample"] = "training step"  # a script whose whole steps are done again
    assert hot.tried.startswith(f"Tried on a copy ({mine.samples:,} training steps): loss ")
    del hot.subject.seen["sample"]
    assert [reading.quantity for reading in hot.readings][-1] == f"loss of the trial, {hot.trial.change.name}"
    assert hot.readings[-1].measured == mine.loss


def test_a_finding_says_what_was_seen_and_then_what_the_trial_showed(hot):
    found = hot.intervention.finding(hot)
    assert found.says == f"The step is too large. {hot.tried}"
    assert (found.severity, found.remedy, found.suggested) == ("critical", "lr=0.1", {"lr": 0.1})
    assert found.evidence == hot.readings
