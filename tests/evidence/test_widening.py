"""The same network drawn anew, so many times as wide inside."""

import torch
from torch import nn

from theodolite.evidence.widening import layers_run, widened_copy


def test_hidden_numbers_grow_and_inputs_and_outputs_stay():
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)
    )
    x = torch.randn(3, 1, 6, 6)
    wide = widened_copy(net, 3, x)
    assert (wide[0].weight.shape, wide[1].num_features, wide[5].weight.shape) == ((12, 1, 3, 3), 12, (2, 12))
    assert list(layers_run(wide, x)) == ["0", "5"] and wide(x).shape == (3, 2)
    assert net[0].weight.shape == (4, 1, 3, 3)


def test_tied_frozen_and_single_layers_are_not_taken():
    x, table = torch.tensor([[0, 1]]), nn.Embedding(6, 4)
    tied = nn.Sequential(table, nn.Linear(4, 6, bias=False))
    assert widened_copy(tied, 2, x) is not None
    tied[1].weight = table.weight
    assert widened_copy(tied, 2, x) is None
    assert widened_copy(nn.Sequential(nn.Linear(3, 3)), 2, torch.ones(1, 3)) is None
