"""The largest factor by which a prediction could be off and the law still hold."""

import math

import pytest

from theodolite.core.law import Law
from theodolite.core.reading import Band, Estimate


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
