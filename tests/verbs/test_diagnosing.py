"""How a diagnosis is made: facts, the experiment, what is left; isolation, work, and how often findings were right."""

import json
from importlib import resources

import pytest
import torch
from torch import nn

import theodolite as th
from fixtures.fresh import digits_like, stack
from fixtures.trained import patient
from theodolite import catalogue
from theodolite.core.ailment import Finding
from theodolite.core.run import Run, RunMoment
from theodolite.verbs import diagnosing


def finding(name, severity):
    return Finding(name=name, severity=severity, says=name, remedy="")


def test_precision_is_said_of_alarms_with_its_interval_and_not_of_notes(monkeypatch):
    monkeypatch.setattr(diagnosing, "counted_findings", lambda: {"overfits": (12, 13)})
    said = diagnosing.precision_of(finding("overfits", "warning"))
    assert said == "right in 12 of 13 test runs whose fault was known (66% to 99%)"
    assert diagnosing.precision_of(finding("overfits", "note")) == ""
    assert diagnosing.precision_of(finding("rank-lost", "critical")) == ""


def test_the_counts_in_the_package_are_of_ailments_and_no_more_right_than_raised():
    counts = json.loads((resources.files("theodolite.evidence") / "clinic.json").read_text())
    assert set(counts) <= set(catalogue.ailment_names())
    assert all(0 <= right <= raised for right, raised in counts.values())


def hot():
    return patient(0, lambda own: torch.optim.SGD(own, 30.0), steps=60)


def asked(given):
    run = Run(tuple(given["history"]))
    subject = th.Subject(
        given["model"],
        data=given["data"],
        loss=given["loss"],
        optimizer=given["optimizer"],
        validation=given["validation"],
        origin=given["origin"],
        run=run,
        checked=False,
    )
    return diagnosing.judgement_of(subject, budget=10.0)


def test_the_cause_comes_first_with_what_is_gone_in_the_cured_copy():
    found = asked(hot()).findings
    assert found[0].name == "step-too-large"
    assert "Tried on a copy" in found[0].says and found[0].suggested["lr"] < 30
    assert "loss-stalls" in found[0].leads_to


def test_an_ailment_that_raises_is_a_line_and_the_rest_stands(monkeypatch):
    def broken(subject):
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr(diagnosing, "isolated", True)
    real = catalogue.ailment

    def one(name):
        from dataclasses import replace

        return replace(real(name), judge=broken) if name == "units-alike" else real(name)

    monkeypatch.setattr(catalogue, "ailment", one)
    found = asked(hot())
    assert found.unjudged["units-alike"] == "could not be judged: RuntimeError: a bug of ours"
    assert found.findings[0].name == "step-too-large"
    monkeypatch.setattr(diagnosing, "isolated", False)
    with pytest.raises(RuntimeError, match="a bug of ours"):
        asked(hot())


def test_the_same_input_gives_the_same_findings_whatever_the_threads():
    told = []
    for threads in (1, 2):
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            given = digits_like(0, lambda: stack(12, activation=nn.Sigmoid), lr=1e-2)
            model = given.pop("model")
            d = th.diagnose(model, **given, budget=5)
            told.append([(f.name, f.severity, f.says, f.remedy, f.leads_to) for f in d.findings])
            assert torch.get_num_threads() == threads
        finally:
            torch.set_num_threads(before)
    assert told[0] and told[0] == told[1]


def test_what_was_not_judged_is_not_called_healthy():
    assert "step-too-large" in th.diagnose(nn.Linear(3, 2)).unchecked
    given = digits_like(0, lambda: stack(2))
    unlabeled = th.diagnose(given["model"], data=torch.randn(40, 16, generator=torch.Generator().manual_seed(0)))
    assert not unlabeled.healthy and "step-too-large" in unlabeled.unchecked


def test_a_diagnosis_that_the_clock_ends_is_not_finished(monkeypatch):
    monkeypatch.setattr(diagnosing, "TIMES", 1e-9)
    monkeypatch.setattr(diagnosing, "LIMIT", 1e-9)
    asked = digits_like(0, lambda: stack(2))
    d = th.diagnose(asked.pop("model"), **asked)
    assert d.unfinished and not d.healthy
    assert d.headline.startswith("Not finished: ")


def test_alarms_are_those_of_the_ailments():
    moments = (RunMoment(0, lr=0.1, facts={"step_loss": 1.0}), RunMoment(9, lr=0.1, facts={"step_loss": 3.0}))
    assert [f.name for f in diagnosing.alarms_of(Run(moments))] == ["step-too-large"]
    assert not diagnosing.alarms_of(Run(moments[:1]))


def test_ailments_that_only_a_trial_can_judge_are_not_called_judged_without_one():
    given = digits_like(0, lambda: stack(2))
    told = {name: value for name, value in given.items() if name != "model"}
    d = th.diagnose(given["model"], budget=0.001, **told)
    assert "step-too-large" in d.unchecked and "step-too-large" not in d.checked
    assert d.headline.startswith("No fault found in ") and "costs too much" in d.headline
