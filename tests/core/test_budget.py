"""Time as a budget: words for it, shares of it, and what cannot be afforded."""

import math

import pytest

from theodolite.core.budget import Allowance, Pace, budget_seconds
from theodolite.core.survey_budget import SurveyBudget


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
    assert 18 <= pace.affordable("gradient", Allowance(20.0), passes=2) <= 20
    assert pace.affordable("gradient", Allowance(0.0), passes=2) == 1
    assert pace.price({"gradient": 8, "features": 3}) == 4.0


def test_what_costs_more_than_is_left_is_refused_with_its_price():
    shared = SurveyBudget.opened("10s").priced({"cheap": 0.0, "dear": 340.0, "fair": 2.0})
    assert shared.refusal("cheap") == shared.refusal("fair") == ""
    assert "would take about 340 s" in shared.refusal("dear")
    assert "--budget 420s" in shared.refusal("dear")
    assert SurveyBudget.opened(None).priced({"dear": 1e9}).refusal("dear") == ""


def test_a_pass_has_a_start_that_few_samples_pay_too():
    pace = Pace({"product": 0.001}, samples=256, starts={"product": 0.1}, batch=64)
    assert pace.pass_seconds("product", 100) == pytest.approx(0.2)
    assert pace.affordable("product", Allowance(20.0), passes=100) == pytest.approx(100, abs=2)
    assert pace.affordable("product", Allowance(5.0), passes=100) == 1  # the starts alone take longer
    assert pace.price({"product": 8}) == pytest.approx(0.208)
    assert Pace({"gradient": 0.001}, samples=9, starts={"gradient": 0.1}, batch=64).step() == pytest.approx(0.164)


def test_a_device_computes_while_it_is_called():
    pace = Pace({"product": 0.001}, samples=256, starts={"product": 0.1}, overlaps=True)
    assert pace.pass_seconds("product", 50) == 0.1
    assert pace.pass_seconds("product", 200) == pytest.approx(0.2)
    assert pace.affordable("product", Allowance(20.0), passes=100) == 200
    assert pace.affordable("product", Allowance(5.0), passes=100) == 1
