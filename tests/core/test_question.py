"""Questions are checked when they are asked, and know what a subject lacks."""

import pytest
import torch

from theodolite.core.question import Answer, Question
from theodolite.core.reading import Reading
from theodolite.core.subject import Subject


@pytest.mark.parametrize("wrong", [{"cost": "dear"}, {"needs": {"luck"}}, {"sees": {"everything": 1}}])
def test_unknown_words_are_refused(wrong):
    with pytest.raises(ValueError, match="expected needs among"):
        Question(**{"question": "Why?", "cost": "free", **wrong})


def test_what_the_subject_has_not_is_missing():
    asked = Question(question="Why?", cost="hvp", needs={"model", "data", "lr"})
    assert asked.missing(Subject(torch.nn.Linear(2, 1))) == ("data", "lr")


def test_readings_without_a_known_digit_are_counted():
    readings = tuple(Reading(quantity="q", measured=1.0, stderr=error) for error in (0.5, 2.0, 0.0))
    assert Answer(Question(question="Why?", cost="free"), readings).unknown == 1
