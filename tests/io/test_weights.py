"""Tensors of a checkpoint as weights: tied ones once, what is left out by name."""

import pytest
import torch

from theodolite.io.checkpoints import checkpoint
from theodolite.io.weights import Weight, left_out, owners_of, readable, state_of, weights_of

GENERATOR = torch.Generator().manual_seed(0)


@pytest.mark.filterwarnings("ignore")
def test_tied_weights_are_surveyed_once(tmp_path):
    whole = torch.randn(20, 16, generator=GENERATOR)
    torch.save({"embed.weight": whole, "head.weight": whole, "other": whole.clone()}, tmp_path / "m.pt")
    found = checkpoint(tmp_path / "m.pt")
    assert list(found) == ["embed.weight", "other"]
    assert left_out(found) == {"tied to embed.weight: the same numbers": ("head.weight",)}


def test_tied_parameters_are_one_weight_and_owners_are_named():
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
    model[1].weight = model[0].weight
    assert list(weights_of(model)) == ["0.weight", "0.bias", "1.bias"]
    assert owners_of(model)["1.bias"] is model[1] and owners_of(None) == {}


def test_a_state_dict_is_found_under_its_usual_names():
    tensors = {"a": torch.ones(2), "step": 3}
    assert list(state_of({"epoch": 1, "model": {"state_dict": tensors}})) == ["a"]
    with pytest.raises(TypeError, match="expected a state dict of names and tensors, got int"):
        state_of({"epoch": 1})


def test_what_cannot_be_read_is_named_and_the_rest_goes_on():
    def gone():
        raise OSError("no such shard")

    weights = weights_of({"good": torch.ones(2), "bad": torch.tensor([1.0, torch.nan])})
    weights["gone"] = Weight("gone", (2,), "float32", gone)
    faults = {}
    assert [weight.name for weight, _ in readable(weights, faults)] == ["good"]
    assert "1 of 2 values of bad" in faults["bad"] and "no such shard" in faults["gone"]
