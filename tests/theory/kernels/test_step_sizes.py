import numpy as np
import pytest
import torch

from theodolite.theory import Mlp
from theodolite.theory.kernels import (
    depth_exponents,
    kernel_learning,
    learning_rates,
    mlp_kernels,
    tangent_pair,
    tangent_shares,
)
from theodolite.theory.propagation import first_covariance

FIRST, SECOND = (1.0, 2.0, -1.0, 0.5), (0.5, -1.0, 1.5, 1.0)


@pytest.mark.parametrize(("name", "weight", "bias"), [("relu", 2.0, 0.0), ("tanh", 1.5, 0.05), ("gelu", 2.0, 0.17)])
def test_shares_add_up_to_the_kernel_that_another_recursion_gives(name, weight, bias):
    spec = Mlp(3, name, weight, bias)
    kernel = mlp_kernels(spec, torch.tensor([FIRST, SECOND], dtype=torch.float64), weight_rate=2.0, bias_rate=0.5).ntk
    pair = tangent_pair(spec, first_covariance(spec, FIRST, SECOND), weight_rate=2.0, bias_rate=0.5)
    assert pair == pytest.approx((kernel[0, 0].item(), kernel[1, 1].item(), kernel[0, 1].item()), rel=1e-9)


def test_known_values():
    spec = Mlp(3, "tanh", 1.0)
    pair = tangent_pair(spec, first_covariance(spec, FIRST, SECOND), weight_rate=1.0, bias_rate=1.0)
    assert pair == pytest.approx((3.1271384890, 3.1341532502, 1.8945441903), abs=1e-9)


def test_depth_exponents_depend_on_the_class():
    assert depth_exponents(Mlp(1, "relu", 2.0), 1.0) == pytest.approx((1.0, 1.0))
    weights, biases = depth_exponents(Mlp(1, "tanh", 1.0), 1.0)
    assert abs(weights) < 0.1
    assert biases == pytest.approx(1.0, abs=0.05)


def test_rates_fall_with_width_and_layers_share_alike():
    narrow, wide = (learning_rates(Mlp(3, "relu", 2.0), inputs=64, width=width) for width in (256, 1024))
    assert narrow.single / wide.single == pytest.approx(4.0, rel=0.1)
    assert wide.layers[0].weight_lr == pytest.approx(narrow.layers[0].weight_lr)
    assert narrow.layers[1].weight_lr / wide.layers[1].weight_lr == pytest.approx(4.0)
    assert sum(layer.share for layer in wide.layers) == pytest.approx(1.0)


def test_layer_wise_rates_have_a_largest_eigenvalue_of_one():
    spec = Mlp(2, "tanh", 1.5, 0.1)
    rates = learning_rates(spec, inputs=16, width=64, cosine=0.3, samples=8)
    start, across = 1.6, 0.1 + 1.5 * 0.3
    shares = tangent_shares(spec, (start, start, across))
    total = 0.0
    for layer, share in zip(rates.layers, shares, strict=True):
        for rate, part in ((layer.weight_lr * layer.fan_in, share.weights), (layer.bias_lr, share.biases)):
            total += rate * (part[2] + (part[0] - part[2]) / 8)
    assert total == pytest.approx(1.0)


def test_the_learning_curve_of_a_kernel_is_that_of_descent():
    generator = np.random.default_rng(0)
    A = generator.standard_normal((6, 9))
    K, y = A @ A.T, generator.standard_normal((6, 2))
    found = kernel_learning(K, y, times=(0.0, 3.0))
    z, step = np.zeros_like(y), 1e-4
    for _ in range(30_000):
        z = z - step * K / np.linalg.norm(K, 2) @ (z - y)
    assert found.losses[0] == pytest.approx(1.0)
    assert found.losses[1] == pytest.approx(((z - y) ** 2).sum() / (y**2).sum(), rel=1e-3)
    assert found.condition == pytest.approx(np.linalg.cond(K), rel=1e-6)
    assert found.limit == pytest.approx(2 * 6 / np.linalg.norm(K, 2))
    assert kernel_learning(np.ones((2, 2)), np.ones(2)).condition == float("inf")


def test_refusals():
    with pytest.raises(ValueError, match="weight variance"):
        tangent_shares(Mlp(1, "relu", 0.0), (1.0, 1.0, 1.0))
