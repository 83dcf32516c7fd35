"""The largest entries and the middle one, found in part of a tensor, against sorting all of it."""

import numpy as np
import pytest

from theodolite.measure.spectra import gram_eigenvalues, normal_scores, score_eigenvalues
from theodolite.measure.spectra.entry_tails import _largest, _middle, entry_tail


@pytest.mark.parametrize("size", [60, 239, 5000, 70_001, 400_000])
@pytest.mark.parametrize("kind", ["normal", "few levels", "rising"])
def test_the_largest_sizes_are_those_of_a_sort(size, kind):
    random = np.random.default_rng(size)
    flat = random.standard_normal(size).astype(np.float32)
    if kind == "few levels":
        flat = np.round(flat)
    elif kind == "rising":
        flat = np.sort(flat)
    found = _largest(flat, 59)
    assert np.array_equal(np.abs(flat[found]), np.sort(np.abs(flat))[::-1][:59])
    assert len(set(found.tolist())) == 59


@pytest.mark.parametrize("size", [1, 2, 64, 65, 1000, 100_001])
@pytest.mark.parametrize("kind", ["normal", "rising", "every 64th apart", "one level"])
def test_the_middle_one_is_that_of_a_sort(size, kind):
    sizes = np.abs(np.random.default_rng(size).standard_normal(size)).astype(np.float32)
    if kind == "rising":
        sizes = np.sort(sizes)
    elif kind == "every 64th apart":  # those that are looked at first tell nothing of the rest
        sizes[::64] += 100
    elif kind == "one level":
        sizes[:] = 1
    assert _middle(sizes) == np.sort(sizes)[(size - 1) // 2]


def test_a_tensor_whose_sample_is_zero_has_no_tail():
    values = np.zeros(400_000, dtype=np.float32)
    values[1::4000] = 1.0
    assert entry_tail(values.reshape(400, 1000)) is None


@pytest.mark.parametrize("shape", [(900, 300), (100, 3000), (200, 200), (30_000, 8)])
def test_eigenvalues_of_scores_are_those_of_double_precision(shape):
    random = np.random.default_rng(0)
    scores = normal_scores(random.standard_t(3, shape), generator=random)
    found, exact = score_eigenvalues(scores), gram_eigenvalues(scores)
    assert np.abs(found - exact).max() <= 2e-6 * exact.min() if max(shape) >= 2 * min(shape) else (found == exact).all()
