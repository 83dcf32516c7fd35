import pytest
import torch
import torch.nn.functional as F
from torch import nn

from theodolite.construct.kernels import kernel_of
from theodolite.theory import Mlp, activation_of
from theodolite.theory.kernels import Average, Convolution, ImageKernel, mlp_kernels
from theodolite.theory.kernels._map_sequences import Dense, Nonlinear, Normalized, Sum

X = torch.randn(6, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_a_sequential_network():
    net = nn.Sequential(
        nn.Flatten(), nn.Linear(5, 64), nn.GELU(), nn.Dropout(0.3), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1)
    )
    expected = mlp_kernels(Mlp(2, "gelu", 1.7, 0.1), X)
    for kind in ("ntk", "nngp"):
        found = kernel_of(net, kind=kind, weight_variance=1.7, bias_variance=0.1)(X)
        assert torch.allclose(found, getattr(expected, kind), rtol=1e-12)
    measured = kernel_of(net).program
    assert measured[0].weight_variance == pytest.approx(5 * net[1].weight.double().square().mean().item())
    assert measured[0].bias_variance == pytest.approx(net[1].bias.double().square().mean().item())
    assert kernel_of(nn.Linear(5, 1, bias=False), bias_variance=1.0).program[0].bias_variance == 0.0


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.inner, self.last = nn.Linear(5, 32), nn.Linear(32, 32), nn.Linear(32, 1)
        self.norm = nn.LayerNorm(32)

    def forward(self, x):
        h = self.first(x)
        h = h + self.inner(F.leaky_relu(self.norm(h), negative_slope=0.2))
        return self.last(torch.tanh(h))


def test_a_residual_network_with_normalization():
    dense = Dense(1.5, 0.2)
    leaky = Nonlinear(activation_of(lambda z: F.leaky_relu(z, 0.2)))
    layers = (dense, Sum((), (Normalized(1e-5), leaky, dense)), Nonlinear(activation_of("tanh")), dense)
    found = kernel_of(Residual(), weight_variance=1.5, bias_variance=0.2)(X)
    assert torch.allclose(found, mlp_kernels(layers, X).ntk, rtol=1e-9)


def test_a_wide_network_has_this_kernel():
    """The residual network of width 4096 at random: its outputs' covariance over its last layer, against the kernel."""
    torch.manual_seed(0)
    width = 4096
    first, inner = torch.randn(width, 5).double(), torch.randn(width, width).double()
    h = (2.0 / 5) ** 0.5 * X @ first.T
    norm = (h - h.mean(1, keepdim=True)) / h.var(1, correction=0, keepdim=True).sqrt()
    h = h + (2.0 / width) ** 0.5 * torch.relu(norm) @ inner.T
    sampled = 2.0 * torch.tanh(h) @ torch.tanh(h).T / width
    layers = (
        Dense(2.0),
        Sum((), (Normalized(), Nonlinear(activation_of("relu")), Dense(2.0))),
        Nonlinear(activation_of("tanh")),
        Dense(2.0),
    )
    expected = mlp_kernels(layers, X).nngp
    assert (sampled - expected).abs().max() < 5 * expected.max() / width**0.5


