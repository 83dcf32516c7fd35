"""The table of noise: what it says between, at and beyond its grid, and that fresh noise is seldom called structured."""

import math

import numpy as np
import pytest
from benchmarks.spectral_nulls import RATIOS, SIDES, STATISTICS, gaussian_spectrum, noise_statistics

from theodolite.theory.spectra import null_alpha, null_alpha_quantiles, null_quantiles, structure
from theodolite.theory.spectra import nulls as spectral_null
from theodolite.theory.spectra.nulls import PATH, PROBABILITIES, SHARES

PLACES = np.linspace(0.002, 0.998, 3000)


def test_the_table_is_small_and_complete():
    assert PATH.stat().st_size < 200_000
    stored = spectral_null._stored()
    assert tuple(stored["sides"]) == SIDES
    assert tuple(stored["ratios"]) == RATIOS
    for name in STATISTICS:
        values = np.array(stored["quantiles"][name])
        assert values.shape == (len(SIDES), len(RATIOS), len(PROBABILITIES))
        assert np.isfinite(values).all()


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("shape", [(8, 8), (100, 37), (64, 8192), (384, 384), (5000, 3000), (20_000, 9)])
def test_quantiles_are_monotone_and_do_not_care_for_transposition(statistic, shape):
    quantiles = null_quantiles(statistic, *shape, probabilities=np.linspace(0.002, 0.998, 40))
    assert (np.diff(quantiles) >= 0).all()
    assert quantiles == null_quantiles(statistic, *shape[::-1], probabilities=np.linspace(0.002, 0.998, 40))


def test_larger_matrices_are_given_larger_exponents():
    middles = [null_alpha_quantiles(p, p, probabilities=(0.5,))[0] for p in (8, 20, 64, 200, 1000, 2048, 4096, 8192)]
    assert (np.diff(middles) > 0).all()
    wide = [null_alpha_quantiles(64, 64 * r, probabilities=(0.5,))[0] for r in (1, 2, 10, 128, 500, 2000)]
    assert (np.diff(wide) > 0).all()


@pytest.mark.parametrize("significance", [0.02, 0.2])
def test_half_of_what_may_lie_outside_lies_beyond_each_end(significance):
    band = null_alpha(64, 512, significance=significance)
    for end in (band.low, band.high):
        below = np.interp(end, null_alpha_quantiles(64, 512, probabilities=PLACES), PLACES)
        assert min(below, 1 - below) == pytest.approx(significance / 2, rel=0.05)


def test_what_is_out_of_range_is_refused_or_said():
    with pytest.raises(ValueError, match="smaller side of at least 8"):
        null_alpha(7, 100)
    with pytest.raises(ValueError, match="statistic"):
        null_quantiles("beta", 20, 20)
    few = structure(5, 500, alpha=1.1, bulk_distance=0.9, excess=50.0)
    assert not few.at(0.05)
    assert "too few" in few.cause
    assert structure(50, 50, alpha=math.nan, bulk_distance=math.nan, excess=math.nan).p_value == 1.0


def test_small_p_values_go_on_beyond_the_table():
    far = [structure(100, 100, alpha=5.0, bulk_distance=0.02, excess=e).p_value for e in (0.0, 3.0, 6.0, 20.0, 1e4)]
    assert (np.diff(far) <= 0).all()
    assert 0 < far[2] < 0.005
    assert structure(100, 100, alpha=1.2, bulk_distance=0.02, excess=-1.0).cause == "heavy tail"
    assert structure(100, 100, alpha=5.0, bulk_distance=0.3, excess=-1.0).cause == "bulk"


def test_beyond_the_table_a_tail_goes_on_as_it_falls_between_the_last_two_quantiles():
    before, last = null_quantiles("excess", 100, 100, probabilities=PROBABILITIES[-2:])
    found = [
        structure(100, 100, alpha=math.nan, bulk_distance=math.nan, excess=excess).p_value / SHARES
        for excess in (before, last, 2 * last - before)
    ]
    few, fewer = 1 - PROBABILITIES[-2], 1 - PROBABILITIES[-1]
    assert found == pytest.approx([few, fewer, fewer**2 / few])


@pytest.mark.parametrize(("n", "p", "draws"), [(40, 20, 300), (80, 80, 300), (700, 90, 300), (3000, 3000, 12)])
def test_fresh_noise_lies_where_the_table_says(n, p, draws):
    random = np.random.default_rng(7)
    found = np.array([noise_statistics(n, p, random)[:-1] for _ in range(draws)])
    for k, name in enumerate(STATISTICS):
        low, high = null_quantiles(name, n, p, probabilities=(0.1, 0.9))
        inside = ((found[:, k] >= low) & (found[:, k] <= high)).mean()
        # three standard errors of the share, and the steps of what is counted (tails)
        assert inside > 0.8 - 3 * math.sqrt(0.16 / draws) - 0.03, name


def test_bidiagonal_draws_are_those_of_gaussian_matrices():
    random = np.random.default_rng(0)
    fast = np.array([gaussian_spectrum(30, 12, random) for _ in range(400)])
    slow = np.linalg.svd(random.normal(size=(400, 30, 12)), compute_uv=False)[:, ::-1] ** 2 / 30
    spread = slow.std(axis=0) * math.sqrt(2 / 400)
    assert (np.abs(fast.mean(0) - slow.mean(0)) < 4 * spread).all()


@pytest.mark.parametrize("statistic", STATISTICS)
def test_at_the_sides_of_the_table_quantiles_are_the_table_s(statistic):
    sides, table = spectral_null._stored()["sides"], spectral_null._table()[statistic]
    for place in (3, len(sides) // 2, len(sides) - 1):
        found = spectral_null._at_shape(statistic, sides[place], sides[place])
        assert found == pytest.approx(np.maximum.accumulate(table[place, 0]), rel=1e-12)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_beyond_the_table_some_statistics_grow_and_the_others_stay(statistic):
    last = spectral_null._stored()["sides"][-1]
    there, beyond = (spectral_null._at_shape(statistic, side, side) for side in (last, 4 * last))
    middle = len(there) // 2
    if statistic in spectral_null.GROWING:
        assert abs(beyond[middle] / there[middle] - 1) > 0.05
    else:
        assert beyond == pytest.approx(there, rel=1e-12)
