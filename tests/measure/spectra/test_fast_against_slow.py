"""What is measured of entries in fewer passes, beside the plain way to write it."""

import math

import numpy as np
import pytest

from theodolite.measure.propagation.weight_spread import mean_square
from theodolite.measure.spectra import bulk, entries, entry_tails


def drawn(law, dtype):
    random = np.random.default_rng(3)
    made = {
        "gauss": lambda: 0.05 * random.standard_normal((300, 250)),
        "heavy": lambda: random.standard_t(3, (300, 250)),
        "shifted": lambda: 0.05 * random.standard_normal((300, 250)) + 7.0,
        "signs": lambda: random.choice([-1.0, 1.0], (300, 250)) + 1e-3 * random.standard_normal((300, 250)),
        "zeros": lambda: np.where(random.random((300, 250)) < 0.9, -0.0, random.standard_normal((300, 250))),
    }
    return made[law]().astype(dtype)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("law", ["gauss", "heavy", "shifted", "signs", "zeros"])
def test_moments_of_one_pass_are_those_about_the_mean(law, dtype):
    matrix = drawn(law, dtype)
    values = matrix.astype(np.float64).reshape(-1)
    about = values - values.mean()
    assert entries.entry_kurtosis(matrix) == pytest.approx((about**4).mean() / (about**2).mean() ** 2, rel=1e-10)
    found = mean_square(matrix, 2.0)
    assert found.value == pytest.approx(2 * (values**2).mean(), rel=1e-12)
    assert found.stderr == pytest.approx(2 * (values**2).std() / math.sqrt(values.size), rel=1e-10)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("law", ["gauss", "heavy", "zeros"])
def test_scores_by_leading_bits_are_in_the_order_of_those_bits(law, dtype):
    flat = drawn(law, dtype).reshape(-1)
    wide = flat.astype(np.float64 if dtype == np.float64 else np.float32) + 0.0  # a zero has no sign
    raw = wide.view(f"i{wide.itemsize}")
    raw = raw ^ ((raw >> (8 * wide.itemsize - 1)) & np.iinfo(raw.dtype).max)
    cells = raw >> (8 * wide.itemsize - entries.BITS)
    scores = entries._scores(flat, np.random.default_rng(0))
    order = np.lexsort((scores, cells))
    assert (np.diff(scores[order]) >= 0).all()  # no score of a lower cell is above one of a higher
    assert np.sort(scores)[:: flat.size // 50] == pytest.approx(
        entries._quantiles(flat.size)[:: flat.size // 50], abs=0.02
    )


def test_newtons_steps_end_where_halving_does():
    for n, p in ((384, 384), (1536, 384), (30522, 384), (9, 8), (500, 499)):
        for first, last in ((p // 4, p - p // 4), (0, p // 2), (1, p - 1)):
            ratio = p / n

            def angle(below, ratio=ratio):
                low, high = 0.0, math.pi
                for _ in range(60):
                    middle = 0.5 * (low + high)
                    above = bulk._share_above(middle, ratio) < 1 - below
                    low, high = (middle, high) if above else (low, middle)
                return low

            top, bottom = angle(last / p), angle(first / p)
            moment = (bottom - top - math.sin(bottom) * math.cos(bottom) + math.sin(top) * math.cos(top)) / math.pi
            assert bulk._mean_between(n, p, first, last) == pytest.approx(n * moment * p / (last - first), rel=1e-9)


@pytest.mark.parametrize("size", [30, 4_000, 300_001])
def test_largest_entries_are_those_of_a_sort(size):
    flat = np.random.default_rng(1).standard_normal(size).astype(np.float32)
    assert entry_tails._largest(flat, 20).tolist() == np.argsort(-np.abs(flat), kind="stable")[:20].tolist()
