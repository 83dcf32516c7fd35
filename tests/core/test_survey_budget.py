"""What a survey may spend, and what one leaves for those after it."""

import pytest

from theodolite.core.budget import Allowance
from theodolite.core.survey_budget import LEAST, SurveyBudget


def test_what_one_leaves_is_for_those_after_it():
    shared = SurveyBudget.opened("10s").priced({"a": 1.0, "b": 1.0, "c": 6.0})
    assert shared.allowance("a", None).seconds == pytest.approx(10 / 3, rel=0.05)
    assert shared.allowance("b", None).seconds == pytest.approx(10 / 2, rel=0.05)  # a used next to nothing
    assert shared.allowance("c", None).seconds == pytest.approx(10, rel=0.05)
    assert SurveyBudget.opened(None).priced({"a": 1.0}).allowance("a", 7) == Allowance(samples=7)


@pytest.mark.parametrize(
    ("budget", "step", "whole", "each"),
    [
        ("60s", 0.016, 13.6, 4.08),  # a fast device: 850 of a thousand steps, 255 of three hundred for one instrument
        ("60s", 1e-4, 10.0, 3.0),  # a small network: some seconds whatever its steps take
        ("60s", 10.0, 60.0, 60.0),  # a slow machine: the budget
        ("15s", 0.016, 13.6, 4.08),
        ("240s", 0.016, 54.4, 16.32),  # who asks for more precision gets as many times more steps
        ("60s", 0.0, 60.0, 60.0),  # without a gradient there is no step
    ],
)
def test_work_is_capped_in_steps_of_training(budget, step, whole, each):
    shared = SurveyBudget.opened(budget).priced({"one": 0.0}, step=step)
    assert shared.spare() == pytest.approx(whole, rel=0.01)
    assert shared.allowance("one", None).seconds == pytest.approx(each, rel=0.01)


def test_steps_that_are_used_up_refuse_nothing_that_the_budget_pays():
    shared = SurveyBudget.opened("60s").priced({"dear": 30.0, "cheap": 0.0}, step=1e-4)
    assert shared.refusal("dear") == ""
    assert shared.allowance("dear", None).seconds == pytest.approx(33.0, rel=0.01)  # at the least what it takes
    late = SurveyBudget(60.0, shared.until - 20.0).priced({"cheap": 0.0}, step=1e-4)  # twenty seconds on
    assert late.spare() == 0.0
    assert late.allowance("cheap", None).seconds == pytest.approx(LEAST, rel=0.01)


def test_a_second_look_is_taken_where_time_was_left_and_it_would_be_longer():
    shared = SurveyBudget.opened("60s").priced({"wide": 0.0}, step=1e-4)  # ten seconds are ample
    assert shared.second(0.5, 1, None).seconds == pytest.approx(3.0, rel=0.01)
    assert shared.second(0.5, 2, 7).samples == 7
    assert shared.second(2.5, 1, None) is None  # no longer than the first
    assert SurveyBudget(60.0, shared.until - 20.0).priced({"wide": 0.0}, step=1e-4).second(0.1, 1, None) is None
    assert SurveyBudget.opened(None).second(0.1, 1, None) is None
