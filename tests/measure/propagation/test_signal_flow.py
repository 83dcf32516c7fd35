import torch
import torch.nn.functional as F
from torch import nn

from theodolite.measure.propagation import signals


class Swish(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)


class Net(nn.Module):
    """One of everything that may stand between two layers."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.conv2 = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Conv2d(8, 8, 3, padding=1)
        self.lines = nn.ModuleList([nn.Linear(8, 8) for _ in range(9)])
        self.drop, self.leaky, self.swish = nn.Dropout(0.5), nn.LeakyReLU(0.1, inplace=True), Swish()

    def forward(self, x):
        a, b, c, d, e, f, g, h, i = self.lines
        x = self.conv2(F.relu(self.norm(self.conv(x))))
        x = F.adaptive_avg_pool2d(x.relu_(), 1).flatten(1)
        x = b(F.gelu(a(x), approximate="tanh"))
        x = c(self.drop(torch.tanh(x)))
        y = d(self.leaky(x).view(len(x), -1))
        y = f(e(F.silu(y)) + y)
        y = h(self.swish(g(y)))
        return i(torch.clamp(y, -1.0, 1.0).mT.mT)


EXPECTED = {
    "conv": (None, "the input"),
    "conv2": (None, "a normalization (batch_norm), then relu"),
    "lines.0": (None, "relu, then pooling (adaptive_avg_pool2d)"),
    "lines.1": ("gelu(approximate=tanh)", ""),
    "lines.2": ("tanh", ""),
    "lines.3": ("leaky_relu(negative_slope=0.1)", ""),
    "lines.4": ("silu", ""),
    "lines.5": (None, "a sum (add)"),
    "lines.6": ("identity", ""),
    "lines.7": ("Swish", ""),
    "lines.8": ("clamp(-1, 1)", ""),
}


def test_every_layer_is_found_with_what_fed_it():
    model = Net().eval()
    found = signals(model, torch.randn(6, 3, 8, 8))
    assert {signal.layer: (signal.activation, signal.between) for signal in found} == EXPECTED
    assert [signal.layer for signal in found] == list(EXPECTED)


def test_the_functions_found_are_the_functions_used():
    z = torch.linspace(-2, 2, 9)
    functions = {signal.activation: signal.function for signal in signals(Net().eval(), torch.randn(6, 3, 8, 8))}
    assert torch.equal(functions["gelu(approximate=tanh)"](z), F.gelu(z, approximate="tanh"))
    assert torch.equal(functions["leaky_relu(negative_slope=0.1)"](z), F.leaky_relu(z, 0.1))
    assert torch.equal(functions["clamp(-1, 1)"](z), z.clamp(-1, 1))
    assert torch.equal(functions["Swish"](z), z * z.sigmoid())
    assert torch.equal(z, torch.linspace(-2, 2, 9))


def test_nothing_is_left_behind():
    model = Net().eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    signals(model, torch.randn(6, 3, 8, 8))
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert torch.overrides._get_current_function_mode() is None


def test_hooks_are_removed_after_an_error():
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(4, 4))
    try:
        signals(model, torch.randn(2, 3))
    except RuntimeError:
        pass
    else:
        raise AssertionError("the shapes do not fit")
    assert not any(module._forward_hooks for module in model.modules())


def test_norms_cosines_and_variances_by_brute_force():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 4, bias=False)).double()
    x = torch.randn(10, 5, dtype=torch.float64)
    first, second = signals(model, x)
    z = model[0](x)
    assert torch.isclose(torch.tensor(first.mean_square), z.square().mean().float())
    power = z.square().mean(1)
    assert abs(first.stderr - (power.std() / 10**0.5).item()) < 1e-12
    unit = F.normalize(z, dim=1)
    pairs = [(unit[i] @ unit[j]).item() for i in range(10) for j in range(i)]
    assert abs(first.cosine - sum(pairs) / len(pairs)) < 1e-12
    assert (first.fan_in, first.units, second.fan_in, second.units) == (5, 7, 7, 4)
    assert abs(first.weight_variance - 5 * model[0].weight.square().mean().item()) < 1e-12
    assert abs(first.bias_variance - model[0].bias.square().mean().item()) < 1e-12
    assert second.bias_variance is None


def test_convolutions_count_their_window_and_all_positions():
    model = nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(inplace=True), nn.Conv2d(4, 6, 3, groups=2))
    first, second = signals(model, torch.randn(3, 2, 9, 9))
    assert (first.fan_in, first.units, second.fan_in, second.units) == (18, 4, 18, 6)
    assert second.activation == "relu"


def test_keywords_several_inputs_and_a_layer_used_twice():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.line = nn.Linear(3, 3)

        def forward(self, x, *, y):
            return self.line(torch.sin(self.line(x + y)))

    found = signals(Twice(), torch.randn(4, 3), y=torch.randn(4, 3))
    assert [(signal.layer, signal.activation) for signal in found] == [("line", None), ("line", "sin")]


def test_a_transformer_layer():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, activation="gelu").train()
    found = {signal.layer: signal for signal in signals(layer, torch.randn(4, 5, 8))}
    assert found["linear2"].between == "gelu, then dropout"
    assert found["linear1"].between == "no layer, but functions of the input" or found["linear1"].activation is None


def test_a_single_sample_is_refused():
    import pytest

    with pytest.raises(ValueError, match="two samples"):
        signals(nn.Linear(2, 2), torch.randn(1, 2))
