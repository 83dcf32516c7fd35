"""A diagnosis in a terminal and as a page: what it begins with, what is named only, what is code."""

import pytest

from fixtures.page_outline import check
from theodolite.core.ailment import Finding
from theodolite.report.diagnosis import clause, diagnosis_fragment, diagnosis_page, diagnosis_text, state_of
from theodolite.report.text import as_text
from theodolite.verbs.diagnosis import Diagnosis


def finding(name="units-dead", severity="critical", says="Half of the units are dead: none is on.", remedy="lr=0.1"):
    return Finding(name=name, severity=severity, says=says, remedy=remedy)


def test_three_findings_are_told_and_the_others_named():
    found = tuple(finding(f"units-{n}", says=f"Says {n}.") for n in range(5))
    text = as_text(diagnosis_text(Diagnosis("net", found, ("a",))))
    assert text.startswith("✖ Critical: says 0, and 4 more findings.")
    assert "fix: lr=0.1" in text and "Says 2." in text and "Says 3." not in text
    assert "and 2 more: units-3, units-4" in text


@pytest.mark.parametrize(
    ("severity", "state"), [("critical", "critical"), ("warning", "warning"), ("note", "healthy"), (None, "healthy")]
)
def test_the_state_is_that_of_the_worst(severity, state):
    found = () if severity is None else (finding(severity=severity),)
    assert state_of(Diagnosis("net", found, ("a",))) == state


def test_a_clause_is_short_and_keeps_names_as_they_are():
    assert clause(finding()) == "half of the units are dead"
    assert clause(finding(says="ReLU is dead. So.")) == "ReLU is dead"
    assert clause(finding(says="x" * 200)) == "units dead"
    assert clause(finding(says="A plain copy of it learns more: so.")) == "a plain copy of it learns more"


def test_remedies_are_code_where_they_are_and_names_do_not_become_elements():
    hostile = Diagnosis("<script>", (finding(remedy="lr=0.1"), finding(remedy="<img src=x>")), ("a",))
    _, text = check(diagnosis_page(hostile))
    assert "<img src=x>" in text
    assert "<code>lr=0.1</code>" in diagnosis_fragment(hostile).replace("\n", "")
