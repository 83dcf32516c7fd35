"""The cases of the field: each builds, takes a step, says where it was asked, and has its cure beside it."""

import math
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))  # benchmarks is no installed package

from clinic_field import CASES, chance_of, score_of, train
from field import american, verdict
from ladder import wilson

from theodolite.catalogue import ailment_names

KNOWN = {american(name) for name in ailment_names()}
FAULTS = [case for case in CASES.values() if case.accept]


def test_there_are_enough_of_every_kind():
    assert len(FAULTS) >= 60
    kinds = {case.kind for case in FAULTS}
    assert kinds == {"data", "depth", "finetuning", "loops", "losses", "sequences", "steps"}
    assert min(sum(case.kind == kind for case in FAULTS) for kind in kinds) >= 5


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.name)
def test_a_case_says_what_was_asked_and_where(case):
    assert "Asked:" in case.asked and "Answer:" in case.asked
    assert any(mark in case.source for mark in ("issue", "pull request", "t/", "questions/", "."))
    unknown = [name for name in case.accept if american(name) not in KNOWN]
    assert not unknown, f"no ailments: {unknown}"


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.name)
def test_a_case_and_its_cure_build_and_take_a_step(case):
    asked, cured = case.build(0), case.build(0, fixed=True)
    for run in (asked, cured):
        before = [p.detach().clone() for p in run.model.parameters()]
        assert len(run.validation[0]) == len(run.validation[1]) > 0
        assert 0.0 <= chance_of(run) < 1.0
        train(run, steps=1)
        assert math.isfinite(score_of(run))
        moved = any(not torch.equal(a, b.detach()) for a, b in zip(before, run.model.parameters(), strict=True))
        assert moved or run is asked, "the cure does not move"


def test_a_seed_draws_the_same_run():
    first, second = (train(CASES["never-cleared"].build(3), steps=5).model.state_dict() for _ in range(2))
    other = train(CASES["never-cleared"].build(4), steps=5).model.state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["0.weight"], other["0.weight"])


def test_truth_can_be_told_from_its_contrary():
    """A fault costs what it says, and its cure does not have it."""
    from field import truth_of

    assert not truth_of(CASES["targets-broadcast-in-a-line"], 1)["wrong"]
    harmless = CASES["log-softmax-before-cross-entropy"]
    claimed = type(harmless)("x", "losses", ("loss-mismatched",), "", harmless.build_both)
    CASES["x"] = claimed
    try:
        assert truth_of(claimed, 1)["wrong"] == ["it costs nothing"]
    finally:
        del CASES["x"]


def test_answers_are_counted_as_they_should_be():
    case = CASES["never-cleared"]
    finding = {"name": "gradient-accumulates", "severity": "warning", "stage": "run", "says": "", "leads_to": []}
    row = {"case": case.name, "fixed": False, "found": [finding]}
    assert verdict(case, row) == ("OK", True, ["gradient-accumulates"])
    assert verdict(case, row | {"found": []})[0] == "MISS"
    assert verdict(case, row | {"found": [finding | {"severity": "note"}]})[0] == "MISS"
    assert (
        verdict(case, row | {"found": [finding | {"name": "loss-stalls", "leads_to": ["step-too-large"]}]})[0] == "OK"
    )
    assert verdict(case, row | {"fixed": True})[0] == "ALARM"
    assert verdict(case, row | {"fixed": True, "found": [finding | {"severity": "note"}]})[0] == "OK"


def test_the_interval_of_a_share():
    low, high = wilson(1, 150)  # the score interval at 95 %, by hand
    assert low == pytest.approx(0.00118, abs=2e-5)
    assert high == pytest.approx(0.03680, abs=2e-5)
    assert wilson(0, 0) == (0.0, 1.0)
