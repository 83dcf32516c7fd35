"""Time as a budget: words for it, shares of it, and what cannot be afforded."""

import math

import numpy as np
import pytest

from theodolite.core.budget import Allowance, Pace, budget_seconds
from theodolite.core.statistics import left_out_errors, parted_error
from theodolite.core.survey_budget import LEAST, SurveyBudget


@pytest.mark.parametrize(
    ("said", "seconds"), [("60s", 60), ("2m", 120), (15, 15), ("1.5", 1.5), ("1h", 3600), (None, math.inf)]
)
def test_words_for_a_budget(said, seconds):
    assert budget_seconds(said) == seconds


@pytest.mark.parametrize("said", ["soon", "-3s", 0, "5 days"])
def test_other_words_are_refused(said):
    with pytest.raises(ValueError, match="expected a budget such as 60s"):
        budget_seconds(said)


def test_samples_fit_the_time_left_and_never_exceed_the_data():
    pace = Pace({"gradient": 0.5}, samples=100)
    assert pace.affordable("gradient", Allowance(), passes=7) == 100
    assert pace.affordable("gradient", Allowance(samples=12), passes=7) == 12
    assert 18 <= pace.affordable("gradient", Allowance.starting_now(20.0), passes=2) <= 20
    assert pace.affordable("gradient", Allowance.starting_now(0.0), passes=2) == 1
    assert pace.price({"gradient": 8, "features": 3}) == 4.0


def test_what_costs_more_than_is_left_is_refused_with_its_price():
    shared = SurveyBudget.opened("10s").priced({"cheap": 0.0, "dear": 340.0, "fair": 2.0})
    assert shared.refusal("cheap") == shared.refusal("fair") == ""
    assert "would take 340 s" in shared.refusal("dear")
    assert "--budget 410s" in shared.refusal("dear")
    assert SurveyBudget.opened(None).priced({"dear": 1e9}).refusal("dear") == ""


def test_what_one_leaves_is_for_those_after_it():
    shared = SurveyBudget.opened("10s").priced({"a": 1.0, "b": 1.0, "c": 6.0})
    assert shared.allowance("a", None).seconds == pytest.approx(10 / 3, rel=0.05)
    assert shared.allowance("b", None).seconds == pytest.approx(10 / 2, rel=0.05)  # a used next to nothing
    assert shared.allowance("c", None).seconds == pytest.approx(10, rel=0.05)
    assert SurveyBudget.opened(None).priced({"a": 1.0}).allowance("a", 7) == Allowance(samples=7)


def test_errors_of_thinned_data_cover_the_whole_as_often_as_they_say():
    """A mean, which has no bias, and a maximum-like one that has: the root mean square of few samples about their mean."""
    generator = np.random.default_rng(0)
    whole = generator.standard_normal(400) ** 2
    hits = 0
    for _ in range(200):
        seen = generator.choice(whole, 60, replace=False)
        (error,) = left_out_errors(lambda rows, seen=seen: [seen[rows].mean()], 60, of=400)
        hits += abs(seen.mean() - whole.mean()) <= 3 * error
    assert hits >= 194
    assert left_out_errors(lambda rows: [whole[rows].std()], 400, of=400) == (0.0,)


def test_errors_by_parts_vanish_with_what_is_left_out():
    assert parted_error(1.0, [0.5, 1.5, 0.9, 1.1], left_out=0.0) == 0.0
    small, large = (parted_error(1.0, [0.5, 1.5, 0.9, 1.1], left_out=share) for share in (0.1, 0.9))
    assert large == pytest.approx(3 * small)
    assert parted_error(6.0, [], left_out=0.5) == 2.0


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


def test_a_pass_has_a_start_that_few_samples_pay_too():
    pace = Pace({"product": 0.001}, samples=256, starts={"product": 0.1}, batch=64)
    assert pace.pass_seconds("product", 100) == pytest.approx(0.2)
    assert pace.affordable("product", Allowance.starting_now(20.0), passes=100) == pytest.approx(100, abs=2)
    assert pace.affordable("product", Allowance.starting_now(5.0), passes=100) == 1  # the starts alone take longer
    assert pace.price({"product": 8}) == pytest.approx(0.208)
    assert Pace({"gradient": 0.001}, samples=9, starts={"gradient": 0.1}, batch=64).step() == pytest.approx(0.164)


def test_a_second_look_is_taken_where_time_was_left_and_it_would_be_longer():
    shared = SurveyBudget.opened("60s").priced({"wide": 0.0}, step=1e-4)  # ten seconds are ample
    assert shared.second(0.5, 1, None).seconds == pytest.approx(3.0, rel=0.01)
    assert shared.second(0.5, 2, 7).samples == 7
    assert shared.second(2.5, 1, None) is None  # no longer than the first
    assert SurveyBudget(60.0, shared.until - 20.0).priced({"wide": 0.0}, step=1e-4).second(0.1, 1, None) is None
    assert SurveyBudget.opened(None).second(0.1, 1, None) is None
