"""A quick part of the clinic, half of it healthy: the cause is named first, and healthy runs are left alone."""

import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # benchmarks is no installed package
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

from benchmarks.clinic import record_of
from benchmarks.clinic_cases import cases, report
from figures import counts_of

CASES = {case.name: case for case in cases(every=True)}
HEALTHY = (
    "healthy/mlp-digits/plain",
    "healthy/mlp-breast-cancer/plain",
    "healthy/mlp-clusters/plain-sgd",
    "healthy/mlp-bn-digits/plain",
    "healthy/regression-friedman/plain",
    "healthy/stack-digits/deep",
)
SICK = (
    "inputs-not-scaled/mlp-clusters/units/severe",
    "labels-unrelated/mlp-digits/severe",
    "step-too-small/mlp-digits/severe",
    "units-dead/mlp-digits/severe",
    "outputs-squashed/regression-friedman/severe",
    "gradient-accumulates/regression-friedman/severe",
)


@pytest.fixture(autouse=True)
def seconds_of_the_processor(monkeypatch):
    """A busy machine must not shorten trials, and with them change what is found."""
    monkeypatch.setattr(time, "perf_counter", time.process_time)


def row(name):
    case = CASES[name]
    assert case.split == "chosen"
    return record_of(case, case.seeds[0], cure=False)


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_run_gets_no_alarm(name):
    found = row(name)
    assert not found["found"], found["findings"]


@pytest.mark.parametrize("name", SICK)
def test_what_ails_a_sick_run_is_named_first(name):
    found = row(name)
    assert found["findings"], "nothing was found"
    assert found["findings"][0]["name"] == CASES[name].ailment, found["findings"]


def test_a_remedy_is_typed_in_and_cures():
    case = CASES["step-too-small/mlp-digits/severe"]
    assert record_of(case, case.seeds[0], cure=True)["cured"]


def test_figures_count_what_was_got_wrong():
    alarm = {"name": "step-too-large", "severity": "warning"}
    fields = {"found": True, "among": False, "first": False, "seconds": 1.0}
    rows = [
        {"case": "a", "ailment": None, "right": [], "findings": [alarm], **fields},
        {
            "case": "b",
            "ailment": "step-too-large",
            "right": ["step-too-large"],
            "findings": [alarm],
            **fields,
            "first": True,
        },
    ]
    told = {"clinic": rows, "field": [], "ladder": [{"run": "c", "found": [["step-too-large", "warning", "run", ""]]}]}
    assert counts_of(told) == {"step-too-large": [1, 3]}
    assert report.misses(rows) == [("a", "step-too-large")]
    figures = dict(report.overall(rows))
    assert figures["healthy runs with alarm"].startswith("1/1 = 100%")
    assert figures["cause named first"].startswith("1/1 = 100%")


def test_a_run_that_costs_nothing_is_left_out_and_counted():
    fields = {"ailment": "step-too-small", "right": ["step-too-small"], "findings": [], "found": False, "among": False}
    fields |= {"first": False, "seconds": 1.0}
    twin = {"twin": (0.9, 0.1)}
    rows = [
        {"case": "harmless", "score": 0.85, **twin, **fields},
        {"case": "sick", "score": 0.8, **twin, **fields},
        {"case": "lost", "score": float("nan"), **twin, **fields},
        {"case": "twin learns nothing", "score": 0.1, "twin": (0.2, 0.1), **fields},
        {"case": "checkpoint", **fields},
    ]
    assert [row["case"] for row in report.counted(rows)] == ["sick", "lost", "checkpoint"]
    assert [row["case"] for row in report.left_out(rows)] == ["harmless", "twin learns nothing"]
    assert "2 runs with an ailment" in report.table(rows)
