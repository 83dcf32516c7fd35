"""The largest entries, found in part of a tensor, against sorting all of it; the top singular value against the SVD."""

import numpy as np
import pytest
import torch

from theodolite.measure.spectra import gram_eigenvalues, normal_scores, score_eigenvalues
from theodolite.measure.spectra.entry_tails import _largest, entry_tail, top_singular_value


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


@pytest.mark.parametrize("scale", [1e-30, 1e-12, 1e-7, 1.0, 1e7, 1e12, 1e30])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_top_singular_value_at_any_scale_is_that_of_the_svd(scale, kind):
    m = np.random.default_rng(0).standard_normal((30, 20)).astype(kind)
    true = np.linalg.svd(m, compute_uv=False)[0]
    found = top_singular_value(m * kind(scale), rounds=300) / scale
    assert found == pytest.approx(true, rel=1e-4)
    assert top_singular_value(m * kind(scale)) / scale < true * (1 + 1e-5)  # from below, to single precision


def test_the_top_singular_value_of_a_complex_matrix_keeps_its_imaginary_part():
    random = np.random.default_rng(0)
    m = random.standard_normal((6, 4)) + 2j * random.standard_normal((6, 4))
    true = np.linalg.svd(m, compute_uv=False)[0]
    assert top_singular_value(m, rounds=300) == pytest.approx(true, rel=1e-4)
    assert top_singular_value(torch.from_numpy(m), rounds=300) == pytest.approx(true, rel=1e-4)
    assert top_singular_value(1j * np.eye(3)) == pytest.approx(1.0, rel=1e-6)


def test_the_top_singular_value_of_what_is_not_finite_is_not_finite():
    m = np.eye(3, dtype=np.float32)
    m[0, 1] = np.nan
    assert np.isnan(top_singular_value(m))
    m[0, 1] = np.inf
    assert top_singular_value(m) == np.inf


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("size", [600, 400_003])
def test_a_tail_with_what_is_not_finite_in_it_is_refused(bad, size):
    values = np.random.default_rng(0).standard_normal((1, size)).astype(np.float32)
    for place in (0, size // 2, size - 1):
        spoilt = values.copy()
        spoilt[0, place] = bad
        with pytest.raises(ValueError, match="^expected finite entries"):
            entry_tail(spoilt)


@pytest.mark.parametrize("scale", [1e-30, 1e-12, 1e12, 1e30, 1e160])
def test_a_tail_does_not_depend_on_the_unit(scale):
    values = np.random.default_rng(0).standard_normal((20, 50))
    values[3, 4] = 40.0
    one, other = entry_tail(values), entry_tail(scale * values)
    assert (one.count, one.places) == (other.count, other.places) == (1, (154,))
    for name in ("ratio", "exponent", "height", "row_share"):
        assert getattr(other, name) == pytest.approx(getattr(one, name), rel=1e-9)
    assert other.body == pytest.approx(scale * one.body)


def test_outliers_are_no_part_of_what_their_height_is_told_in():
    readout = np.zeros((1, 128), dtype=np.float32)  # a sparse readout: few of its entries carry all of it
    readout[0] = 1e-3 * np.random.default_rng(0).standard_normal(128)
    readout[0, :4] = [0.9, -1.1, 1.3, 0.8]
    found = entry_tail(readout)
    assert found.height == pytest.approx(1.3 / np.sqrt(np.square(readout[0, 4:]).mean()), rel=1e-6)


def test_a_gap_wider_than_double_precision_is_a_number():
    values = np.full((10, 60), 1e-300)
    values[0, 0] = 1e300
    assert np.isfinite(entry_tail(values).ratio)


@pytest.mark.parametrize("shape", [(128, 1), (1, 128), (128,), (128, 1, 1, 1)])
def test_an_entry_alone_in_its_row_makes_up_no_more_of_it(shape):
    values = 0.001 * torch.randn(128, generator=torch.Generator().manual_seed(0))
    values[[3, 50, 90]] = torch.tensor([0.1, -0.1, 0.1])
    assert entry_tail(values.reshape(shape)).row_share == pytest.approx(1 / 3, rel=0.01)
