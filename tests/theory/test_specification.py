import dataclasses
import math

import numpy as np
import pytest
import torch

from theodolite.construct.propagation import gradient_spread, network
from theodolite.theory import Activation, Mlp, activation_of
from theodolite.theory.kernels import depth_exponents, learning_rates, mlp_kernels, tangent_pair
from theodolite.theory.kernels._map_sequences import dense_layers
from theodolite.theory.propagation import (
    covariance_trajectory,
    first_covariance,
    variance_biases,
    variance_trajectory,
    variance_vertices,
)

LAYERED = Mlp(2, "tanh", weight_variance=[1.5, 2.5, 0.7], bias_variance=np.array([0.0, 0.3, 0.1]))
X = torch.tensor([[1.0, -0.5, 0.3], [0.2, 0.9, -1.0]], dtype=torch.float64)


def test_depth_or_widths():
    assert Mlp(hidden_layers=3, weight_variance=2.0).weight_layers == 4
    spec = Mlp(widths=[8, 4], activation=torch.tanh, weight_variance=1)
    assert (spec.hidden_layers, spec.widths, spec.sigma.name) == (2, (8, 4), "tanh")
    assert Mlp(hidden_layers=2, widths=(3, 3), weight_variance=1.0).weight_layers == 3


def test_an_activation_is_kept():
    activation = Activation("gelu")
    assert Mlp(1, activation, 2.0).sigma is activation is activation_of(activation)


def test_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Mlp(1, "relu", 2.0).bias_variance = 1.0


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"weight_variance": 1.0}, "hidden_layers or widths"),
        ({"hidden_layers": 2}, "weight_variance"),
        ({"hidden_layers": 2, "widths": (3,), "weight_variance": 1.0}, "leave out"),
        ({"hidden_layers": -1, "weight_variance": 1.0}, "hidden layers"),
        ({"hidden_layers": 1.5, "weight_variance": 1.0}, "hidden layers"),
        ({"widths": (3, 0), "weight_variance": 1.0}, "widths"),
        ({"hidden_layers": 1, "weight_variance": -1.0}, "weight_variance"),
        ({"hidden_layers": 1, "weight_variance": 1.0, "bias_variance": float("inf")}, "bias_variance"),
        ({"hidden_layers": 1, "weight_variance": 1.0, "activation": "tahn"}, "tanh"),
        ({"hidden_layers": 1, "weight_variance": (1.0, 2.0, 3.0)}, "each of 2 layers of weights, got 3"),
        ({"hidden_layers": 1, "weight_variance": (1.0, float("nan"))}, "weight_variance"),
        ({"hidden_layers": 1, "weight_variance": 1.0, "bias_variance": (0.0, -1.0)}, "bias_variance"),
    ],
)
def test_wrong_specifications_say_what_to_do(keywords, words):
    with pytest.raises(ValueError, match=words):
        Mlp(**keywords)


def test_variances_of_each_layer():
    assert LAYERED.weight_variances == (1.5, 2.5, 0.7)
    assert LAYERED.bias_variances == (0.0, 0.3, 0.1)
    assert Mlp(2, "relu", 2.0).weight_variances == (2.0, 2.0, 2.0)
    assert Mlp(2, "relu", (2.0, 2.0, 2.0)).common_variances == (2.0, 0.0)
    with pytest.raises(ValueError, match="differ"):
        _ = LAYERED.common_variances


@pytest.mark.parametrize("kind", ["nngp", "ntk"])
def test_kernels_of_layers_with_variances_of_their_own(kind):
    program = dense_layers([1.5, 2.5, 0.7], activation="tanh", bias_variances=[0.0, 0.3, 0.1])
    found = getattr(mlp_kernels(LAYERED, X), kind)
    assert torch.equal(found, getattr(mlp_kernels(program, X), kind))
    start = first_covariance(LAYERED, X[0], X[1])
    pair = tangent_pair(LAYERED, start) if kind == "ntk" else covariance_trajectory(LAYERED, start)[-1]
    assert pair == pytest.approx((found[0, 0].item(), found[1, 1].item(), found[0, 1].item()), rel=1e-9)


def test_signals_of_layers_with_variances_of_their_own():
    sigma = Activation("tanh")
    K1 = 0.4
    K2 = 0.3 + 2.5 * sigma.moment(K1)
    K3 = 0.1 + 0.7 * sigma.moment(K2)
    assert variance_trajectory(LAYERED, K1) == pytest.approx((K1, K2, K3), rel=1e-12)
    assert variance_trajectory(LAYERED, K1, weight_layers=2) == pytest.approx((K1, K2), rel=1e-12)
    with pytest.raises(ValueError, match="at most 3 weight_layers"):
        variance_trajectory(LAYERED, K1, weight_layers=4)
    V2 = 2.5**2 * (sigma.fourth_moment(K1) - sigma.moment(K1) ** 2)
    V3 = (0.7 * sigma.curvature_moment(K2)) ** 2 * V2 + 0.7**2 * (sigma.fourth_moment(K2) - sigma.moment(K2) ** 2)
    assert variance_vertices(LAYERED, K1) == pytest.approx((0.0, V2, V3), rel=1e-12)
    bias = 0.5 * 0.7 * sigma.moment_curvature(K2) * V2
    assert variance_biases(LAYERED, K1) == pytest.approx((0.0, 0.0, bias), rel=1e-12)


def test_networks_are_drawn_with_the_variances_of_each_layer():
    net = network(LAYERED, 300, 400, width=400, generator=torch.Generator().manual_seed(0))
    for layer, C_w, C_b in zip(net[::2], (1.5, 2.5, 0.7), (0.0, 0.3, 0.1), strict=True):
        assert layer.weight.square().mean().item() * layer.in_features == pytest.approx(C_w, rel=0.02)  # 1e5 weights
        assert layer.bias.square().mean().item() == pytest.approx(C_b, rel=0.3)  # 400 biases: 7 % an error


def test_step_sizes_of_layers_with_variances_of_their_own():
    rows = torch.randn(20, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    rates = learning_rates(LAYERED, inputs=rows, width=64)
    plain = [
        mlp_kernels(LAYERED, rows, weight_rate=w, bias_rate=b).ntk for w, b in ((1.0, 0.0), (0.0, 1.0))
    ]  # every layer's weights over their fan-in, and every layer's biases
    bound = sum(torch.linalg.eigvalsh(k)[-1].item() for k in (64 * plain[0], plain[1])) / 20
    assert 0 < rates.largest <= bound
    assert all(math.isnan(power) for power in depth_exponents(LAYERED, 1.0))
    with pytest.raises(ValueError, match="differ"):
        gradient_spread(LAYERED, 16)
