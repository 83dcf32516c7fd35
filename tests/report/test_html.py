"""Pages as text: complete, self-contained, escaped."""

import re
import sys
from html.parser import HTMLParser

import pytest

from theodolite.core.instrument import Instrument
from theodolite.core.question import Answer
from theodolite.core.reading import Band, Reading
from theodolite.report.html import survey_fragment, survey_page
from theodolite.report.rendering import _environment

VOID = {"meta", "link", "br", "img", "input", "hr", "wbr"}


class Outline(HTMLParser):
    """Elements, ids, text and addresses of a page; the nesting must close."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.ids, self.links, self.handlers, self.text, self.open = [], [], [], [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        values = dict(attrs)
        self.ids += [values["id"]] if "id" in values else []
        self.links += [values[name] for name in ("href", "src") if values.get(name)]
        self.handlers += [name for name in values if name.startswith("on")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def groups_of(answers):
    return {(answer.question.name, reading.quantity) for answer in answers for reading in answer.readings}


def check(page):
    seen = Outline(page)
    assert not seen.open
    assert not {"script", "img", "iframe", "object", "embed", "form"} & set(seen.elements)
    assert not seen.handlers
    assert all(link.startswith("#") or link == "data:," for link in seen.links)
    assert len(seen.ids) == len(set(seen.ids))
    assert {link[1:] for link in seen.links if link.startswith("#")} <= set(seen.ids)
    assert "http" not in re.sub(r'xmlns="http://www.w3.org/2000/svg"|http-equiv', "", page)
    assert "None" not in "".join(seen.text)
    return seen, "".join(seen.text)


def test_survey_page_is_whole(survey, hostile):
    title, answers, skipped, facts = survey
    seen, text = check(survey_page(*survey))
    for word in (
        title,
        *hostile,
        *facts,
        *facts.values(),
        *(s.instrument for s in skipped),
        *(s.reason for s in skipped),
    ):
        assert word in text
    for answer in answers:
        assert answer.question.question in text
        for reading in answer.readings:
            assert reading.quantity in text
            assert reading.where in text
            assert reading.meaning in text
    assert "12 without reference" not in text
    assert seen.elements.count("details") == len(answers) + len(groups_of(answers)) + 5 + 1  # figures, skipped
    assert "This instrument gave no readings." in text


def test_a_shared_meaning_is_told_once_and_rows_are_grouped(survey):
    seen, text = check(survey_page(*survey))
    assert text.count("As it should.") == 1
    assert text.count("At criticality.") == 1
    assert "11 of 12" in text
    assert seen.elements.count("table") == 4


def test_own_meanings_stand_beside_their_rows():
    instrument = Instrument(name="i", question="q?", read=lambda s: (), needs=set(), cost="free")
    readings = tuple(Reading(quantity="q", measured=1.0, where=f"l{n}", meaning=f"meaning {n}.") for n in range(3))
    _, text = check(survey_page("t", [Answer(instrument, readings)], [], {}))
    assert all(text.count(f"meaning {n}.") == 1 for n in range(3))


@pytest.mark.parametrize(("count", "opened"), [(3, True), (12, False)])
def test_figures_are_open_only_where_they_are_few(count, opened):
    instrument = Instrument(name="i", question="q?", read=lambda s: (), needs=set(), cost="free")
    readings = tuple(
        Reading(quantity=f"q{n}", measured=1.0, where=f"l{k}", expected=Band(0, 2))
        for n in range(count)
        for k in range(3)
    )
    page = survey_page("t", [Answer(instrument, readings)], [], {})
    assert page.count("<details") == 2 * count + 1  # a quantity and its figure each, in one section
    assert ('<details class="th-plot" open>' in page) == opened
    check(page)


def test_empty_survey():
    check(survey_page("nothing", [], [], {}))
    check(survey_fragment("nothing", [], [], {}))


def test_fragment_is_one_element_with_scoped_style(survey):
    fragment = survey_fragment(*survey)
    seen, text = check(fragment)
    assert fragment.strip().startswith('<div class="theodolite')
    assert "svg" not in seen.elements
    assert not {"html", "body", "head"} & set(seen.elements)
    for answer in survey[1]:
        assert all(reading.where in text for reading in answer.readings)
    style = re.sub(
        r"/\*.*?\*/|@media[^{]*|@page[^}]*}", "", fragment[fragment.index("<style>") + 7 : fragment.index("</style>")]
    )
    for selectors in re.findall(r"([^{}]+)\{", style):
        for selector in filter(str.strip, selectors.split(",")):
            assert re.match(r"\.(theodolite|th-)", selector.strip()), selector


def test_a_cell_of_a_notebook_has_few_rows_of_a_quantity_and_says_how_many_it_leaves_out():
    instrument = Instrument(name="i", question="q?", read=lambda s: (), needs=set(), cost="free")
    readings = tuple(
        Reading(quantity="q", where=f"w{n}.", measured=3.0 if n == 70 else 1.0, expected=Band(0, 2), against="health")
        for n in range(80)
    )
    _, text = check(survey_fragment("t", [Answer(instrument, readings)], [], {}))
    assert text.count("w") - text.count("w70.") >= 23
    assert "w70." in text, "the one outside its band"
    assert "w60." not in text
    assert "and 56 more" in text


def test_control_characters_do_not_reach_the_page():
    instrument = Instrument(name="i\x00", question="q\x1b", read=lambda s: (), needs=set(), cost="free")
    page = survey_page(
        "t\ud800", [Answer(instrument, (Reading(quantity="a\x07", measured=1.0, where="b\u202e.c"),))], [], {}
    )
    assert not set(page) & set("\x00\x1b\x07\u202e\ud800")
    page.encode()


def test_templates_are_kept_compiled_where_python_may_write(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    pages = []
    for forbidden in (True, False, False):
        monkeypatch.setattr(sys, "dont_write_bytecode", forbidden)
        _environment.cache_clear()
        pages.append(survey_page("x", (), (), {}))
        assert any(tmp_path.rglob("survey.html*.pyc")) is not forbidden
    for kept in tmp_path.rglob("*.pyc"):
        kept.write_bytes(b"damaged")
    _environment.cache_clear()
    assert {*pages, survey_page("x", (), (), {})} == {pages[0]}
    _environment.cache_clear()


def test_import_is_light():
    import subprocess
    import sys

    code = (
        "import sys, theodolite.report.html, theodolite.report.text, theodolite.report.figures, theodolite.report.dashboard;"
        "print(*{'torch', 'matplotlib', 'rich', 'jinja2'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


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


def test_sections_without_alarm_are_folded_and_structure_is_none():
    instrument = Instrument(name="i", question="q?", read=lambda s: (), needs=set(), cost="free")

    def page(against):
        reading = Reading(quantity="q", measured=3.0, expected=Band(0, 2), against=against)
        return survey_page("t", [Answer(instrument, (reading,))], [], {})

    assert '<details class="th-fold th-wrong" id="i0-i" open>' in page("health")
    assert '<details class="th-fold th-structure" id="i0-i">' in page("chance")
    assert "what chance gives" in page("chance")
