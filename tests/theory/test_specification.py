import dataclasses

import pytest
import torch

from theodolite.theory import Activation, Mlp, activation_of


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
    ],
)
def test_wrong_specifications_say_what_to_do(keywords, words):
    with pytest.raises(ValueError, match=words):
        Mlp(**keywords)
