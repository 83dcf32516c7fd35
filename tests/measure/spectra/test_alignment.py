"""Alignment of features: known answers, the unbiased estimate by brute force, and its null."""

import itertools

import pytest
import torch

from theodolite.measure.spectra.alignment import _dependence, feature_similarity, gram_matrix


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_the_estimate_is_the_mean_over_all_quadruples():
    k, l = drawn(7, 7), drawn(7, 7, seed=1)  # noqa: E741
    k, l = (k + k.T).fill_diagonal_(0), (l + l.T).fill_diagonal_(0)  # noqa: E741
    total = 0.0
    for i, j, q, r in itertools.permutations(range(7), 4):
        total += float(k[i, j] * (l[i, j] + l[q, r] - 2 * l[i, q]))
    assert float(_dependence(k, l)) / (7 * 4) == pytest.approx(total / (7 * 6 * 5 * 4))


def test_a_rotation_and_a_scale_change_nothing_and_a_squeeze_does():
    x = drawn(150, 6)
    turn = torch.linalg.qr(drawn(6, 6, seed=1))[0]
    assert feature_similarity(x, 0.01 * x @ turn).value == pytest.approx(1.0)
    assert feature_similarity(x, x * torch.tensor([9.0, 1, 1, 1, 1, 1])).value < 0.9


@pytest.mark.parametrize("width", [5, 500])
def test_features_with_nothing_in_common_are_at_chance_however_wide(width):
    values = [feature_similarity(drawn(60, width, seed=s), drawn(60, width, seed=100 + s)) for s in range(12)]
    mean = sum(found.value for found in values) / 12
    error = (sum(found.null_error**2 for found in values) ** 0.5) / 12
    assert abs(mean) < 3 * error
    x, y = drawn(60, 500), drawn(60, 500, seed=9)
    plain = (x - x.mean(0)) @ (x - x.mean(0)).T, (y - y.mean(0)) @ (y - y.mean(0)).T
    assert (plain[0] * plain[1]).sum() / (plain[0].norm() * plain[1].norm()) > 0.8  # the usual estimate says alike


def test_what_is_shared_is_beyond_chance():
    shared = drawn(80, 3)
    x, y = torch.cat([shared, drawn(80, 5, seed=1)], 1), torch.cat([shared, drawn(80, 5, seed=2)], 1)
    found = feature_similarity(x, y)
    assert found.p_value == 0.01 and found.value > found.null + 5 * found.null_error
    again = feature_similarity(x, y)
    assert again == found


def test_features_that_cannot_be_compared_are_refused_or_said():
    with pytest.raises(ValueError, match=r"got shapes \(10, 2\) and \(11, 2\)"):
        feature_similarity(drawn(10, 2), drawn(11, 2))
    with pytest.raises(ValueError, match="a row a sample"):
        feature_similarity(drawn(10, 2), drawn(10, 2)[:, 0])
    still = feature_similarity(torch.ones(20, 3), drawn(20, 3))
    assert still.value != still.value
    assert gram_matrix(drawn(5, 2)).diagonal().abs().sum() == 0
