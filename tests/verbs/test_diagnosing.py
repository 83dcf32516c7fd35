"""Findings of all ailments together: the fallback yields, and the clinic says how often an alarm was right."""

import json
from importlib import resources

from theodolite import catalogue
from theodolite.core.ailment import Finding, in_order
from theodolite.verbs import diagnosing


def finding(name, severity):
    return Finding(name=name, severity=severity, says=name, remedy="")


def test_whatever_is_found_explains_a_loss_that_stalls():
    for ailment in diagnosing.all_ailments():
        if ailment.name != diagnosing.FALLBACK:
            found = [finding(diagnosing.FALLBACK, "critical"), finding(ailment.name, "warning")]
            shown = in_order(
                found, {a.name: (*a.explains, *diagnosing._fallback(a.name)) for a in diagnosing.all_ailments()}
            )
            assert [f.name for f in shown] == [ailment.name]


def test_rightness_is_said_of_alarms_and_not_of_notes(monkeypatch):
    monkeypatch.setattr(diagnosing, "clinic_counts", lambda: {"overfits": (12, 13)})
    assert (
        diagnosing.rightness(finding("overfits", "warning"))
        == "right 12 of 13 times in test runs whose fault was known"
    )
    assert diagnosing.rightness(finding("overfits", "note")) == ""
    assert diagnosing.rightness(finding("rank-lost", "critical")) == ""


def test_the_counts_in_the_package_are_of_ailments_and_no_more_right_than_raised():
    counts = json.loads((resources.files("theodolite.ailments._common") / "clinic.json").read_text())
    assert set(counts) <= set(catalogue.ailment_names())
    assert all(0 <= right <= raised for right, raised in counts.values())
