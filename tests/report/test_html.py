"""Pages as text: complete, self-contained, escaped."""

import re
import sys

import pytest

from fixtures.page_outline import check
from theodolite.core.instrument import Instrument
from theodolite.core.question import Answer
from theodolite.core.reading import Band, Reading
from theodolite.report.html import survey_fragment, survey_page


def groups_of(answers):
    return {(answer.question.name, reading.quantity) for answer in answers for reading in answer.readings}


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


def test_import_is_light():
    import subprocess

    code = (
        "import sys, theodolite.report.html, theodolite.report.figures, theodolite.report.dashboard;"
        "print(*{'torch', 'matplotlib', 'rich', 'jinja2'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_sections_without_alarm_are_folded_and_structure_is_none():
    instrument = Instrument(name="i", question="q?", read=lambda s: (), needs=set(), cost="free")

    def page(against):
        reading = Reading(quantity="q", measured=3.0, expected=Band(0, 2), against=against)
        return survey_page("t", [Answer(instrument, (reading,))], [], {})

    assert '<details class="th-fold th-wrong" id="i0-i" open>' in page("health")
    assert '<details class="th-fold th-structure" id="i0-i">' in page("chance")
    assert "what chance gives" in page("chance")
