import pytest
import torch
from torch import nn

from theodolite.construct.propagation import initialize_
from theodolite.theory.propagation import criticality


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_linear_layers_reach_the_critical_variances():
    model = nn.Sequential(nn.Linear(300, 400), nn.GELU(), nn.Linear(400, 500))
    done = initialize_(model, "gelu", generator=seeded())
    point = criticality("gelu")
    for layer in (model[0], model[2]):
        share = layer.in_features * layer.weight.var().item() / point.weight_variance
        assert share == pytest.approx(1, abs=5 * (2 / layer.weight.numel()) ** 0.5)
        assert layer.bias.var().item() == pytest.approx(point.bias_variance, rel=5 * (2 / len(layer.bias)) ** 0.5)
    assert done.layers == ("0", "2")
    assert done.untouched == {}


@pytest.mark.parametrize("kind", [nn.Conv1d, nn.Conv2d, nn.Conv3d])
def test_convolutions_count_their_taps(kind):
    layer = kind(16, 32, 3, groups=2, bias=False)
    initialize_(layer, "relu", generator=seeded())
    assert layer.weight[0].numel() * layer.weight.var().item() == pytest.approx(2.0, rel=0.15)


def test_transposed_convolutions_keep_the_power_of_a_signal():
    layer = nn.ConvTranspose2d(64, 64, 4, stride=2, padding=1, bias=False)
    initialize_(layer, "identity", generator=seeded())
    x = torch.randn(8, 64, 16, 16, generator=seeded(1))
    assert layer(x)[..., 4:-4, 4:-4].square().mean().item() == pytest.approx(1.0, rel=0.1)


def test_a_deep_network_passes_signals_at_criticality_and_not_otherwise():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = nn.Sequential(*[m for _ in range(40) for m in (nn.Linear(256, 256), nn.ReLU())])
    x = torch.randn(16, 256, generator=seeded())
    # C_w = 1/3, C_b = 1/(3 * 256): only the biases are left, K = C_b / (1 - C_w / 2) = 1.6e-3, and half of it behind ReLU
    assert model(x).square().mean() < 2e-3
    initialize_(model, "relu", generator=seeded(1))
    assert 0.05 < model(x).square().mean() < 5


def test_the_first_layer_can_aim_at_the_fixed_point():
    model = nn.Sequential(nn.Linear(500, 500), nn.GELU(), nn.Linear(500, 500))
    x = 10 * torch.randn(200, 500, generator=seeded())
    initialize_(model, "gelu", mean_square=x.square().mean().item(), generator=seeded(1))
    for depth in (1, 3):
        assert model[:depth](x).square().mean().item() == pytest.approx(criticality("gelu").fixed_point, rel=0.15)


def test_what_is_frozen_tied_or_unknown_is_left_and_named():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.frozen = nn.Embedding(10, 8), nn.Linear(8, 8)
            self.a, self.b, self.head = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 10)
            self.frozen.requires_grad_(False)
            self.b.weight = self.a.weight
            self.head.weight = self.embed.weight
            self.normed = nn.utils.parametrizations.weight_norm(nn.Linear(8, 8))

    model = Net()
    before = {name: p.clone() for name, p in model.named_parameters()}
    done = initialize_(model, "tanh", generator=seeded())
    assert done.layers == ("a",)
    assert {"embed", "frozen", "b", "head", "normed"} <= set(done.untouched)
    changed = {name for name, p in model.named_parameters() if not torch.equal(p, before[name])}
    assert changed == {"a.weight", "a.bias"}


def test_precision_and_global_randomness_are_respected():
    half, single = nn.Linear(50, 50).to(torch.bfloat16), nn.Linear(50, 50)
    before = torch.get_rng_state()
    initialize_(half, "relu", generator=seeded())
    initialize_(single, "relu", generator=seeded())
    assert half.weight.dtype == torch.bfloat16
    assert torch.equal(half.weight, single.weight.to(torch.bfloat16))
    assert torch.equal(before, torch.get_rng_state())


def test_bad_input_gets_one_clear_line():
    with pytest.raises(ValueError, match="expected an activation that has a critical initialization"):
        initialize_(nn.Linear(2, 2), "sigmoid")
    with pytest.raises(ValueError, match="expected a positive mean square"):
        initialize_(nn.Linear(2, 2), "gelu", mean_square=0.0)
