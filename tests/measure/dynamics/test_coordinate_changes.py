"""Sizes and changes of layers against products written out; exponents against powers that were put in."""

import math

import pytest
import torch
from torch import nn

from theodolite.measure.dynamics import LayerMove, layer_moves, scaling_exponents, width_exponent


def test_a_linear_layer_s_gain_and_change_are_those_of_its_matrix():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 2)).double()
    first = model[2].weight.detach().clone()
    x, y = torch.randn(6, 5).double(), torch.randn(6, 2).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = [(x, y)] * 3
    found = layer_moves(model, optimizer, lambda m, b: (m(b[0]) - b[1]).square().mean(), batches)
    hidden = torch.tanh(model[0](x)).detach()
    size = hidden.square().mean().sqrt()
    own = hidden @ (model[2].weight.detach() - first).T
    assert found["2"].change == pytest.approx(float(own.square().mean().sqrt() / size), rel=1e-9)
    assert found["2"].gain == pytest.approx(float(first.square().sum(1).mean().sqrt()), rel=0.5)  # six draws of noise
    assert not any(module._forward_hooks for module in model.modules())


def test_exponents_are_those_that_were_put_in():
    generator = torch.Generator().manual_seed(0)
    widths = (32, 64, 128, 256)
    draws = [[n**0.5 * math.exp(0.02 * float(torch.randn((), generator=generator))) for _ in range(6)] for n in widths]
    found = width_exponent(widths, draws)
    assert abs(found.value - 0.5) < 3 * found.stderr < 0.15
    moves = {n: [{"a": LayerMove(1.0 + 0.01 * k, n * (1 + 0.01 * k), 1.0)} for k in range(3)] for n in widths}
    exponents = scaling_exponents(moves)["a"]
    assert exponents["change"].value == pytest.approx(1.0) and exponents["gain"].value == pytest.approx(0.0)


def test_an_exponent_that_drifts_with_the_width_has_a_larger_error():
    widths = (32, 64, 128, 256)
    near = [1 + 0.0002 * k for k in range(6)]
    straight = width_exponent(widths, [[n * part for part in near] for n in widths])
    bent = width_exponent(widths, [[(n + n**1.5 / 10) * part for part in near] for n in widths])
    assert bent.stderr > 5 * straight.stderr


def test_three_widths_are_too_few():
    with pytest.raises(ValueError, match="four widths"):
        width_exponent((1, 2, 4), [[1.0, 1.0]] * 3)
