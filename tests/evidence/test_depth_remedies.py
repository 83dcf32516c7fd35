"""What is tried where signals or gradients do not come through many layers."""

import pytest
import torch
from torch import nn

from theodolite.evidence.depth_remedies import _drawn_critically, has_critical, is_normalized, remedy_for, with_paths


def test_activations_without_a_critical_start_are_advised_against():
    assert has_critical("tanh") and not has_critical("sigmoid")
    text, suggested = remedy_for("sigmoid")
    assert text.startswith("relu in place of sigmoid") and suggested["activation"] == "relu"
    assert remedy_for("relu")[1]["weight_variance"] == pytest.approx(2.0)


def test_the_change_draws_critical_weights_and_keeps_what_is_behind_the_last_layer():
    model = nn.Sequential(nn.Linear(64, 256), nn.Sigmoid(), nn.Linear(256, 256), nn.Sigmoid())
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    _drawn_critically("sigmoid", "2", model, optimizer)
    assert isinstance(model[1], nn.ReLU) and isinstance(model[3], nn.Sigmoid)
    assert 64 * float(model[0].weight.detach().var()) == pytest.approx(2.0, rel=0.05)


def test_paths_go_around_layers_of_equal_sizes_alone():
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    x = torch.randn(5, 3)
    inner = model[0](x)
    with_paths(model, torch.optim.SGD(model.parameters(), 0.1))
    torch.testing.assert_close(model[0](x), x + inner / 2**0.5)
    assert model(x).shape == (5, 2)
    assert not is_normalized(model) and is_normalized(nn.Sequential(nn.LayerNorm(3), nn.LayerNorm(3)))
