"""The machinery of laws, on laws whose truth is known."""

import math

import pytest
import torch

from theodolite.core.law import Law
from theodolite.core.reading import Band, Estimate


def coin(p, *, generator, bias=0.0):
    return torch.bernoulli(torch.full((500,), p + bias), generator=generator).numpy()


FAIR = Law(
    claim="A coin of probability p shows heads in a share p of throws.",
    formula="p",
    assumes={"an honest coin": {"bias": 0.2}, "independent throws": None},
    source="none",
    predict=lambda p: p,
    measure=coin,
    cases=({"p": 0.3}, {"p": 0.6}),
    full=({"p": 0.5},),
    tolerance=0.15,
    name="coin",
)


def test_a_true_law_holds_and_its_broken_assumption_breaks_it():
    assert FAIR.check().holds
    broken = FAIR.check(breaking="an honest coin")
    assert not broken.holds
    assert broken.broken


def test_an_assumption_that_cannot_be_broken_is_refused():
    with pytest.raises(ValueError, match="expected one of the assumptions"):
        FAIR.check(breaking="independent throws")
    with pytest.raises(ValueError, match="expected one of the assumptions"):
        FAIR.check(breaking="nonsense")


def test_the_seed_of_a_case_depends_on_seed_and_case_alone():
    first, second = FAIR.measured({"p": 0.3}, seed=1), FAIR.measured({"p": 0.3}, seed=1)
    assert first == second
    assert FAIR.measured({"p": 0.3}, seed=2) != first
    assert FAIR.check(seed=1).readings[0].measured == first.value


def test_full_size_adds_cases_and_draws():
    quick, full = FAIR.check(), FAIR.check(size="full")
    assert len(full.readings) == len(quick.readings) + 1
    assert full.readings[0].stderr < 0.5 * quick.readings[0].stderr


def test_errors_cover_what_they_say():
    """The mean of 8 draws ± 3 inflated errors misses the truth in 0.27 % of trials: at 1,000 trials 2.7 ± 1.6."""
    law = Law(
        claim="",
        formula="",
        assumes={},
        source="",
        predict=lambda i: 0.0,
        cases=({"i": 0},),
        measure=lambda i, *, generator: torch.randn((), generator=generator).item(),
    )
    missed = sum(abs(e.value) > 3 * e.stderr for e in (law.measured({"i": i}) for i in range(1000)))
    assert missed <= 8


def test_a_single_random_number_has_no_error_and_is_refused():
    law = Law(
        claim="",
        formula="",
        assumes={},
        source="",
        predict=lambda: 0.0,
        cases=({},),
        repeats=1,
        measure=lambda *, generator: torch.randn((), generator=generator).item(),
    )
    with pytest.raises(ValueError, match="expected at least two draws"):
        law.check()


def test_exponent_laws_fit_a_slope_with_its_error():
    def measure(n, *, generator, power=2.0):
        noise = torch.randn((), generator=generator).item()
        return 3 * n**power * (1 + 0.01 * noise)

    law = Law(
        claim="",
        formula="",
        assumes={"square": {"power": 1.5}},
        source="",
        predict=lambda: Band(1.9, 2.1),
        measure=measure,
        cases=tuple({"n": n} for n in (10, 30, 100, 300)),
        exponent="n",
        quantity="y",
    )
    verdict = law.check()
    (reading,) = verdict.readings
    assert verdict.holds
    assert abs(reading.measured - 2.0) < 4 * reading.stderr
    assert reading.series is not None
    assert reading.series.x == (10.0, 30.0, 100.0, 300.0)
    assert law.check(breaking="square").broken


def test_exponents_are_fitted_group_by_group():
    law = Law(
        claim="",
        formula="",
        assumes={},
        source="",
        predict=lambda p: p,
        tolerance=1e-9,
        exponent="n",
        measure=lambda n, p: float(n) ** p,
        cases=tuple({"n": n, "p": p} for p in (1, 2) for n in (1, 2, 4)),
    )
    verdict = law.check()
    assert [reading.where for reading in verdict.readings] == ["p=1", "p=2"]
    assert verdict.holds


def test_an_erratum_must_be_refuted_by_the_measurement():
    def law(wrong):
        return Law(
            claim="",
            formula="",
            assumes={},
            source="",
            predict=lambda: 1.0,
            measure=lambda: 1.0,
            cases=({},),
            tolerance=0.1,
            erratum="printed otherwise",
            refuted=lambda: wrong,
        )

    assert law(2.0).check().holds
    assert law(2.0).check().refuted[0].status == "below"
    assert not law(1.05).check().holds


