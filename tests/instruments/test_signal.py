"""Random networks behave as theory says in the stated share of draws; structured ones do not."""

import pytest
import torch
from torch import nn

import theodolite as th


def random_network(activation, name, seed, width=256):
    layers = [nn.Linear(64, width)] + [m for _ in range(4) for m in (activation(), nn.Linear(width, width))]
    model = nn.Sequential(*layers)
    th.initialize_(model, name, generator=torch.Generator().manual_seed(seed))
    return model


def inputs(seed):
    generator = torch.Generator().manual_seed(1000 + seed)
    scale = 0.5 + torch.rand(48, 1, generator=generator)  # inputs of different norms
    return scale * torch.randn(48, 64, generator=generator) + 0.5


@pytest.mark.parametrize(("activation", "name"), [(nn.ReLU, "relu"), (nn.Tanh, "tanh"), (nn.GELU, "gelu")])
def test_random_networks_agree(activation, name):
    """Bands of three standard deviations, 80 readings that a batch of shared weights ties together: few may stray."""
    readings = [
        r for seed in range(10) for r in th.read("signal", random_network(activation, name, seed), data=inputs(seed))
    ]
    told = [r for r in readings if r.expected is not None]
    assert len(told) == 80
    assert sum(r.status == "not random" for r in told) <= 2


def test_weights_that_know_the_data_do_not():
    model, x = random_network(nn.ReLU, "relu", 0), inputs(0)
    with torch.no_grad():
        hidden = torch.relu(model[0](x)).mean(0)
        direction = torch.outer(torch.ones(256), hidden / hidden.norm())
        model[2].weight.mul_(0.7).add_(0.5 * direction)
    above = {(r.quantity, r.where) for r in th.read("signal", model, data=x) if r.status == "not random"}
    assert ("mean square of the signal", "2") in above


def test_convolutions_pooling_and_residual_sums():
    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Conv2d(3, 32, 3, padding=1), nn.Conv2d(32, 32, 3, padding=1)
            self.c, self.head = nn.Conv2d(32, 32, 3, padding=1), nn.Linear(32, 5)

        def forward(self, x):
            x = torch.relu(self.a(x))
            x = x + torch.relu(self.b(x))
            return self.head(torch.relu(self.c(x)).mean((2, 3)))

    readings = th.read("signal", Residual(), data=torch.randn(8, 3, 12, 12, generator=torch.Generator().manual_seed(0)))
    told = {r.where: r.expected is not None for r in readings if "square" in r.quantity}
    assert told == {"a": False, "b": True, "c": False, "head": False}
    assert "sum" in next(r.meaning for r in readings if r.where == "c")


def test_one_sample_is_explained():
    result = th.survey(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4)), data=torch.ones(1, 4))
    assert "signal" in {skip.instrument for skip in result.skipped}


def test_identical_and_dead_inputs():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8, bias=False))
    with torch.no_grad():
        model[0].bias.fill_(-100.0)
    for data in (torch.ones(6, 4), torch.zeros(6, 4)):
        for reading in th.read("signal", model, data=data):
            assert reading.status != "invalid"
