"""What a survey may spend, and how it is shared out before the first instrument is read."""

import pytest

from theodolite.core.budget import Allowance
from theodolite.core.survey_budget import BUSY, LEAST, SurveyBudget


def test_shares_hang_on_prices_alone_and_use_all():
    shared = SurveyBudget.opened("10s").priced({"a": 1.0, "b": 1.0, "c": 1.0, "free": 0.0})
    a, b, c = (shared.allowance(name, None).seconds for name in "abc")
    assert a + b + c == pytest.approx(10)
    assert 2.5 < a < b < c < 4.5  # what the later ones need at the least is kept for them
    assert shared.shares["free"] > 2  # arithmetic is paid by nobody else
    assert SurveyBudget(10.0, shared.began - 5).priced(shared.prices).shares == shared.shares  # whatever the clock says
    assert SurveyBudget.opened(None).priced({"a": 1.0}).allowance("a", 7) == Allowance(samples=7)


@pytest.mark.parametrize(
    ("budget", "step", "whole", "each"),
    [
        ("60s", 0.05, 42.5, 12.75),  # a fast device: 850 of a thousand steps, 255 of three hundred for one instrument
        ("60s", 1e-4, 10.0, 3.0),  # a small network: some seconds whatever its steps cost
        ("60s", 10.0, 60.0, 60.0),  # a large one: the budget
        ("15s", 0.05, 15.0, 12.75),
        ("240s", 0.05, 170.0, 51.0),  # who asks for more precision gets as many times more steps
        ("60s", 0.0, 60.0, 60.0),  # without a gradient there is no step
    ],
)
def test_work_is_capped_in_steps_of_training(budget, step, whole, each):
    shared = SurveyBudget.opened(budget).priced({"one": 1e-9}, step=step)
    assert shared.whole == pytest.approx(whole, rel=0.01)
    assert shared.allowance("one", None).seconds == pytest.approx(each, rel=0.01)


def test_steps_that_are_used_up_refuse_nothing_that_the_budget_pays():
    shared = SurveyBudget.opened("60s").priced({"dear": 30.0, "cheap": 0.0, "last": 1000.0}, step=1e-4)
    assert shared.refusal("dear") == ""
    assert shared.allowance("dear", None).seconds == pytest.approx(33.0, rel=0.01)  # at the least what it costs
    assert shared.allowance("cheap", None).seconds >= LEAST
    assert "would take about 1000 s, but 27 s are left" in shared.refusal("last")


def test_the_clock_alone_ends_a_survey_far_beyond_its_budget():
    shared = SurveyBudget.opened("60s").priced({"cheap": 0.0})
    assert shared.refusal("cheap") == ""
    late = SurveyBudget(60.0, shared.began - 60 * BUSY).priced({"cheap": 0.0})
    assert "the survey has taken 3 times its budget of 60 s" in late.refusal("cheap")
    assert late.allowance("cheap", None).over()


def test_a_second_look_is_taken_where_it_would_be_longer():
    shared = SurveyBudget.opened("60s").priced({"wide": 0.1, **dict.fromkeys("abcdefghi", 0.1)}, step=1e-4)
    assert 1.2 < shared.shares["wide"] < 2  # of ten seconds, which are ample
    assert shared.second("wide", 1, None).seconds == pytest.approx(3.0)
    assert shared.second("wide", 1, 7).samples == 7
    assert shared.second("wide", 2, None) is None  # no longer than the first
    assert SurveyBudget.opened(None).priced({"wide": 0.1}).second("wide", 1, None) is None
