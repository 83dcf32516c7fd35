"""The variance of a weight, times its fan-in, with the error of independent entries."""

import pytest
import torch
from torch import nn

from theodolite.core.subject import Subject
from theodolite.instruments._common.weights import weighed


def spread(model):
    return {name: stored.value for name, stored in weighed(Subject(model), "spread")["spread"].items()}


def test_variances_of_drawn_weights_lie_within_their_errors():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(300, 200), nn.Conv2d(8, 16, 3), nn.Embedding(50, 20))
    nn.init.normal_(model[0].weight, std=(2.0 / 300) ** 0.5)
    nn.init.normal_(model[1].weight, std=(1.5 / 72) ** 0.5)
    found = spread(model)
    for name, expected in (("0.weight", 2.0), ("1.weight", 1.5)):
        value = found[name]
        assert value["axes"] == model.get_parameter(name).ndim
        assert abs(value["variance"] - expected) < 4 * value["stderr"]
        count = model.get_parameter(name).numel()
        assert value["stderr"] == pytest.approx(value["variance"] * (2 / count) ** 0.5, rel=0.15)  # of a Gaussian
    assert found["2.weight"] is None  # sums no inputs


def test_a_vector_is_as_it_is():
    model = nn.Linear(4, 3)
    nn.init.constant_(model.bias, 0.5)
    assert spread(model)["bias"] == {"axes": 1, "variance": 0.25, "stderr": pytest.approx(0.0, abs=1e-9)}
