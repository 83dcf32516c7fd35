"""Drawn weights do not look trained; weights with a planted direction do."""

import torch
from torch import nn

from theodolite.core.subject import Subject
from theodolite.instruments._common.trained import looks_trained


def network(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(60, 80), nn.ReLU(), nn.Linear(80, 40))


def test_of_twenty_initializations_at_most_two_are_called_trained():
    assert sum(looks_trained(Subject(network(seed))) for seed in range(20)) <= 2  # one in fifty: P(3 or more) < 0.01


def test_a_direction_that_stands_out_is_training():
    model = network(0)
    with torch.no_grad():
        u, v = torch.randn(80, 1), torch.randn(1, 60)
        model[0].weight += 2.0 * u @ v / (u.norm() * v.norm())
    assert looks_trained(Subject(model))


def test_matrices_too_small_to_tell_are_not_called_trained():
    assert not looks_trained(Subject(nn.Linear(5, 3)))
