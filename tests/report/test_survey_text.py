"""The summary of a survey and the table of verdicts in a terminal."""

import pytest

from theodolite.core.instrument import Instrument
from theodolite.core.question import Answer, Skipped
from theodolite.core.reading import Band, Reading
from theodolite.report.survey_text import survey_summary, verdict_table
from theodolite.report.text import as_text


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
    assert "above" not in text
    assert "1 not random" in text
    assert "needs attention" not in text