def test_estimates_and_trouble():
    def law(measure):
        return Law(
            claim="", formula="", assumes={}, source="", predict=lambda: Band(0, 2), measure=measure, cases=({},)
        )

    assert law(lambda: Estimate(1.0, 0.1)).check().readings[0].stderr == 0.1
    assert law(lambda: math.nan).check().readings[0].status == "invalid"
    assert not law(lambda: math.nan).check().holds
    assert not law(lambda: Estimate(1.0, 0.5)).check().holds
    assert not law(lambda: Estimate(1.0, 0.5)).check().broken


def verdict_of(predictions, estimates, **more):
    law = Law(
        claim="",
        formula="",
        assumes={},
        source="",
        predict=lambda n: predictions[n],
        measure=lambda n: 0.0,
        cases=tuple({"n": n} for n in range(len(predictions))),
        **more,
    )
    return law.verdict(estimates)


def test_the_resolution_is_the_largest_factor_at_which_the_law_would_still_hold():
    verdict = verdict_of([2.0, -4.0], [Estimate(2.1), Estimate(-4.0)], tolerance=0.1)
    assert verdict.resolution == pytest.approx(
        1.1
    )  # 4 (1 + x) leaves 4 ± 0.4 at 1.1, and 2 / 1.1 ± 0.2 has left 2.1 before
    factor = verdict.resolution
    for scale in (factor * 1.001, 1 / factor / 1.1):
        scaled = [Band.around(2 * scale, abs=0.2), Band.around(-4 * scale, abs=0.4)]
        assert not verdict_of(scaled, [Estimate(2.1), Estimate(-4.0)]).holds


def test_errors_and_bounds_count_in_the_resolution():
    assert verdict_of([Band(high=6.0)], [Estimate(2.0)]).resolution == pytest.approx(3.0)
    assert verdict_of([Band(high=6.0)], [Estimate(2.0, 1 / 3)]).resolution == pytest.approx(2.0)
    assert verdict_of([Band(low=1.0)], [Estimate(5.0)]).resolution == pytest.approx(5.0)
    assert verdict_of([Band(high=-1.0)], [Estimate(-2.0)]).resolution == pytest.approx(2.0)
    assert verdict_of([Band(high=1.0)], [Estimate(0.0)]).resolution == math.inf


def test_zeros_signs_and_failures_have_no_resolution():
    assert verdict_of([0.0, Band(low=0.0)], [Estimate(0.0), Estimate(3.0)]).resolution is None
    assert verdict_of([1.0], [Estimate(2.0)]).resolution is None
    assert verdict_of([Band.around(0.0, abs=0.1), 1.0], [Estimate(0.05), Estimate(1.0)]).resolution == 1.0


def test_a_law_is_sharp_within_what_it_states():
    loose = [Band(0.7, 1.3)], [Estimate(1.0)]
    assert not verdict_of(*loose).sharp
    assert verdict_of(*loose, resolution=1.5).sharp
    assert not verdict_of([Band(high=4.0)], [Estimate(1.0)]).sharp
    assert verdict_of([Band(high=2.9)], [Estimate(1.0)]).sharp


def test_breaking_stops_at_the_first_reading_outside():
    seen = []

    def measure(n, *, wrong=False):
        seen.append(n)
        return 2.0 if wrong else 1.0

    law = Law(
        claim="",
        formula="",
        assumes={"right": {"wrong": True}},
        source="",
        predict=lambda n: 1.0,
        measure=measure,
        cases=tuple({"n": n} for n in range(4)),
        tolerance=0.1,
    )
    assert law.breaks("right")
    assert seen == [0]


def _noisy(offset, calls):
    def measure(n, *, generator):
        calls.append(n)
        return 1.0 + offset + 0.3 * float(torch.randn((), generator=generator, dtype=torch.float64))

    return Law(
        claim="one",
        formula="1",
        assumes={},
        source="none",
        predict=lambda n: 1.0,
        measure=measure,
        cases=({"n": 1}, {"n": 2}),
        tolerance=0.1,
        repeats=16,
    )


def test_an_inconclusive_case_is_repeated_until_it_is_decided():
    calls = []
    law = _noisy(0.0, calls)
    once = law.verdict([law.measured(case, seed=0) for case in law.cases])
    assert "inconclusive" in {r.status for r in once.readings}
    calls.clear()
    assert law.check(seed=0).holds
    assert 32 < len(calls) <= 2 * 16 * (1 + 4 + 16)


def test_what_lies_on_the_edge_stays_inconclusive_within_the_stated_bound():
    calls = []
    verdict = _noisy(0.1, calls).check(seed=0)
    assert not verdict.holds and not verdict.broken
    assert len(calls) == 2 * 16 * (1 + 4 + 16)


def test_a_decided_case_is_measured_once():
    calls = []
    assert _noisy(2.0, calls).check(seed=0).broken
    assert len(calls) == 2 * 16
