"""Axes: numbers at their places, round ticks within the ends, whatever the numbers."""

import math
import random
from itertools import pairwise

import pytest

from theodolite.report.drawing.scales import Scale, is_wide, named_scale, own_ticks, scale_of


@pytest.mark.parametrize("log", [False, True])
def test_shares_follow_the_values_from_end_to_end(log):
    scale = Scale(2.0, 32.0, log=log)
    assert scale.share(2.0) == 0 and math.isclose(scale.share(32.0), 1)
    assert math.isclose(scale.share(8.0), 0.5 if log else 0.2)
    assert scale.share(1e9) == 1.02 and scale.share(-1e9) == -0.02


def test_a_logarithmic_axis_shows_no_number_below_zero_and_none_shows_what_is_not_finite():
    assert not Scale(1, 10, log=True).shows(0.0) and Scale(1, 10).shows(0.0)
    assert not Scale(1, 10).shows(math.nan) and not Scale(1, 10).shows(math.inf)


def test_ticks_are_round_lie_within_and_are_evenly_apart():
    generator = random.Random(0)
    for _ in range(300):
        low = generator.uniform(-1, 1) * 10 ** generator.uniform(-6, 6)
        high = low + 10 ** generator.uniform(-3, 6)
        values = [value for value, _ in Scale(low, high).ticks()]
        assert 2 <= len(values) <= 7
        assert all(low - 1e-6 * (high - low) <= value <= high + 1e-6 * (high - low) for value in values)
        steps = [b - a for a, b in pairwise(values)]
        assert max(steps) - min(steps) < 1e-6 * (high - low) + 1e-9 * abs(high)
        digits = f"{steps[0]:.2e}"
        assert digits[:4] in ("1.00", "2.00", "2.50", "5.00"), digits


def test_logarithmic_ticks_are_parts_of_powers_of_ten_and_each_has_its_own_words():
    generator = random.Random(1)
    for _ in range(300):
        low = 10 ** generator.uniform(-12, 6)
        high = low * 10 ** generator.uniform(0.5, 20)
        ticks = Scale(low, high, log=True).ticks()
        assert 2 <= len(ticks) <= 8
        assert all(low <= value <= high for value, _ in ticks)
        assert len({words for _, words in ticks}) == len(ticks)


def test_ticks_that_differ_little_have_more_digits():
    assert [words for _, words in Scale(1000.0, 1000.4).ticks(5)] == ["1000", "1000.1", "1000.2", "1000.3", "1000.4"]


def test_names_stand_at_whole_numbers_and_are_thinned_and_shortened():
    few, many = named_scale(["a", "b"]), named_scale([f"block.{k}." + "x" * 60 for k in range(100)])
    assert few.ticks() == [(0.0, "a"), (1.0, "b")]
    assert [few.share(place) for place in (0, 1)] == [0.25, 0.75]
    assert len(many.ticks()) <= 14 and all(len(words) <= 22 for _, words in many.ticks())


def test_limits_hold_all_values_with_a_margin_and_never_fall_together():
    scale = scale_of([3.0, math.nan, 5.0, math.inf], margin=0.1)
    assert math.isclose(scale.low, 2.8) and math.isclose(scale.high, 5.2)
    for values in ([0.0], [7.0, 7.0], [], [1e300, -1e300], [3.0, 3.0 + 1e-12]):
        scale = scale_of(values)
        assert scale.low < scale.high
        assert all(0 <= scale.share(value) <= 1 for value in values)
    log = scale_of([0.0, -5.0, 10.0, 1000.0], log=True, margin=0.0)
    assert log.log and 0 < log.low < 10 < 1000 < log.high


def test_measured_places_are_ticks_where_they_are_few_and_apart():
    scale = scale_of([16, 32, 64], log=True)
    assert own_ticks([64, 16, 32, 32], scale) == (16, 32, 64)
    assert own_ticks([16, 16.1, 64], scale) == ()
    assert own_ticks(range(1, 20), scale_of(range(1, 20), log=True)) == ()
    assert own_ticks([16, 32, 64], scale_of([16, 32, 64])) == ()


def test_decades_are_wide_and_so_is_a_constant_factor():
    assert is_wide([1, 101]) and is_wide([2, 4, 8, 16]) and not is_wide([1, 2, 3]) and not is_wide([0, 1000])
