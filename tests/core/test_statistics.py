import math

import numpy as np
import pytest
from scipy import stats

from theodolite.core.reading import Estimate
from theodolite.core.statistics import (
    left_out_errors,
    log_slope,
    mean_estimate,
    parted_error,
    pooled_estimate,
    share_error,
    skewed_error,
    student_inflation,
)


def test_student_inflation_is_the_ratio_of_quantiles():
    for draws in (2, 3, 8, 100):
        want = stats.t.ppf(stats.norm.cdf(3.0), draws - 1) / 3.0
        assert student_inflation(draws) == pytest.approx(want, rel=1e-9)
    assert student_inflation(10**6) == pytest.approx(1, abs=1e-4)


def test_mean_estimate_covers_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(0)
    draws = rng.normal(1.0, 2.0, (4000, 5))
    misses = sum(abs(e.value - 1.0) > 3 * e.stderr for e in map(mean_estimate, draws))
    assert misses / 4000 == pytest.approx(2 * stats.norm.sf(3.0), abs=0.003)


def test_one_draw_has_no_error():
    with pytest.raises(ValueError, match="two draws"):
        mean_estimate([1.0])
    with pytest.raises(ValueError, match="two draws"):
        pooled_estimate([1.0])
    assert pooled_estimate([1.0], certain=True) == Estimate(1.0)


def test_arrays_of_draws_are_one_sample():
    draws = np.random.default_rng(0).normal(size=60)
    assert pooled_estimate([draws[:20], draws[20:50], draws[50:]]) == mean_estimate(draws)


def test_estimates_are_pooled_with_the_larger_error():
    alike = pooled_estimate([Estimate(1.0, 0.3)] * 9)
    assert (alike.value, alike.stderr) == (1.0, pytest.approx(0.1))
    spread = pooled_estimate([Estimate(float(value), 0.01) for value in (0, 1, 2, 3)])
    assert spread.stderr > 0.5
    assert pooled_estimate([Estimate(2.0, 0.5, scale=3.0)]) == Estimate(2.0, 0.5, scale=3.0)


def test_log_slope_of_an_exact_power():
    x = [1.0, 2.0, 4.0, 8.0]
    exact = log_slope(x, [Estimate(3 * value**-1.5) for value in x])
    assert (exact.value, exact.stderr) == (pytest.approx(-1.5), pytest.approx(0, abs=1e-12))
    known = log_slope(x, [Estimate(value**2, 0.01 * value**2) for value in x])
    a = np.log(x)
    assert known.value == pytest.approx(2)
    assert known.stderr == pytest.approx(0.01 / np.sqrt(((a - a.mean()) ** 2).sum()))
    with pytest.raises(ValueError, match="three points"):
        log_slope(x[:2], [Estimate(1.0)] * 2)


def test_log_slope_grows_its_error_with_the_misfit():
    x = [1.0, 2.0, 4.0, 8.0, 16.0]
    bent = [Estimate(math.exp(-value), 1e-6 * math.exp(-value)) for value in x]
    assert log_slope(x, bent).stderr > 0.5


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


def test_a_skewed_mean_is_covered_where_a_plain_error_is_not():
    rng = np.random.default_rng(0)
    draws = rng.lognormal(0.0, 1.5, (1000, 60))
    truth = math.exp(1.5**2 / 2)
    plain = sum(abs(e.value - truth) <= 3 * e.stderr for e in map(mean_estimate, draws))
    skewed = sum(abs(row.mean() - truth) <= 3 * skewed_error(row) for row in draws)
    assert plain < 930
    assert skewed > 970


@pytest.mark.parametrize("hits", [0, 3, 40])
def test_a_share_of_few_samples_covers_that_of_all(hits):
    rng = np.random.default_rng(hits)
    whole = np.arange(400) < hits
    seen = [rng.choice(whole, 60, replace=False).mean() for _ in range(500)]
    covered = sum(abs(share - hits / 400) <= 3 * share_error(share, 60, of=400) for share in seen)
    assert covered >= 496
    assert share_error(0.0, 60, of=400) > 0
