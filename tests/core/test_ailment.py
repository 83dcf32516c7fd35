"""The order in which findings are shown: causes before consequences, the worst first."""

from theodolite.core.ailment import Finding, in_order


def finding(name, severity="warning"):
    return Finding(name=name, severity=severity, says=name, remedy="")


def test_a_cause_hides_what_it_explains_and_takes_its_rank():
    shown = in_order([finding("slow", "critical"), finding("narrow")], {"narrow": ("slow",)})
    assert [(f.name, f.severity, f.leads_to) for f in shown] == [("narrow", "critical", ("slow",))]


def test_of_two_that_explain_each_other_the_worse_is_shown():
    explains = {"one": ("other",), "other": ("one",)}
    shown = in_order([finding("one"), finding("other", "critical"), finding("third")], explains)
    assert [f.name for f in shown] == ["other", "third"]
    assert shown[0].leads_to == ("one",)


def test_what_is_only_noted_explains_nothing():
    shown = in_order([finding("odd", "note"), finding("slow")], {"odd": ("slow",)})
    assert [f.name for f in shown] == ["slow", "odd"]
