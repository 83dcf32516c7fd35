"""Terminal tables: numbers with sensible digits, statuses without color, nothing interpreted as markup."""

import math

import pytest

from theodolite import catalogue
from theodolite.core.instrument import Instrument
from theodolite.core.question import Answer, Skipped
from theodolite.core.reading import Band, Reading
from theodolite.report.overview import listing
from theodolite.report.survey_text import survey_summary, verdict_table
from theodolite.report.text import as_text, explanation, survey_table
from theodolite.report.words import expectation, number, printable, shortened, source_entries, worst_reading


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (3.56158, 0.00123, "3.5616 ± 0.0012"),
        (3.56155281, 0.0, "3.56155"),
        (12.0, 0.0, "12"),
        (-0.0, 0.0, "0"),
        (-0.001, 0.02, "−0.001 ± 0.020"),
        (-1e-9, 0.5, "0.00 ± 0.50"),
        (1234.5678, 12.3, "1235 ± 12"),
        (0.99996, 0.00999, "1.000 ± 0.010"),
        (2.5e-8, 3e-9, "(2.50 ± 0.30)×10⁻⁸"),
        (3.1e7, 2e5, "(3.100 ± 0.020)×10⁷"),
        (1e-12, 0.0, "1×10⁻¹²"),
        (1.0, 1e-15, "1 ± 1×10⁻¹⁵"),
        (0.0, 0.25, "0.00 ± 0.25"),
        (math.nan, 0.1, "not a number"),
        (-math.inf, 0.1, "−∞"),
        (1.5, math.nan, "1.5 ± ?"),
        (1.5, math.inf, "1.5 ± ∞"),
        (1.5, -1.0, "1.5 ± ?"),
    ],
)
def test_number(value, error, text):
    assert number(value, error) == text


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


def test_empty_survey():
    assert "0 agree" in as_text(survey_table([], []))


def test_width_is_kept_and_names_are_whole(survey):
    for width in (80, 100, 140):
        lines = as_text(survey_table(survey[1], survey[2]), width=width).splitlines()
        assert max(map(len, lines)) <= width
        for reading in (reading for answer in survey[1] for reading in answer.readings):
            assert len(reading.where) > 40 or any(reading.where in line for line in lines), reading.where


def test_what_was_skipped_for_one_reason_is_told_together():
    missing = "needs {}, which was not given"
    skips = [Skipped("kernel", missing.format("data, model")), Skipped("sharpness", missing.format("data, lr, model"))]
    text = as_text(survey_summary([], [*skips, Skipped("training-change", missing.format("origin"))]), width=80)
    assert "kernel, sharpness: need a model and its data" in text
    assert "training-change: needs origin" in text


def test_verdicts(verdicts):
    text = as_text(verdict_table(list(verdicts.values())), width=140)
    assert text.startswith("3 of 5 laws hold · 1 broken · 1 inconclusive")
    line = {row.split()[0]: row for row in text.splitlines() if row.split()}
    assert "✓ holds" in line["gain"]
    assert "✗ broken" in line["wrong"]
    assert "? inconclusive" in line["doubtful"]
    assert "spread †" in text
    assert "corrects the literature" in text
    assert "corrects the literature" not in as_text(verdict_table([verdicts["gain"]]))


def test_law_explained(verdicts):
    text = as_text(explanation(verdicts["spread"].law, references={"unknown-key": "A book."}))
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
    text = as_text(explanation(verdicts["gain"].law, documentation="Own words."))
    assert "broken by width=1" in text
    assert "he2015 (eq. 10)" in text
    assert "over that of its input" in text
    assert "Own words." in text
    assert "deterministic" in as_text(explanation(verdicts["powers"].law))


def test_instrument_explained(survey):
    text = as_text(explanation(survey[1][1].question))
    for part in ("signal", "How do signals travel?", "model", "forward passes", "some-law"):
        assert part in text


