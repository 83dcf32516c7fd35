"""The ailments of depth, found in designs."""

import theodolite as th
from theodolite import catalogue


def test_the_diagnosis_names_the_default_initialization_and_what_was_seen_to_help():
    design = th.design(activation="tanh", depth=30, width=64)
    (merged,) = (finding for finding in design.diagnosis.findings if finding.name == "inputs-merge")
    assert merged.severity == "warning"  # the advised initialization does not have it
    assert merged.where == "PyTorch default"
    assert merged.suggested == {"initialize_": "tanh"}
    assert merged.evidence
    assert "fix: th.initialize_(model, 'tanh')" in design.text()
    page = design.html()
    assert page.index("inputs merge") < page.index("Initializations") < page.index("Readings")
    assert page.index("Initializations") < page.index("lr of weights") < page.index("Readings")


def test_a_design_that_works_under_every_initialization_is_healthy_and_one_that_never_does_is_critical():
    assert th.design(activation="tanh", depth=3, width=64).diagnosis.healthy
    (worst, *_) = th.design(activation="sigmoid", depth=40, width=64).diagnosis.findings
    assert worst.severity == "critical"
    assert "skip connections" in worst.remedy
    assert not worst.suggested


def test_a_design_and_a_module_are_judged_by_the_same_ailments():
    found = th.design(activation="tanh", depth=20, width=64).diagnosis
    assert set(found.checked) <= set(catalogue.ailment_names())
    assert [(f.name, f.where) for f in found.findings] == [("inputs-merge", "PyTorch default")]


def test_what_only_a_trial_could_tell_is_no_finding_of_a_design():
    assert th.design(
        activation="relu", depth=6, width=64
    ).diagnosis.healthy  # trains, though a fiftieth of differences is left


def test_networks_whose_signals_overflow_are_not_called_healthy():
    found = th.design(activation="exp", depth=30, width=32)
    assert [(f.name, f.severity) for f in found.diagnosis.findings] == [("signal-explodes", "critical")]
    assert "grows to inf" in found.text()
