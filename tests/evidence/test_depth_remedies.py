"""What is tried where signals or gradients do not come through many layers."""

import pytest
import torch
from torch import nn

from theodolite.core.subject import Subject
from theodolite.evidence.depth_remedies import (
    _drawn_critically,
    _without_paths,
    has_critical,
    is_normalized,
    remedy_for,
    with_paths,
)


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


def test_paths_go_around_layers_of_equal_sizes_and_parts_that_hold_others():
    part = nn.Sequential(nn.Linear(3, 6), nn.Linear(6, 3))
    model = nn.Sequential(nn.Linear(3, 3), nn.Sequential(part), nn.Linear(3, 2))
    x = torch.randn(5, 3)
    names = _without_paths(Subject(model, data=[(x, torch.randn(5, 2))], loss=nn.functional.mse_loss))
    assert names == ["0", "1.0"]
    inner, behind = model[0](x), part(x)
    with_paths(names, model, torch.optim.SGD(model.parameters(), 0.1))
    torch.testing.assert_close(model[0](x), x + inner / 2**0.5)
    torch.testing.assert_close(part(x), x + behind / 2**0.5)
    assert model(x).shape == (5, 2)


def test_no_path_hands_on_the_inputs():
    net = nn.Sequential(nn.Linear(8, 2), nn.ReLU(), nn.Linear(2, 8))
    x = torch.randn(5, 8)
    assert not _without_paths(Subject(nn.Sequential(net), data=[(x, x)], loss=nn.functional.mse_loss))


def test_what_is_normalized_is_known():
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    assert not is_normalized(model) and is_normalized(nn.Sequential(nn.LayerNorm(3), nn.LayerNorm(3)))
