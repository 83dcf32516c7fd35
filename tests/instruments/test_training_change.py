"""What was written into the weights is read off them."""

import pytest
import torch
from torch import nn

import theodolite as th


def test_the_rank_of_an_adapter_s_change_is_read_and_a_frozen_layer_is_not_changed():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 48), nn.ReLU(), nn.Linear(48, 24))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with torch.no_grad():
        model[0].weight += 0.2 * torch.randn(48, 2) @ torch.randn(2, 32)
    found = {(r.quantity, r.where): r for r in th.read("training-change", th.Subject(model, origin=before))}
    assert found["rank of the change", "0.weight"].measured == 2
    assert found["spikes in the change", "0.weight"].measured == 2
    assert found["size of the change, relative to the start", "2.weight"].measured == 0
    assert ("rank of the change", "2.weight") not in found


@pytest.mark.parametrize(
    ("before", "after", "words"), [(2.0, 2.0, "as it was"), (2.0, 1.5, "heavier"), (1.5, 2.0, "lighter")]
)
def test_the_tail_is_said_to_change_the_way_it_does(before, after, words):
    from theodolite.instruments._common.changes import WeightChange
    from theodolite.instruments.training_change import _way

    assert words in _way(WeightChange("a", 0.1, 5, 5, 2.0, 3.0, 0, before, after))
