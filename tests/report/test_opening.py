"""How a page opens: diagnosis, the network as a strip, tables."""

from fixtures.page_outline import check
from theodolite.report.html import survey_fragment, survey_page


def test_a_page_opens_with_diagnosis_strip_and_tables():
    from theodolite.core.ailment import Finding
    from theodolite.report.opening import Opening, SmallTable, StripCell, StripLayer
    from theodolite.verbs.diagnosis import Diagnosis

    findings = tuple(
        Finding(name=f"units-{n}", severity="critical", says=f"says {n}.", remedy=f"type{n}()") for n in range(5)
    )
    strip = [StripLayer(f"layer{n}", "Linear 3 × 3", (StripCell("signal", "1", 0.5, wrong=n == 2),)) for n in range(20)]
    opening = Opening(
        Diagnosis("net", findings, ("a",)), strip, tables=(SmallTable("Ways", ("a", "b"), (("1", "2"),)),)
    )
    page = survey_page("net", [], [], {}, opening=opening)
    _, text = check(page)
    assert text.index("units 0") < text.index("units 2") < text.index("2 more") < text.index("units 3")
    assert text.index("units 4") < text.index("The network") < text.index("Ways") < text.index("Readings")
    assert page.count('class="th-net-cell') == 20
    assert page.count('th-net-wrong"') == 1
    assert "layer2 (Linear 3 × 3): signal 1" in text
    assert all(f"type{n}()" in text for n in range(5))
    check(survey_fragment("net", [], [], {}, opening=opening))
