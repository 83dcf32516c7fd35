"""Steering: the gain in a linear network is known."""

import pytest
import torch
from torch import nn

import theodolite as th


def test_the_gain_of_steering_in_a_linear_network_is_exact():
    """|W v| / |v| for directions v drawn as the instrument draws them."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, 24), nn.Linear(24, 8)).double()
    (reading,) = th.read("steering", model, data=torch.randn(12, 10))
    directions = torch.randn(8, 24, generator=torch.Generator().manual_seed(0)).double()
    gains = (directions @ model[1].weight.T).norm(dim=1) / directions.norm(dim=1)
    assert reading.measured == pytest.approx(gains.mean().item(), rel=1e-6)
    assert reading.status == "agrees"
