"""What can be shown: each form is written once, and holds what the result gives it."""

import json
import math
import sys
from dataclasses import dataclass

import pytest

from theodolite.core.checks import MissingPackageError
from theodolite.core.question import Answer, Question, Skipped
from theodolite.core.reading import Band, Reading
from theodolite.verbs._presented import PresentableAnswers, Sheet, laws_of

HIGH = Reading(quantity="edge", where="=first", measured=3.0, stderr=0.1, expected=Band(high=2.0), meaning="too <high>")
LOST = Reading(quantity="edge", where="second", measured=math.nan)
ANSWERS = (Answer(Question(question="How?", cost="free", laws=("zaslavsky", "none")), (HIGH, LOST)),)


@dataclass(frozen=True)
class TwoWords(PresentableAnswers):
    answers: tuple[Answer, ...] = ANSWERS

    def sheet(self):
        return Sheet(self.title, self.answers, (Skipped("other", "needs data"),), {"data": "none"})

    def document(self):
        return {"readings": self.rows()}


def test_rows_and_readings_are_those_of_all_answers():
    shown = TwoWords()
    assert shown.title == "Two words"
    assert shown.readings == (HIGH, LOST)
    assert [row["status"] for row in shown.rows()] == ["above", "invalid"]


def test_every_form_holds_every_reading(tmp_path):
    shown = TwoWords()
    document = json.loads(shown.json(tmp_path / "a.json"))
    assert json.loads((tmp_path / "a.json").read_text()) == document
    assert [row["measured"] for row in document["readings"]] == [3.0, None]
    assert [row["expected_low"] for row in document["readings"]] == [None, None]
    lines = shown.csv(tmp_path / "a.csv").read_text().splitlines()
    assert len(lines) == 3 and "'=first" in lines[1]  # no cell begins a formula
    assert list(shown.frame()["where"]) == ["=first", "second"]
    assert shown.html(tmp_path / "a.html") == (tmp_path / "a.html").read_text()
    for form in (shown.html(), shown._repr_html_()):
        assert "too &lt;high&gt;" in form and "too <high>" not in form
    assert all(word in shown.text() for word in ("edge", "second", "needs data"))
    assert str(shown) == shown.text()


def test_a_frame_without_pandas_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingPackageError, match="expected pandas"):
        TwoWords().frame()


def test_laws_are_told_in_one_line_and_unknown_ones_left_out():
    assert list(laws_of(ANSWERS)) == ["zaslavsky"]
