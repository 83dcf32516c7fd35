"""Findings: the order in which they are shown, and what an ailment may need."""

import pytest

from theodolite.core.ailment import Ailment, Finding, silent_error, worst_first
from theodolite.core.run import Run
from theodolite.core.subject import Subject


def finding(name, severity="warning", leads_to=()):
    return Finding(name=name, severity=severity, says=name, remedy="", leads_to=leads_to)


def test_the_worst_comes_first_and_of_equals_what_explains_most():
    found = [finding("odd", "note"), finding("one"), finding("cause", leads_to=("one",)), finding("bad", "critical")]
    assert [f.name for f in worst_first(found)] == ["bad", "cause", "one", "odd"]


def test_an_unknown_severity_or_need_is_refused():
    with pytest.raises(ValueError, match="expected a severity"):
        finding("odd", "grave")
    with pytest.raises(ValueError, match="expected needs"):
        Ailment(question="?", needs={"luck"})


def test_a_silent_error_is_found_in_the_run_or_in_the_subject_and_nowhere_else():
    facts = {"question": "?", "fact": "batch repeated", "severity": "warning", "remedy": "move on"}
    ailment = silent_error(**facts, says="{0} of {1} steps: {all}.")
    run = Run(silent={"batch repeated": ("3", "4")})
    (live,), (judged,) = ailment.while_training(run), ailment.judge(Subject(weights={"w": None}, run=run))
    assert live == judged and live.says == "3 of 4 steps: 3, 4." and live.where == "3"
    bare = Subject(weights={"w": None})
    assert not [*ailment.while_training(Run())] and not [*ailment.judge(bare)]
    still = silent_error(**facts, says="{0}", static=lambda subject: ("seen",), live=False)
    assert [found.says for found in still.judge(bare)] == ["seen"] and still.while_training is None
