"""Signals and gradients of every layer, and ratios of them."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fixtures.judging import subject_of
from theodolite.evidence.layer_signals import (
    activation_in,
    gradient_ratio,
    hidden,
    signal_ratio,
    signals,
    signals_at_start,
    weights_ratio,
)

X = torch.randn(256, 32, generator=torch.Generator().manual_seed(0))


def linear_layers(gain, start=None):
    torch.manual_seed(0)
    layers = [nn.Linear(32, 32, bias=False) for _ in range(4)]
    for layer in layers:
        nn.init.orthogonal_(layer.weight, gain)
    model = nn.Sequential(*layers)
    own = {"model": model, "data": (X, X[:, :32]), "loss": F.mse_loss}
    return subject_of(own if start is None else {**own, "origin": start(model)})


@pytest.mark.parametrize("gain", [0.5, 1.0, 2.0])
def test_orthogonal_layers_multiply_squares_by_their_gain(gain):
    signs = signals(linear_layers(gain))
    assert [layer.name for layer in hidden(signs)] == ["0", "1", "2"]
    assert signal_ratio(signs) == pytest.approx(gain**6, rel=1e-4)
    assert weights_ratio(signs) == pytest.approx((gain**2 / 2) ** 3, rel=1e-4)
    assert gradient_ratio(signs) == pytest.approx(1.0, rel=1e-3)  # each gradient beside its own weights


def test_the_start_is_looked_at_where_it_is_known():
    subject = linear_layers(1.0, lambda model: {name: 2 * value for name, value in model.state_dict().items()})
    assert signal_ratio(signals(subject)) == pytest.approx(1.0, rel=1e-4)
    assert signal_ratio(signals_at_start(subject)) == pytest.approx(64.0, rel=1e-4)


def test_the_activation_is_that_of_most_hidden_layers():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(32, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)
    )
    subject = subject_of({"model": model, "data": (X, X[:, :1]), "loss": F.mse_loss})
    assert activation_in(signals(subject)) == "tanh"