class ResidualImages(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.inner = nn.Conv2d(3, 8, 3, padding="same"), nn.Conv2d(8, 8, 3, padding=1)
        self.pool, self.head = nn.AvgPool2d(2), nn.Linear(8, 1)

    def forward(self, x):
        h = self.stem(x)
        h = h + self.inner(F.relu(h))
        return self.head(self.pool(F.relu(h)).mean(dim=(2, 3)))


def test_a_convolutional_network():
    x = torch.randn(3, 3, 6, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    conv = Convolution(Dense(2.0, 0.1), (3, 3), (1, 1), (1, 1), (1, 1))
    relu = Nonlinear(activation_of("relu"))
    layers = (conv, Sum((), (relu, conv)), relu, Average((2, 2), (2, 2), (0, 0)), Average(), Dense(2.0, 0.1))
    for kind in ("ntk", "nngp"):
        found = kernel_of(ResidualImages(), kind=kind, weight_variance=2.0, bias_variance=0.1)(x)
        assert torch.allclose(found, ImageKernel(layers, kind)(x), rtol=1e-12)
    net = nn.Sequential(nn.Conv1d(3, 8, 2, stride=2, bias=False), nn.GELU(), nn.Flatten(), nn.Linear(8 * 3, 1))
    program = kernel_of(net).program
    assert program[0].dense.weight_variance == pytest.approx(6 * net[0].weight.double().square().mean().item())
    assert program[0].dense.bias_variance == 0.0
    assert kernel_of(net)(x[:, :, 0]).shape == (3, 3)


class Strange(nn.Module):
    def __init__(self, forward):
        super().__init__()
        self.layer = nn.Linear(5, 5)
        self.function = forward

    def forward(self, x):
        return self.function(self, x)


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (nn.Sequential(nn.Conv3d(1, 1, 1), nn.ReLU()), "Conv3d at '0'"),
        (nn.Sequential(nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1)), "BatchNorm2d at '1'"),
        (nn.Sequential(nn.Conv2d(1, 1, 1), nn.MaxPool2d(2)), "elementwise"),
        (nn.Sequential(nn.Conv2d(4, 4, 1, groups=2), nn.ReLU()), "one group"),
        (nn.Sequential(nn.Conv2d(4, 4, 2, padding="same"), nn.ReLU()), "odd size"),
        (nn.Sequential(nn.Conv2d(4, 4, 1), nn.AdaptiveAvgPool2d(2)), "whole image"),
        (nn.Sequential(nn.Conv2d(4, 4, 1), nn.AvgPool2d(2, ceil_mode=True)), "plain average"),
        (Strange(lambda self, x: self.layer(x).mean(1)), "axes of an image"),
        (nn.Sequential(nn.Linear(5, 5), nn.Softmax(-1)), "elementwise"),
        (nn.Sequential(nn.Linear(5, 5), nn.ReLU(), nn.LayerNorm(5)), "after an activation"),
        (Strange(lambda self, x: self.layer(x) + torch.relu(self.layer(x))), "used once"),
        (Strange(lambda self, x: x + x), "ends in a layer of weights"),
        (nn.Sequential(nn.Linear(5, 5), nn.ReLU(), nn.Tanh()), "not Gaussian"),
        (nn.Sequential(nn.ReLU(), nn.Linear(5, 5)), "not Gaussian"),
        (Strange(lambda self, x: torch.relu(x + self.layer(x))), "not Gaussian"),
        (Strange(lambda self, x: self.layer(self.layer(x))), "used once"),
        (Strange(lambda self, x: self.layer(x) * 2), "got 'mul'"),
        (Strange(lambda self, x: x if x.sum() > 0 else -x), "cannot be traced"),
        (Strange(lambda self, x: (x, self.layer(x))), "one output"),
    ],
)
def test_what_it_cannot_read_it_says(module, words):
    with pytest.raises(ValueError, match=words):
        kernel_of(module)


def test_a_trained_normalization_is_not_read():
    net = nn.Sequential(nn.Linear(5, 5), nn.LayerNorm(5))
    with torch.no_grad():
        net[1].weight[0] = 2.0
    with pytest.raises(ValueError, match="trained"):
        kernel_of(net)


def test_circular_padding_is_read_from_the_module():
    def net(mode):
        layers = nn.Conv2d(2, 64, 3, padding=1, padding_mode=mode), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 20, 1)
        return nn.Sequential(*layers)

    x = torch.randn(3, 2, 4, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    circle, edge = (kernel_of(net(mode), weight_variance=2.0, bias_variance=0.1) for mode in ("circular", "zeros"))
    assert torch.allclose(circle(x), circle(x.roll(1, dims=3)), rtol=1e-12)
    assert not torch.allclose(edge(x), edge(x.roll(1, dims=3)), rtol=1e-3)
    with pytest.raises(ValueError, match="^expected a convolution"):
        kernel_of(net("reflect"))


def test_variances_of_each_layer_against_wide_networks():
    """The covariance of outputs over drawn networks of 512 units whose layers have variances of their own."""
    weights, biases, g = (1.0, 3.0, 0.5), (0.2, 0.0, 0.4), torch.Generator().manual_seed(0)
    net = nn.Sequential(nn.Linear(5, 512), nn.ReLU(), nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 1)).double()
    kernel = kernel_of(net, kind="nngp", weight_variance=weights, bias_variance=biases)(X)
    h = X
    for place, layer in enumerate((net[0], net[2])):
        w = torch.randn(200, layer.out_features, layer.in_features, generator=g, dtype=X.dtype)
        b = torch.randn(200, 1, layer.out_features, generator=g, dtype=X.dtype) * biases[place] ** 0.5
        h = h @ w.transpose(1, 2) * (weights[place] / layer.in_features) ** 0.5 + b
        h = h.relu() if place == 0 else h.tanh()
    # the last layer's own draws are integrated out: given h, outputs have covariance C_b + C_w h h' / 512
    drawn = biases[2] + weights[2] * h @ h.transpose(1, 2) / 512
    spread = drawn.std(0) / 200**0.5
    assert ((drawn.mean(0) - kernel).abs() < 5 * spread + 0.004).all()  # finite width moves the mean by about 1/512
    swapped = kernel_of(net, kind="nngp", weight_variance=weights[::-1], bias_variance=biases)(X)
    assert ((drawn.mean(0) - swapped).abs() > 5 * spread + 0.004).any()
    with pytest.raises(ValueError, match="^expected one weight_variance for each of 3 layers"):
        kernel_of(net, weight_variance=(1.0, 2.0))