def test_worst_reading_prefers_trouble():
    calm = Reading(quantity="q", measured=1.0, expected=Band(0, 2))
    edge = Reading(quantity="q", measured=2.0, stderr=0.1, expected=Band(0, 2))
    far, near = (Reading(quantity="q", measured=value, expected=Band(0, 2)) for value in (9.0, 3.0))
    lost = Reading(quantity="q", measured=math.nan, expected=Band(0, 2))
    assert worst_reading([calm, edge]) is edge
    assert worst_reading([near, far, edge]) is far
    assert worst_reading([far, lost]) is lost
    assert worst_reading([]) is None


def test_words():
    assert expectation(None) == "–"
    assert expectation(Band(high=1e-9)) == "≤ 1×10⁻⁹"
    assert printable("a\u202eb\ud800\n") == "a�b�\n"
    assert len(shortened("x" * 99, 20)) == 20
    assert shortened("encoder.layers.11.attention.query", 20) != shortened("encoder.layers.12.attention.query", 20)
    assert source_entries("a, Theorem 3; b", {"a": "A."}) == ["A. (Theorem 3)", "b"]


def test_long_lists_show_what_tells_and_say_what_they_leave_out():
    many = [
        Reading(quantity="q", where=f"layer{k}", measured=float(k == 30), expected=Band(high=0.5)) for k in range(40)
    ]
    instrument = Instrument(question="?", read=lambda subject: (), needs=set(), cost="free", name="x")
    text = as_text(survey_table([Answer(instrument, tuple(many))], (), most=5))
    assert "layer30" in text
    assert "layer5 " not in text
    assert "35 more" in text
    assert as_text(survey_table([Answer(instrument, tuple(many))], ())).count("layer") == 40


@pytest.mark.parametrize("width", [80, 120])
def test_the_summary_has_one_row_a_quantity_and_whole_names_of_what_needs_attention(survey, width):
    _, answers, skipped, _ = survey
    text = as_text(survey_summary(answers, skipped), width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "1 of 12: 3" in text.replace("\n", " ")
    assert "encoder.layers.3.attention.query_key_value" in "".join(text.split())
    assert "encoder.layers.8.attention.query_key_value" not in "".join(text.split("needs attention")[0].split())


def test_the_summary_opens_with_the_diagnosis_and_names_at_most_twelve_places():
    from theodolite.verbs.diagnosis import Diagnosis

    many = tuple(Reading(quantity="q", where=f"l{n}", measured=2.0, expected=Band(0, 1)) for n in range(20))
    instrument = Instrument(question="?", read=lambda subject: (), needs=set(), cost="free", name="x")
    text = as_text(survey_summary([Answer(instrument, many)], (), diagnosis=Diagnosis("net", (), ("units-dead",))))
    assert text.startswith("✓ Healthy: ")
    assert "20 of 20: 2" in text
    assert "l11 " in text
    assert "l12 " not in text
    assert "and 8 more (--all)" in text


def test_leaving_chance_is_no_alarm():
    one = Reading(quantity="q", measured=2.0, expected=Band(0, 1), against="chance")
    instrument = Instrument(question="?", read=lambda subject: (), needs=set(), cost="free", name="x")
    text = as_text(survey_summary([Answer(instrument, (one,))], ()))
    assert "0 above" in text
    assert "1 not random" in text
    assert "needs attention" not in text


def test_the_list_and_every_explanation_are_free_of_tex():
    text = as_text(listing(catalogue.entries(), catalogue.topics()), width=100)
    assert "$" not in text and "\\" not in text
    references = catalogue.references()
    for entry in catalogue.entries():
        subject = getattr(catalogue, entry.kind)(entry.name)
        told = as_text(explanation(subject, references=references, documentation=entry.docstring), width=80)
        for sign in ("$", "\\", "^{", "_{"):
            assert sign not in told, f"{entry.name}: {told}"
