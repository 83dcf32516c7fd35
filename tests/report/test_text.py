"""Terminal tables: numbers with sensible digits, statuses without color, nothing interpreted as markup."""

from theodolite import catalogue
from theodolite.core.instrument import Instrument
from theodolite.core.question import Answer, Skipped
from theodolite.core.reading import Reading
from theodolite.report.overview import listing
from theodolite.report.text import ailment_explanation, as_text, explanation, survey_table


def test_survey_summary_rows_and_skips(survey):
    _, answers, skipped, _ = survey
    text = as_text(survey_table(answers, skipped), width=140)
    first = text.splitlines()[0]
    readings = [reading for answer in answers for reading in answer.readings]
    for word, status in (
        ("agree", "agrees"),
        ("above", "above"),
        ("below", "below"),
        ("inconclusive", "inconclusive"),
        ("invalid", "invalid"),
        ("without reference", "no reference"),
    ):
        count = sum(reading.status == status for reading in readings)
        assert count > 0
        assert f"{count} {word}" in first
        assert text.count(status) >= count
    assert "2 skipped" in first
    assert "needs origin" in text
    assert "2.000 ± 0.010" in text
    assert "1.8 … 2.2" in text


def test_markup_and_control_characters_are_text():
    instrument = Instrument(name="[red]i[/red]", question="q", read=lambda s: (), needs=set(), cost="free")
    reading = Reading(quantity="[bold]q[/bold]", measured=1.0, where="[/nonsense] a\x1b[31mb")
    text = as_text(
        survey_table([Answer(instrument, (reading,))], [Skipped("[blink]", "[link=x]why[/link]")]), width=140
    )
    for shown in ("[red]i[/red]", "[bold]q[/bold]", "[/nonsense] a�[31mb", "[blink]", "[link=x]why[/link]"):
        assert shown in text
    assert "\x1b" not in text


def test_in_a_notebook_a_text_is_returned_and_not_displayed(monkeypatch):
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert as_text("words") == "words\n"


def test_empty_survey():
    assert as_text(survey_table([], [])).strip() == ""


def test_width_is_kept_and_names_are_whole(survey):
    for width in (80, 100, 140):
        lines = as_text(survey_table(survey[1], survey[2]), width=width).splitlines()
        assert max(map(len, lines)) <= width
        for reading in (reading for answer in survey[1] for reading in answer.readings):
            assert len(reading.where) > 40 or any(reading.where in line for line in lines), reading.where


def test_law_explained(verdicts):
    text = as_text(explanation(verdicts["spread"].law, "", {"unknown-key": "A book."}))
    for part in (
        "spread",
        "kernels",
        "Fluctuations fall",
        "Var ∝ n⁻¹",
        "no experiment here breaks it",
        "A book.",
        "A textbook prints",
        "exponent of variance of a mean in width",
        "16 repeats",
        "tolerance 0.3",
        "width=128",
    ):
        assert part in text
    text = as_text(explanation(verdicts["gain"].law, "Own words.", {}))
    assert "broken by width=1" in text
    assert "he2015 (eq. 10)" in text
    assert "over that of its input" in text
    assert "Own words." in text
    assert "deterministic" in as_text(explanation(verdicts["powers"].law, "", {}))


def test_instrument_explained(survey):
    text = as_text(explanation(survey[1][1].question, "", {}))
    for part in ("signal", "How do signals travel?", "model", "forward passes", "some-law"):
        assert part in text


def test_the_list_and_every_explanation_are_free_of_tex():
    text = as_text(listing(catalogue.entries(), catalogue.topics()), width=100)
    assert "$" not in text and "\\" not in text
    references = catalogue.references()
    for entry in catalogue.entries():
        if entry.kind == "ailment":
            found = ailment_explanation(entry.name, catalogue.ailment_facts(entry.name), entry.docstring)
        else:
            found = explanation(catalogue.stated(entry.name), entry.docstring, references)
        told = as_text(found, width=80)
        for sign in ("$", "\\", "^{", "_{"):
            assert sign not in told, f"{entry.name}: {told}"
