"""Covariances gathered in pieces against the whole, and the decay of known spectra."""

import math

import numpy as np
import pytest
import torch

from theodolite.measure.spectra import FeatureCovariance, feature_decay, feature_rows


def features_of(values, samples, seed=0):
    """Rows whose sample covariance has exactly these eigenvalues."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(samples, len(values), generator=generator, dtype=torch.float64)
    basis = torch.linalg.qr(x - x.mean(0))[0]
    turn = torch.linalg.qr(torch.randn(len(values), len(values), generator=generator, dtype=torch.float64))[0]
    return (basis * (torch.as_tensor(values) * (samples - 1)).sqrt()) @ turn


def power(exponent, count=150):
    return torch.arange(1, count + 1, dtype=torch.float64) ** -exponent


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_pieces_add_up_to_the_whole_whatever_the_offset(offset):
    x = features_of(power(1.0, 20), 500) + offset
    whole = torch.cov(x.T)
    pieces = [FeatureCovariance.of(part) for part in x.split([1, 99, 150, 250])]
    left = ((pieces[0] + pieces[1]) + pieces[2]) + pieces[3]
    right = pieces[0] + (pieces[1] + (pieces[2] + pieces[3]))
    for found in (left, right, FeatureCovariance.of(x)):
        assert found.count == 500
        torch.testing.assert_close(found.covariance, whole, rtol=1e-7, atol=1e-9)
        torch.testing.assert_close(found.mean, x.mean(0))


@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.0])
def test_exact_power_laws_have_their_exponent_and_no_error(exponent):
    x = features_of(power(exponent), 400)
    for given in (x, FeatureCovariance.of(x[:100]) + FeatureCovariance.of(x[100:])):
        decay = feature_decay(given)
        assert decay.alpha == pytest.approx(exponent, abs=1e-8)
        assert decay.stderr < 1e-6
        assert decay.r_squared == pytest.approx(1.0)
        assert (decay.low, decay.high) == pytest.approx((exponent, exponent), abs=1e-8)
        assert decay.window == (11, 100)
        assert not decay.note


def test_weights_error_and_windows_against_a_general_regression():
    values = np.asarray(power(1.0)) * np.exp(0.3 * np.sin(np.arange(150)))
    decay = feature_decay(features_of(np.sort(values)[::-1].copy(), 600), window=(5, 60))
    ordered = np.sort(values)[::-1][4:60]
    rank = np.arange(5, 61)
    X = np.stack([np.ones(56), -np.log(rank)], axis=1)
    W = np.diag(1 / rank)
    beta = np.linalg.solve(X.T @ W @ X, X.T @ W @ np.log(ordered))
    left = np.log(ordered) - X @ beta
    error = np.sqrt(left @ W @ left / 54 * np.linalg.inv(X.T @ W @ X)[1, 1])
    assert (decay.alpha, decay.stderr) == pytest.approx((beta[1], error))
    assert decay.low < decay.alpha < decay.high


def test_reptrix_rule_counts_from_zero():
    values = np.sort(np.asarray(power(1.0)) * np.exp(0.3 * np.sin(np.arange(150))))[::-1].copy()
    decay = feature_decay(features_of(values, 600), window=(11, 100), rule="reptrix")
    index = np.arange(11, 100)
    slope = np.polyfit(np.log(index + 1), np.log(values[index]), 1, w=(index + 1) ** -0.5)[0]
    assert decay.alpha == pytest.approx(-slope, rel=1e-6)
    assert decay.window == (12, 100)
    assert 0.9 < decay.r_squared < 1


def test_participation_ratio_of_equal_directions_is_their_number():
    assert feature_decay(features_of(np.ones(30), 200)).participation_ratio == pytest.approx(30)


def test_few_samples_are_said_and_very_few_give_no_fit():
    x = features_of(power(1.0, 40), 400)[:30]
    decay = feature_decay(x, window=(3, 100))
    assert "rank at most 29" in decay.note
    assert decay.window == (3, 29)
    assert math.isnan(feature_decay(x[:8]).alpha)
    assert "too few" in feature_decay(x[:8]).note
    assert math.isnan(feature_decay(torch.ones(50, 5)).alpha)


def test_what_cannot_be_fitted_is_refused():
    with pytest.raises(ValueError, match="rule"):
        feature_decay(torch.zeros(5, 5), rule="mine")
    with pytest.raises(ValueError, match="first < last"):
        feature_decay(torch.zeros(5, 5), window=(9, 3))
    with pytest.raises(ValueError, match="feature_rows"):
        FeatureCovariance.of(torch.zeros(2, 3, 4))
    with pytest.raises(ValueError, match="two axes"):
        feature_rows(torch.zeros(3))


def test_rows_of_convolutional_and_token_features():
    image = torch.arange(24.0).reshape(2, 3, 2, 2)
    torch.testing.assert_close(feature_rows(image), image.mean((2, 3)))
    assert feature_rows(image, positions="each").shape == (8, 3)
    torch.testing.assert_close(feature_rows(image, positions="each")[1], image[0, :, 0, 1])
    tokens = torch.arange(24.0).reshape(2, 3, 4)
    torch.testing.assert_close(feature_rows(tokens), tokens.mean(1))
