"""From weights to features: exact where it is a linear map, and its bound where that fails."""

import torch
from torch import nn

import theodolite as th


def by_quantity(readings, quantity):
    return {reading.where: reading for reading in readings if quantity in reading.quantity}


def test_the_bridge_is_exact_and_knows_where_its_bound_fails():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(100, 20), nn.ReLU(), nn.Linear(20, 20))
    readings = th.read("bridge", model, data=torch.randn(30, 100))
    slack = by_quantity(readings, "slack")
    assert all(reading.status == "agrees" for reading in slack.values())
    condition = by_quantity(readings, "condition number")
    assert condition["0"].status == "no reference"  # 30 rows in 100 dimensions into 20: no bound
    assert condition["2"].status == "agrees"
