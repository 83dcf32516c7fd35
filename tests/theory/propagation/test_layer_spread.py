"""The spread of one finite layer, against many random layers."""

import pytest
import torch

from theodolite.theory.propagation import correlation_spread, critical_band, signal_spread


@pytest.mark.parametrize(("activation", "function"), [("tanh", torch.tanh), ("relu", torch.relu)])
def test_spread_of_the_norm_behind_a_random_layer(activation, function):
    """4,000 random layers: the standard deviation is known to 1.1 %, so 5 % is over four of its errors."""
    generator, width, units = torch.Generator().manual_seed(0), 60, 40
    z = 1.3**0.5 * torch.randn(4000, width, generator=generator, dtype=torch.float64)
    weights = (1.5 / width) ** 0.5 * torch.randn(4000, units, width, generator=generator, dtype=torch.float64)
    bias = 0.2**0.5 * torch.randn(4000, units, generator=generator, dtype=torch.float64)
    norms = ((weights @ function(z)[..., None])[..., 0] + bias).square().mean(1)
    spread = signal_spread(activation, 1.3, weight_variance=1.5, bias_variance=0.2, width=width, units=units)
    assert norms.std().item() == pytest.approx(spread, rel=0.05)


def test_spread_of_the_correlation_behind_a_random_linear_layer():
    generator, width, units, c = torch.Generator().manual_seed(1), 60, 40, 0.6
    x = torch.randn(4000, 2, width, generator=generator, dtype=torch.float64)
    pair = torch.stack([x[:, 0], c * x[:, 0] + (1 - c * c) ** 0.5 * x[:, 1]], dim=-1)
    out = torch.randn(4000, units, width, generator=generator, dtype=torch.float64) @ pair
    cosine = torch.nn.functional.cosine_similarity(out[..., 0], out[..., 1], dim=1)
    assert cosine.std().item() == pytest.approx(correlation_spread(c, width=width, units=units), rel=0.06)


def test_critical_band_keeps_a_signal_within_a_factor_e():
    low, high = critical_band(2.0, hidden_layers=7)
    assert (high / 2) ** 7 == pytest.approx(2.718281828)
    assert (low / 2) ** 7 == pytest.approx(1 / 2.718281828)


def test_the_second_order_of_the_spread_of_a_correlation():
    assert correlation_spread(0.5, width=4, units=4) == pytest.approx(0.75 * (0.5 + 5.5 / 4 / 4 - 3 / 16) ** 0.5)
