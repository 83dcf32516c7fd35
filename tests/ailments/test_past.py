"""Steps leave a trace in weights that PyTorch has drawn, and other draws are not taken for steps."""

import pytest
import torch
from torch import nn

from theodolite.ailments._common.past import was_stepped


def network(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


@pytest.mark.parametrize("seed", range(20))
def test_one_small_step_is_seen_and_a_fresh_network_is_fresh(seed):
    model = network(seed)
    assert not was_stepped(model)
    model(torch.randn(16, 4)).square().mean().backward()
    torch.optim.SGD(model.parameters(), lr=1e-3).step()
    assert was_stepped(model)


@pytest.mark.parametrize(
    "draw",
    [
        nn.init.xavier_uniform_,
        nn.init.kaiming_normal_,
        nn.init.orthogonal_,
        lambda w: nn.init.trunc_normal_(w, std=0.072),
    ],
)
def test_other_draws_are_not_steps(draw):
    torch.manual_seed(0)
    model = nn.Linear(64, 64)  # PyTorch's own draw has a standard deviation of 0.072
    draw(model.weight.data)
    nn.init.zeros_(model.bias)
    assert not was_stepped(model)


def test_running_statistics_tell_of_training():
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 1))
    assert not was_stepped(model)
    model(torch.randn(8, 3))
    assert was_stepped(model)
