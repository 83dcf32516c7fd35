"""Edges against the roots of the update they come from, and what a last step says."""

import math

import pytest
import torch

from theodolite.theory.dynamics import step_quality, step_size_edge, update_edge


def largest_root(kind, curvature, *, lr, momentum, decay):
    """The spectral radius of the update of (error, velocity) along one direction of that curvature."""
    b = momentum
    gain = {"heavy-ball": 1.0, "nesterov": 1.0, "averaged": 1 - b}[kind]
    velocity = torch.tensor([gain * curvature, b], dtype=torch.float64)  # v' = b v + gain * curvature * x
    moved = velocity if kind != "nesterov" else b * velocity + torch.tensor([curvature, 0.0], dtype=torch.float64)
    error = torch.tensor([1 - lr * decay, 0.0], dtype=torch.float64) - lr * moved
    return torch.linalg.eigvals(torch.stack([error, velocity])).abs().max().item()


@pytest.mark.parametrize("kind", ["heavy-ball", "nesterov", "averaged"])
@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_the_largest_root_leaves_the_unit_circle_at_the_edge(kind, momentum, decay):
    told = {"lr": 0.7, "momentum": momentum, "decay": decay}
    edge = update_edge(0.7, momentum=momentum, kind=kind, decay=decay)
    assert largest_root(kind, 0.999 * edge, **told) < 1 < largest_root(kind, 1.001 * edge, **told)


def test_descent_is_the_same_by_both_names_and_sign_steps_have_no_edge():
    assert update_edge(0.1, momentum=0.9) == pytest.approx(step_size_edge(0.1, momentum=0.9))
    assert update_edge(0.1, kind="sign") == math.inf
    with pytest.raises(ValueError, match="lr x weight decay below 2"):
        update_edge(1.0, decay=3.0)
    with pytest.raises(ValueError, match="positive step"):
        update_edge(0.0)


def test_quality_of_a_step_on_a_parabola():
    """x^2/2 from x=1: a step of s has a slope of -s and a change of (1-s)^2/2 - 1/2."""
    for s in (0.1, 1.0, 2.0, 3.0):
        found = step_quality(-s, ((1 - s) ** 2 - 1) / 2)
        assert found.ratio == pytest.approx(1 - s / 2)
        assert found.second_order == pytest.approx(s * s)
        assert found.best == pytest.approx(1 / s) and found.longest == pytest.approx(2 / s)
    assert math.isnan(step_quality(0.0, 1.0).ratio)
    assert step_quality(-1.0, -1.5).best == math.inf  # it bends downwards: any longer step is better
