import pytest
import torch
from torch import nn

from theodolite.construct.propagation import Elementwise, network
from theodolite.theory import Mlp


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_shapes_and_variances():
    net = network(Mlp(2, "tanh", 1.5, 0.3), 300, 200, width=400, generator=generator(), dtype=torch.float64)
    assert [tuple(layer.weight.shape) for layer in net[::2]] == [(400, 300), (400, 400), (200, 400)]
    for layer, fan_in in zip(net[::2], (300, 400, 400), strict=True):
        assert layer.weight.var().item() * fan_in == pytest.approx(1.5, rel=0.03)
        assert layer.bias.var().item() == pytest.approx(0.3, rel=0.3)
        assert layer.weight.dtype == torch.float64
    assert isinstance(net[1], nn.Tanh)
    assert net(torch.randn(3, 300, dtype=torch.float64)).shape == (3, 200)


def test_widths_of_the_specification():
    net = network(Mlp(widths=(5, 7), activation="relu", weight_variance=2.0), 3, 1)
    assert [layer.out_features for layer in net[::2]] == [5, 7, 1]
    assert network(Mlp(0, "relu", 2.0), 3, 2)[0].weight.shape == (2, 3)


def test_the_generator_alone_decides():
    before = torch.random.get_rng_state()
    spec = Mlp(1, "gelu", 2.0, 0.1)
    one, two = (network(spec, 4, 2, width=8, generator=generator(5)) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert torch.equal(before, torch.random.get_rng_state())
    assert all(parameter.requires_grad for parameter in one.parameters())


def test_any_callable_becomes_a_module():
    net = network(Mlp(1, lambda z: z * torch.sin(z), 1.0), 2, 1, width=3)
    assert isinstance(net[1], Elementwise)
    net(torch.randn(4, 2)).sum().backward()
    assert net[0].weight.grad is not None
    assert "lambda" in repr(net)


@pytest.mark.parametrize(
    ("spec", "width"), [(Mlp(1, "relu", 2.0), None), (Mlp(widths=(3,), activation="relu", weight_variance=2.0), 3)]
)
def test_widths_are_given_once(spec, width):
    with pytest.raises(ValueError, match="once"):
        network(spec, 2, 1, width=width)


def test_sizes_are_checked():
    with pytest.raises(ValueError, match="at least one"):
        network(Mlp(0, "relu", 2.0), 0, 1)
