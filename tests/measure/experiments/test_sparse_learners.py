"""Learners of many problems at once against the same, one at a time and in other words."""

from functools import partial

import pytest
import torch
from torch import nn

from theodolite.measure.experiments import (
    descent_weights,
    gaussian_start,
    multiplicative_weights,
    network_outputs,
    online_weights,
    ridge_weights,
    trained_networks,
    vaw_predictions,
)
from theodolite.nn import Spindly


def data(b=3, k=5, d=8):
    x = torch.randn(b, k, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return x, x[..., 0].clone()


def test_squared_weights_are_those_of_the_layer():
    x, y = data()
    found = multiplicative_weights(x, y, update="spindlypm", lr=0.4, steps=25, initial_weight=0.01)
    layer = Spindly(8, 1, bias=False, scale=0.1, dtype=torch.float64)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(25):
        optimizer.zero_grad()
        (0.5 * (layer(x[1])[:, 0] - y[1]).square().mean()).backward()
        optimizer.step()
    torch.testing.assert_close(found[1], layer.weight.detach()[0])
    with pytest.raises(ValueError, match="expected an update"):
        multiplicative_weights(x, y, update="odd", lr=0.1, steps=1, initial_weight=0.1)


def test_networks_side_by_side_are_networks_alone():
    x, y = data()
    start = gaussian_start(3, (8, 6, 1), activation="tanh", generator=torch.Generator().manual_seed(1))
    adam = partial(torch.optim.Adam, lr=0.05)
    found = trained_networks(start, x, y, activation="tanh", optimizer=adam, steps=20)
    model = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 1)).double()
    with torch.no_grad():
        for layer, weight, bias in ((model[0], *start[:2]), (model[2], *start[2:])):
            layer.weight.copy_(weight[2].T)
            layer.bias.copy_(bias[2, 0])
    optimizer = adam(model.parameters())
    for _ in range(20):
        optimizer.zero_grad()
        (0.5 * (model(x[2])[:, 0] - y[2]).square().mean()).backward()
        optimizer.step()
    torch.testing.assert_close(network_outputs(found, x, "tanh")[2], model(x[2])[:, 0].detach())


def test_online_descent_takes_the_examples_in_turn():
    x, y = data(b=1)
    w = torch.zeros(8, dtype=torch.float64)
    for row, label in zip(x[0], y[0], strict=True):
        w = w - 0.1 * (row @ w - label) * row
    torch.testing.assert_close(descent_weights(x, y, optimizer=partial(torch.optim.SGD, lr=0.1), batch_size=1)[0], w)


def test_the_forecast_is_ridge_shrunk_by_the_new_point():
    x, y = data(b=1)
    x, y, new = x[0, :4], y[0, :4], x[0, 4:]
    inverse = torch.linalg.inv(torch.eye(8, dtype=torch.float64) + x.T @ x)
    wanted = new @ ridge_weights(x, y) / (1 + (new @ inverse * new).sum(1))
    torch.testing.assert_close(vaw_predictions(x, y, new), wanted)


def test_full_matrix_steps_by_an_explicit_root():
    from scipy.linalg import fractional_matrix_power

    x, y = data(b=1, k=1)
    slope = -y[0, 0] * x[0, 0]
    A = torch.eye(8, dtype=torch.float64) + torch.outer(slope, slope)
    wanted = -0.3 * torch.as_tensor(fractional_matrix_power(A.numpy(), -0.5)) @ slope
    torch.testing.assert_close(online_weights(x[0], y[0], exponent=0.5), wanted)
