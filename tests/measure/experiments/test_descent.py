"""Descent as it is run, against closed forms."""

import pytest
import torch

from theodolite.measure.experiments import (
    descent_path,
    largest_stable_step,
    noisy_descent,
    two_layer_path,
    two_layer_start,
)
from theodolite.theory.dynamics import catapult_path, mean_square_path, noise_floor, step_size_edge


def test_momentum_is_that_of_torch():
    p = torch.nn.Parameter(torch.tensor([1.0, -2.0], dtype=torch.float64))
    for nesterov in (False, True):
        with torch.no_grad():
            p.copy_(torch.tensor([1.0, -2.0]))
        optimizer = torch.optim.SGD([p], lr=0.1, momentum=0.7, nesterov=nesterov)
        for _ in range(5):
            optimizer.zero_grad()
            (1.5 * p.square()).sum().backward()
            optimizer.step()
        path = descent_path(
            lambda x: 3 * x,
            torch.tensor([1.0, -2.0], dtype=torch.float64),
            lrs=torch.tensor([0.1]),
            steps=5,
            momentum=0.7,
            nesterov=nesterov,
        )
        assert torch.allclose(path[-1, 0], p.detach())


def test_edges():
    start = torch.ones(1, dtype=torch.float64)
    for momentum in (0.0, 0.8):
        found = largest_stable_step(lambda x: 2 * x, start, bracket=(0.1, 4.0), momentum=momentum)
        assert step_size_edge(found, momentum=momentum) == pytest.approx(2.0, rel=1e-3)
    with pytest.raises(ValueError, match="expected a positive step"):
        step_size_edge(-1.0)


def test_noise_settles_at_its_floor():
    found = noisy_descent(
        lambda x: x,
        torch.zeros(20_000, dtype=torch.float64),
        lrs=[0.5] * 40,
        noise_variance=1.0,
        generator=torch.Generator().manual_seed(0),
    )
    assert found.var().item() == pytest.approx(noise_floor(1.0, lr=0.5, noise_variance=1.0), rel=0.05)
    assert noise_floor(1.0, lr=2.5, noise_variance=1.0) == float("inf")
    assert mean_square_path([0.5] * 400, curvature=1.0, noise_variance=1.0, mean_square=9.0)[-1] == pytest.approx(1 / 3)


def test_two_layers_follow_the_recursion_step_by_step():
    u, v = two_layer_start(64, output=0.7, curvature=1.8, generator=torch.Generator().manual_seed(1))
    outputs, _ = two_layer_path(u, v, lrs=torch.tensor([1.5], dtype=torch.float64), steps=15)
    wanted = catapult_path(0.7, 1.8, lr=1.5, width=64, steps=15).outputs
    assert torch.allclose(outputs[:, 0], torch.tensor(wanted, dtype=torch.float64), rtol=1e-9)
    with pytest.raises(ValueError, match="curvature"):
        two_layer_start(4, output=9.0, curvature=1.0, generator=torch.Generator())
