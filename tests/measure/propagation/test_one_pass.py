import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from theodolite.measure.propagation.one_pass import vital_signs


def signs_of(model, x, target=None):
    def loss_of():
        output = model(x)
        return (output - (0 if target is None else target)).abs().square().mean(), output

    return vital_signs(model, loss_of)


def drawn(seed, make):
    torch.manual_seed(seed)
    return make()


def unlike_by_hand(z):
    rows = z.detach().double().flatten(1)
    n = len(rows)
    mean = rows.mean(0)
    return sum(float((row - mean).square().sum()) for row in rows) / float(rows.square().sum()) * n / (n - 1)


def rank_by_hand(z):
    rows = z.detach().double().flatten(1)
    values = torch.linalg.svdvals(rows - rows.mean(0)).square()
    return float(values.sum() ** 2 / values.square().sum())


def test_signals_likeness_rank_and_gradients_are_those_computed_by_hand():
    model = drawn(0, lambda: nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3)))
    x = torch.randn(20, 5)
    found = signs_of(model, x)
    first, last = found.layers
    z = model[0](x).detach()
    assert first.mean_square == pytest.approx(float(z.square().mean()), rel=1e-5)
    assert first.unlike == pytest.approx(unlike_by_hand(z), rel=1e-5)
    assert first.rank == pytest.approx(rank_by_hand(z), rel=1e-4)
    assert last.input_square == pytest.approx(float(z.relu().square().mean()), rel=1e-5)
    assert last.input_unlike == pytest.approx(unlike_by_hand(z.relu()), rel=1e-5)
    assert last.input_rank == pytest.approx(rank_by_hand(z.relu()), rel=1e-4)
    model(x).square().mean().backward()
    for layer, module in zip(found.layers, (model[0], model[2]), strict=True):
        assert layer.gradient_norm == pytest.approx(float(module.weight.grad.norm()), rel=1e-5)
        assert layer.relative_gradient == pytest.approx(
            float(module.weight.grad.norm() / module.weight.detach().norm()), rel=1e-5
        )
    assert found.gradient_norm == pytest.approx(
        math.sqrt(sum(float(p.grad.square().sum()) for p in model.parameters())), rel=1e-5
    )


def test_no_gradient_is_left_behind_and_the_loss_is_no_activation():
    model = drawn(1, lambda: nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3)))
    found = signs_of(model, torch.randn(20, 5))
    assert all(p.grad is None for p in model.parameters())
    assert [layer.activation for layer in found.layers] == ["tanh", None]  # abs and square are the loss's own


def test_a_dead_relu_is_counted_unit_by_unit():
    model = drawn(2, lambda: nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3)))
    with torch.no_grad():
        model[0].bias[:6] = -100.0
    x = torch.randn(300, 5)
    layer = signs_of(model, x).layers[0]
    assert layer.dead == 0.75
    # every second of 300 samples would be 150: the slopes are taken on at most 256, evenly spread
    open_gates = (model[0](x[:256]) > 0).float().mean()
    assert layer.saturated == pytest.approx(1 - float(open_gates), abs=1e-6)
    assert not layer.bounded


@pytest.mark.parametrize("inplace", [False, True])
def test_an_activation_in_place_is_judged_by_what_it_was_given(inplace):
    make = lambda: nn.Sequential(nn.Linear(5, 8), nn.ELU(inplace=inplace), nn.Linear(8, 3))  # noqa: E731
    model = drawn(3, make)
    with torch.no_grad():
        model[0].weight.mul_(10)
    x = torch.randn(64, 5)
    layer = signs_of(model, x).layers[0]
    slope = model[0](x).detach().clamp(max=0).exp()  # of an ELU
    assert layer.activation == "elu"
    assert layer.saturated == pytest.approx(float((slope < 0.05).float().mean()), abs=1e-6)


def test_bounded_activations_are_told_by_what_they_do_and_saturation_counted():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(6, 6) for _ in range(5)])

        def forward(self, x):
            for layer, act in zip(
                self.layers, (torch.tanh, F.hardtanh, torch.sigmoid, F.gelu, F.softsign), strict=True
            ):
                x = act(20 * layer(x))
            return x

    model = drawn(4, Net)
    x = torch.randn(40, 6)
    found = signs_of(model, x).layers
    assert [layer.activation for layer in found] == ["tanh", "hardtanh", "sigmoid", "gelu", "softsign"]
    assert [layer.bounded for layer in found] == [True, True, True, False, True]
    slope = 1 - torch.tanh(20 * model.layers[0](x)).square()
    assert found[0].saturated == pytest.approx(float((slope < 0.05).float().mean()), abs=0.01)
    assert found[2].steepest == pytest.approx(0.25, abs=1e-6)


