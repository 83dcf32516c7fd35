import math

import numpy as np
import pytest
import torch
from torch.distributions import MultivariateNormal

import theodolite as th
from theodolite.core.statistics import mean_estimate


@pytest.fixture
def data():
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(6, 9, generator=generator, dtype=torch.float64)
    return x, x @ torch.randn(9, generator=generator, dtype=torch.float64)


def test_evidence_is_the_density_of_the_targets(data):
    x, y = data
    flat = th.bayes.LinearPosterior(x, y, widths=(), prior_variance=1.7)
    truth = MultivariateNormal(torch.zeros(6).double(), 1.7 / 9 * x @ x.T).log_prob(y)
    assert flat.evidence.value == pytest.approx(float(truth), abs=1e-11)
    deep = th.bayes.LinearPosterior(x, y, widths=(5, 4), prior_variance=1.7)
    g = torch.Generator().manual_seed(0)
    first, last = torch.randn(100_000, 5, 4, generator=g).double(), torch.randn(100_000, 4, generator=g).double()
    tau2 = 1.7**3 / (9 * 5 * 4) * torch.einsum("bij,bj->bi", first, last).square().sum(1)
    norm2 = float(y @ torch.linalg.solve(x @ x.T, y))
    logs = -3 * (2 * math.pi * tau2).log() - norm2 / (2 * tau2) - 0.5 * torch.logdet(x @ x.T)
    drawn = mean_estimate((logs - deep.evidence.value).exp())
    assert abs(drawn.value - 1) < 3 * drawn.stderr
    assert drawn.stderr < 0.05


def test_predictions_interpolate_and_draws_have_the_mean_and_variance(data):
    x, y = data
    found = th.bayes.LinearPosterior(x, y, widths=(12, 8))
    at_samples = found.predict(x, draws=5)
    assert torch.allclose(at_samples.mean, y)
    assert not at_samples.variance.any()
    assert torch.allclose(at_samples.samples, y.expand(5, -1))
    new = torch.randn(3, 9, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    many = found.predict(new, draws=40_000, generator=torch.Generator().manual_seed(2))
    for column in range(3):
        mean = mean_estimate(many.samples[:, column])
        variance = mean_estimate((many.samples[:, column] - many.mean[column]).square())
        assert abs(mean.value - float(many.mean[column])) < 4 * mean.stderr
        assert abs(variance.value - float(many.variance[column])) < 4 * variance.stderr


def test_draws_are_repeatable_and_leave_the_global_state_alone(data):
    found, before = th.bayes.LinearPosterior(*data, widths=(4,)), torch.get_rng_state()
    assert torch.equal(found.predict(data[0] + 1).samples, found.predict(data[0] + 1).samples)
    assert torch.equal(before, torch.get_rng_state())


def test_as_many_samples_as_features_leave_nothing_open():
    x = torch.eye(3) + 0.1
    found = th.bayes.LinearPosterior(x, [1.0, 2.0, 3.0], widths=(5,))
    assert found.predict(torch.randn(2, 3, generator=torch.Generator().manual_seed(0))).variance.abs().max() < 1e-20


def test_selection_prefers_depth_where_the_scale_is_wrong_and_no_shape_once_tuned(data):
    x, y = data
    wrong = th.bayes.LinearPosterior(x, 6 * y, widths=())
    shapes = wrong.select(depths=(0, 1, 3), widths=(20, 80))
    assert len(shapes.candidates) == 5  # depth 0 counts once
    assert shapes.best.widths == (20, 20, 20)
    assert sum(row.posterior_weight for row in shapes.candidates) == pytest.approx(1)
    alone = th.bayes.LinearPosterior(x, 6 * y, widths=(80,))
    assert next(r for r in shapes.candidates if r.widths == (80,)).evidence == alone.evidence
    tuned = wrong.select(depths=(0, 1, 3), widths=(20, 80), tune=True)
    assert tuned.best.widths == ()
    assert tuned.best.evidence.value == pytest.approx(tuned.bound)
    assert str(tuned).count("\n") == 6
    assert "no prior on the scale exceeds" in str(tuned)


def test_prior_variance_none_takes_the_best(data):
    best = th.bayes.LinearPosterior(*data, widths=(30, 30), prior_variance=None)
    for factor in (0.9, 1.1):
        other = th.bayes.LinearPosterior(*data, widths=(30, 30), prior_variance=best.prior_variance * factor)
        assert other.evidence.value < best.evidence.value
    assert best.effective_depth == pytest.approx(6 * 2 / 30)


def test_real_regression_data():
    from sklearn.datasets import load_diabetes
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    x, y = load_diabetes(return_X_y=True)
    x = StandardScaler().fit_transform(PolynomialFeatures(2, include_bias=False).fit_transform(x))
    found = th.bayes.LinearPosterior(x[:40], (y[:40] - y.mean()) / y.std(), widths=(100,) * 3)
    assert found.evidence.stderr < 1e-8
    assert math.isfinite(found.predict(x[40:50]).variance.sum())


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        (np.random.default_rng(0).normal(size=(5, 3)), np.ones(5), "at most as many samples as features"),
        (
            np.array([[1.0, 2, 3], [0, 1, 0], [1, 2, 3]]),
            np.ones(3),
            "the same in samples 0 and 2.*NoisyLinearPosterior",
        ),
        (np.array([[1.0, 2, 3], [2, 4, 6]]), np.ones(2), "2 samples of rank 1; drop 1"),
        (np.eye(2, 3), np.zeros(2), "not all zero"),
        (np.eye(2, 3), np.ones((2, 2)), "one at a time"),
        (np.array([[np.nan, 1.0]]), np.ones(1), "finite"),
        (np.eye(2, 3), np.ones(3), "one target a sample"),
    ],
)
def test_data_that_cannot_be_interpolated_is_refused_with_words(x, y, words):
    with pytest.raises(ValueError, match=words) as caught:
        th.bayes.LinearPosterior(x, y)
    assert str(caught.value).startswith("expected")
    assert "\n" not in str(caught.value)


def test_other_bad_input(data):
    with pytest.raises(ValueError, match="positive prior variance"):
        th.bayes.LinearPosterior(*data, prior_variance=0.0)
    with pytest.raises(ValueError, match="expected inputs of shape"):
        th.bayes.LinearPosterior(*data).predict(torch.ones(2, 4))
    with pytest.raises(ValueError, match="at least one depth"):
        th.bayes.LinearPosterior(*data).select(depths=())


def test_column_targets_and_single_precision_are_taken(data):
    x, y = data
    found = th.bayes.LinearPosterior(x.float(), y.float()[:, None], widths=(5,))
    assert found.evidence.value == pytest.approx(th.bayes.LinearPosterior(x, y, widths=(5,)).evidence.value, abs=1e-3)
