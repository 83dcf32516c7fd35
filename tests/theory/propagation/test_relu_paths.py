import math

import numpy as np
import pytest
import torch

from theodolite.construct.propagation import network
from theodolite.core.statistics import mean_estimate
from theodolite.measure.experiments import Ensemble, conditional_gradients, drawn_gradients
from theodolite.measure.kernels import empirical_ntk
from theodolite.theory import Mlp
from theodolite.theory.propagation import (
    gradient_second_moment,
    jacobian_fourth_moment,
    log_gradient_moments,
    log_gradient_variance,
    spread_factor,
    spread_words,
    width_for_spread,
)


def test_gaussian_moments_are_the_products():
    widths = (5, 8, 6, 4)
    product = math.prod(1 + 5 / n for n in widths)
    assert jacobian_fourth_moment(3, widths) == pytest.approx(12 / 9 * product)
    assert gradient_second_moment(3, widths) == pytest.approx((1 + 2 / 3) * product)


def test_moments_for_uniform_weights_agree_with_drawn_networks():
    kurtosis = 1.8
    ensemble = Ensemble(activation=torch.relu, widths=(9, 7), weight_variance=2.0, entries="uniform")
    x = torch.tensor([[1.0, 0.31, -0.73]], dtype=torch.float64)
    gradient, _ = drawn_gradients(ensemble, x, nets=60_000, generator=torch.Generator().manual_seed(0))
    one = mean_estimate(gradient[:, 0, 1].pow(4))
    assert abs(one.value - jacobian_fourth_moment(3, (9, 7), kurtosis=kurtosis)) < 4 * one.stderr
    norm = mean_estimate((gradient[:, 0].square().sum(1) / 2).square())
    assert abs(norm.value - gradient_second_moment(3, (9, 7), kurtosis=kurtosis)) < 4 * norm.stderr


@pytest.mark.parametrize("on", [0.5, 1.0])
def test_log_moments_agree_with_draws_of_the_factors(on):
    generator = np.random.default_rng(0)
    product, alive = generator.chisquare(4, 200_000) / 4, np.full(200_000, True)
    for n in (6, 11):
        k = generator.binomial(n, on, 200_000)
        product *= generator.chisquare(np.maximum(k, 1)) / (n * on)
        alive &= k > 0
    logs = np.log(product[alive])
    mean, variance = log_gradient_moments(4, (6, 11), on_probability=on)
    assert logs.mean() == pytest.approx(mean, abs=4 * math.sqrt(variance / len(logs)))
    assert logs.var() == pytest.approx(variance, rel=0.02)


def test_wide_networks_have_the_log_normal_of_the_literature():
    mean, variance = log_gradient_moments(10_000, (5000,) * 10)
    beta = 5 * 10 / 5000 + 2 / 10_000
    assert variance == pytest.approx(beta, rel=2e-3)
    assert mean == pytest.approx(-beta / 2, rel=2e-3)


@pytest.mark.parametrize(("activation", "bias"), [(torch.relu, 0.2), (torch.tanh, 0.1)])
def test_gradients_without_matrices_have_the_law_of_those_with(activation, bias):
    ensemble = Ensemble(activation=activation, widths=(10, 8), weight_variance=2.0, bias_variance=bias)
    x = torch.linspace(-1, 1.5, 5, dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    cheap = conditional_gradients(ensemble, x[None], nets=30_000, generator=generator)[0][:, 0]
    dear = drawn_gradients(ensemble, x[None], nets=30_000, generator=generator)[0][:, 0]
    pairs = [(g[:, 0] * g[:, 4], g[:, 2].square(), (g.square().sum(1) + 1e-3).log(), g @ x) for g in (cheap, dear)]
    for one, other in zip(*pairs, strict=True):
        a, b = mean_estimate(one), mean_estimate(other)
        assert abs(a.value - b.value) < 4 * math.hypot(a.stderr, b.stderr)


@pytest.mark.parametrize(("activation", "points", "width"), [("relu", 8, 5), ("gelu", 3, 12)])
def test_tangent_kernels_without_matrices_have_the_law_of_those_with(activation, points, width):
    spec, generator = Mlp(3, activation, 1.8, 0.1), torch.Generator().manual_seed(0)
    x = torch.randn(points, width, generator=generator, dtype=torch.float64)
    ensemble = Ensemble(activation=spec.sigma, widths=(width,) * 3, weight_variance=1.8, bias_variance=0.1)
    cheap = conditional_gradients(ensemble, x, nets=10_000, generator=generator)[1]
    nets = (network(spec, width, 1, width=width, generator=generator, dtype=torch.float64) for _ in range(300))
    dear = torch.stack([empirical_ntk(net, x) for net in nets])
    pairs = [(k[:, 0, 1], k[:, 2, 2].log(), torch.linalg.eigvalsh(k)[:, -1].log()) for k in (cheap, dear)]
    for one, other in zip(*pairs, strict=True):
        a, b = mean_estimate(one), mean_estimate(other)
        assert abs(a.value - b.value) < 4 * math.hypot(a.stderr, b.stderr)
    for k in (1, 2):  # the spread of 300 logarithms is known to 4 %, and these have heavier tails than a Gaussian
        assert pairs[0][k].std() == pytest.approx(pairs[1][k].std().item(), rel=0.2)


def test_other_ensembles_are_refused_without_matrices():
    copied = Ensemble(activation=torch.relu, widths=(4,), weight_variance=2.0, copies=2)
    with pytest.raises(ValueError, match="expected plain Gaussian weights"):
        conditional_gradients(copied, torch.ones(1, 3), nets=2, generator=torch.Generator())


def test_uniform_weights_spread_a_little_less():
    gauss = log_gradient_variance(64, (32, 32, 32))
    assert 0.7 * gauss < log_gradient_variance(64, (32, 32, 32), kurtosis=1.8) < gauss


def test_the_advised_width_is_the_least():
    wide = width_for_spread(12)
    for n, fits in ((wide, True), (wide - 1, False)):
        layers = log_gradient_moments(10**9, (n,) * 12)[1]
        assert (spread_factor(layers) <= 3) == fits


def test_words_advise_only_where_it_is_needed():
    assert "One learning rate works for every seed" in spread_words(3, 512, 0.05)
    assert f"widen to {width_for_spread(30)}" in spread_words(30, 20, 8.0)
    assert "the small number of inputs spreads it" in spread_words(3, 512, 2.0)
    assert "widen to 225" in spread_words(20, 100, 1.0, relu=False)