def test_units_of_a_convolution_are_channels_and_a_norm_between_belongs_to_it():
    model = drawn(
        5, lambda: nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 16, 3))
    )
    with torch.no_grad():
        model[1].bias[0] = -50.0
    x = torch.randn(32, 2, 6, 6)
    conv, last = signs_of(model.train(), x).layers
    assert (conv.units, conv.activation, conv.dead) == (4, "relu", 0.25)
    places = model[0](x).detach().double().movedim(1, -1).flatten(1, 2)
    share = (places - places.mean(1, keepdim=True)).square().sum() / places.square().sum()
    assert conv.places == pytest.approx(float(share), rel=1e-4)
    assert last.places is None


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.mixed, self.out, self.head = nn.Linear(8, 24), nn.Linear(8, 8), nn.Linear(8, 2)
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x):
        q, k, v = self.mixed(self.norm(x)).chunk(3, -1)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v))
        x = x + self.down(F.gelu(self.up(x)))
        return self.head(x.mean(1))


def test_attention_and_paths_around_layers():
    model = drawn(6, Attention)
    found = {layer.name: layer for layer in signs_of(model, torch.randn(16, 5, 8)).layers}
    assert list(found) == ["mixed", "out", "up", "down", "head"]
    assert {name: layer.activation for name, layer in found.items() if layer.activation} == {"up": "gelu"}
    assert found["out"].units == 8
    assert 0 < found["out"].places < found["up"].input_places < 1  # the path around keeps places apart


def test_frozen_layers_have_no_gradient_and_are_not_called_untouched():
    model = drawn(7, lambda: nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3)))
    model[0].requires_grad_(False)
    found = signs_of(model, torch.randn(20, 5))
    assert found.layers[0].gradient_norm is None
    assert found.layers[0].relative_gradient is None
    assert found.untouched == ()


def test_parameters_without_gradient_are_told_from_those_with_zero():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last, self.unused = nn.Linear(5, 7), nn.Linear(7, 3), nn.Linear(2, 2)

        def forward(self, x):
            return self.last(self.first(x))

    model = drawn(8, Net)
    nn.init.zeros_(model.last.weight)
    found = signs_of(model, torch.randn(20, 5))
    assert found.untouched == ("unused.weight", "unused.bias")
    assert found.zero == ("first.weight", "first.bias")


def test_copies_are_equal_in_weight_and_in_gradient():
    x = torch.randn(20, 5)
    target = torch.randn(20, 3)
    model = drawn(9, lambda: nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3)))
    assert [layer.copies for layer in signs_of(model, x, target).layers] == [0.0, 0.0]
    with torch.no_grad():
        model[0].weight[:4] = model[0].weight[:1]
        model[0].bias[:4] = 2.0
    assert signs_of(model, x, target).layers[0].copies == 0.0  # what reads them differs, and so do their gradients
    with torch.no_grad():
        model[2].weight[:, :4] = model[2].weight[:, :1]
    assert signs_of(model, x, target).layers[0].copies == 3 / 8
    nn.init.zeros_(model[2].weight)
    assert signs_of(model, x, target).layers[1].copies == 0.0  # zero on purpose: gradients tell the rows apart


def test_matrices_of_one_number_are_alike():
    x = torch.randn(20, 5)
    model = drawn(10, lambda: nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)))
    assert signs_of(model, x).alike == ()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(0.1)
    assert signs_of(model, x, torch.randn(20, 3)).alike == ("0.weight",)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(0.0)
    assert signs_of(model, x, torch.randn(20, 3)).layers[0].copies == pytest.approx(7 / 8)


def test_an_activation_of_one_number_per_sample_is_that_of_a_single_unit_and_not_of_many():
    class One(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 8), nn.Linear(8, 1)

        def forward(self, x):
            hidden = self.a(x)
            return torch.sigmoid(50 * self.b(hidden).squeeze(1)) + torch.relu(hidden.norm(dim=1))

    found = {layer.name: layer for layer in signs_of(drawn(0, One), torch.randn(16, 3)).layers}
    assert found["b"].activation == "sigmoid" and 0 < found["b"].saturated <= 1
    assert found["a"].activation is None
