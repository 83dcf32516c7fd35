"""Findings: the order in which they are shown, and what an ailment may need."""

import pytest

from theodolite.core.ailment import Ailment, Finding, worst_first


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
