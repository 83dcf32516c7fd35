"""Deep linear networks with noisy targets: against no noise, and networks drawn from the prior."""

import math

import numpy as np
import pytest
import torch

import theodolite as th
from theodolite.core.statistics import mean_estimate


@pytest.fixture
def data():
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(6, 9, generator=generator, dtype=torch.float64)
    return x, x @ torch.randn(9, generator=generator, dtype=torch.float64)


def test_vanishing_noise_is_no_noise(data):
    x, y = data
    exact = th.bayes.LinearPosterior(x, y, widths=(9, 5))
    noisy = th.bayes.NoisyLinearPosterior(x, y, widths=(9, 5), noise_variance=1e-9)
    assert noisy.evidence.value == pytest.approx(exact.evidence.value, abs=1e-6)
    new = x + 1
    assert torch.allclose(noisy.predict(new).mean, exact.predict(new).mean, atol=1e-6)
    assert torch.allclose(noisy.predict(new).variance, exact.predict(new).variance, rtol=1e-5)


def test_noisy_evidence_and_predictions_agree_with_networks_drawn_from_the_prior():
    g = torch.Generator().manual_seed(0)
    x = torch.randn(5, 3, generator=g, dtype=torch.float64)
    x[1] = x[0]  # a repeated input, and more samples than features
    y = x.sum(1) + 0.3 * torch.randn(5, generator=g, dtype=torch.float64)
    found = th.bayes.NoisyLinearPosterior(x, y, widths=(4, 3), prior_variance=1.4, noise_variance=0.2)
    W1 = torch.randn(400_000, 4, 3, generator=g, dtype=torch.float64) * math.sqrt(1.4 / 3)
    W2 = torch.randn(400_000, 3, 4, generator=g, dtype=torch.float64) * math.sqrt(1.4 / 4)
    w3 = torch.randn(400_000, 1, 3, generator=g, dtype=torch.float64) * math.sqrt(1.4 / 3)
    theta = (w3 @ W2 @ W1)[:, 0]
    logs = -0.5 * ((y - theta @ x.T).square() / 0.2 + math.log(2 * math.pi * 0.2)).sum(1)
    weights = (logs - found.evidence.value).exp()
    drawn = mean_estimate(weights)
    assert abs(drawn.value - 1) < 4 * drawn.stderr
    assert drawn.stderr < 0.05
    new = torch.tensor([[0.5, -1.0, 2.0]], dtype=torch.float64)
    answers = theta @ new[0]
    predicted = found.predict(new, draws=20_000)
    mean = float((weights * answers).mean() / weights.mean())
    error = float((weights * (answers - mean)).std() / weights.mean()) / math.sqrt(len(answers))
    assert abs(mean - float(predicted.mean)) < 4 * error
    assert float(predicted.samples.mean()) == pytest.approx(float(predicted.mean), abs=0.02)
    assert float(predicted.samples.var()) == pytest.approx(float(predicted.variance), rel=0.05)


def test_noisy_evidence_stands_to_its_stated_error_for_wide_and_deep_networks(data):
    x, y = data
    for widths in ((2000,) * 20, (2,), (3, 500), (40,) * 10):
        found = th.bayes.NoisyLinearPosterior(x, y, widths=widths, noise_variance=0.3)
        assert found.evidence.stderr < 1e-8
        grid = found.scale.log_tau2
        from theodolite.theory.bayes import LinearNet, log_likelihood, log_scale_prior

        fine = np.linspace(grid[0] - 1, grid[-1] + 1, 4 * len(grid))  # wider and finer
        logs = log_scale_prior(LinearNet(9, widths), fine) + log_likelihood(fine, *found._spectrum, noise_variance=0.3)
        value = logs.max() + math.log(np.exp(logs - logs.max()).sum() * (fine[1] - fine[0]))
        assert value == pytest.approx(found.evidence.value, abs=1e-8)


def test_noisy_selection_on_real_data_with_more_samples_than_features():
    from sklearn.datasets import load_diabetes

    x, y = load_diabetes(return_X_y=True)
    x, y = (x - x.mean(0)) / x.std(0), (y - y.mean()) / y.std()
    found = th.bayes.NoisyLinearPosterior(x[:300], y[:300], noise_variance=0.5)
    shapes = found.select(depths=(0, 2), widths=(30, 100))
    assert len(shapes.candidates) == 3
    assert all(row.evidence.value < shapes.bound for row in shapes.candidates)
    error = (found.predict(x[300:]).mean - torch.as_tensor(y[300:])).square().mean()
    assert error < 0.6  # of a variance of 1


def test_noise_must_be_positive(data):
    with pytest.raises(ValueError, match="without noise take LinearPosterior"):
        th.bayes.NoisyLinearPosterior(*data, noise_variance=0.0)
