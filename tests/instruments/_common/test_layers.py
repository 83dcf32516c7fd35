"""The layers of a subject, their variances, and what feeds each."""

import pytest
import torch
from torch import nn

from theodolite.core.subject import Subject
from theodolite.instruments._common.layers import chain_lengths, is_reset, layers_of, signals_of


class Sum(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 2)

    def forward(self, x):
        h = torch.tanh(self.a(x))
        return self.c(torch.tanh(self.b(h)) + h)


def test_variances_are_of_the_fan_in_and_activations_are_those_that_feed():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(50, 80), nn.GELU(), nn.Linear(80, 60), nn.Tanh(), nn.Linear(60, 3))
    first, second, third = layers_of(Subject(model, data=torch.randn(8, 50)))
    assert first.activation is None and "sees the inputs" in first.between
    assert (second.activation.name, third.activation.name) == ("gelu", "tanh")
    for layer, module in zip((first, second, third), (model[0], model[2], model[4]), strict=True):
        expected = module.in_features * float(module.weight.detach().double().square().mean())
        assert layer.weight_variance.value == pytest.approx(expected, rel=1e-6)
        assert layer.bias_variance.value == pytest.approx(
            float(module.bias.detach().double().square().mean()), rel=1e-6
        )
    assert second.chain == third.chain == 2


def test_a_sum_sets_the_signal_anew_and_ends_a_chain():
    torch.manual_seed(0)
    seen = signals_of(Subject(Sum(), data=torch.randn(8, 6)))
    assert is_reset(seen)
    assert chain_lengths(seen).get("b.weight") == 1 and "c.weight" not in chain_lengths(seen)


def test_without_data_the_one_kind_of_activation_is_taken_and_two_are_not():
    one = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    assert [layer.activation and layer.activation.name for layer in layers_of(Subject(one))] == [None, "relu", "relu"]
    two = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))
    assert {layer.activation for layer in layers_of(Subject(two))} == {None}
