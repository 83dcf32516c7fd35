"""Errors of means that are skewed and of shares of few samples cover as often as they say."""

import math

import numpy as np
import pytest

from theodolite.core.standard_errors import share_error, skewed_error
from theodolite.core.statistics import mean_estimate


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
