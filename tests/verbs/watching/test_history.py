"""The records of a run as one story."""

from dataclasses import replace

import theodolite as th
from theodolite.core.reading import Band, Reading
from theodolite.verbs.watching.history import (
    alarm_of,
    answers_of,
    dashboard_of,
    findings_began,
    history_of,
    phases_of,
    skipped_of,
    values_page,
)
from theodolite.verbs.watching.looks import LOSS
from theodolite.verbs.watching.records import THINNED, Record, thinned_note


def test_what_could_not_be_read_at_the_last_whole_look_is_still_told():
    note = "sharpness: expected finite curvature, got NaN"
    thin = Record(20, notes=(thinned_note(["sharpness"], "dear"),), facts={"loss": 1.0, THINNED: 1.0})
    assert [skip.instrument for skip in skipped_of([Record(10, notes=(note,)), thin])] == ["sharpness"]


def looked(step, loss, **facts):
    return Record(step, 0.1, facts={"loss": loss, "step_loss": loss, **facts})


def test_the_phase_stands_on_what_was_read_last():
    read = {"sharpness": 1.0, "edge": 20.0, "alive": 1.0, "drift": 0.1}
    records = [looked(0, 1.0, **{**read, "drift": 0.0}), looked(10, 0.5, **read), looked(20, 0.2, thinned=1.0)]
    assert th.theory.dynamics.training_phase(history_of(records)).name == "lazy"
    assert th.theory.dynamics.training_phase(history_of(records[:-1])).name == "lazy"


def read(step, value, *, alarms=(), phase="stable", **facts):
    reading = Reading(quantity=LOSS, measured=value)
    told = {"loss": value, "step_loss": value, **facts}
    return Record(step, 0.1, readings=(("loss", reading),), phase=phase, reason="so", facts=told, alarms=alarms)


def test_a_quantity_has_its_earlier_values_as_a_series_and_says_where_it_was_read_last():
    edge = Reading(quantity="relative distance from the starting weights", measured=0.2, expected=Band(high=1.0))
    records = [
        replace(read(0, 2.0), readings=(("loss", read(0, 2.0).readings[0][1]), ("travel", edge))),
        read(10, 0.01),
    ]
    loss, travel = (answer.readings[0] for answer in answers_of(records))
    assert (loss.series.x, loss.series.measured, loss.series.log) == ((0.0, 10.0), (2.0, 0.01), "y")
    assert travel.meaning.startswith("Last measured at step 0") and travel.series is None


def test_phases_are_told_where_they_change():
    records = [read(0, 2.0), read(5, 1.0), read(10, 9.0, phase="divergent"), read(15, 1.0)]
    assert [(step, name) for step, name, _ in phases_of(records)] == [(0, "stable"), (10, "divergent"), (15, "stable")]
    assert alarm_of(records) == ""
    assert alarm_of(records[:3]) == "The run is divergent: so"
    assert alarm_of([replace(read(0, 1.0), notes=("loss is not finite at step 0",))]).startswith("loss is not finite")


def test_findings_begin_where_they_were_first_told():
    records = [
        read(0, 2.0),
        read(5, 3.0, alarms=("step 5: step too large: it rose",)),
        read(9, 3.0, alarms=("step 9: overfits: held out rises", "step 9: step too large: it rose more")),
    ]
    assert findings_began(records) == {
        "step-too-large": (5, "step 5: step too large: it rose", True),
        "overfits": (9, "step 9: overfits: held out rises", False),
    }
    marks = dashboard_of(records, None).marks
    assert (5.0, "step 5: step too large: it rose", True) in marks


def test_losses_alone_make_a_page():
    page = values_page([read(step, 1.0 + step, phase="divergent") for step in range(4)], ())
    assert page.startswith("<!doctype html>") and "The run is divergent: so" in page
