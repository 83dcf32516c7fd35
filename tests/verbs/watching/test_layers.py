"""Each layer's gradient, change and way, over the steps."""

import pytest
import torch
from torch import nn

from theodolite.verbs.watching import layers
from theodolite.verbs.watching.layers import layer_facts, layer_tables, starting_entries, stays
from theodolite.verbs.watching.records import Record


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))


def test_matrices_are_told_by_lengths_and_biases_are_not():
    model = network()
    origin = {name: value.clone() for name, value in model.state_dict().items()}
    slopes, ways = [torch.ones_like(p) for p in model.parameters()], {}
    starts = starting_entries(model, origin)
    assert set(starts) == {"0.weight", "2.weight"}
    with torch.no_grad():
        model[0].weight.mul_(1.5)
    facts = layer_facts(model, slopes, starts, ways)
    assert facts["gradient of 0.weight"] == pytest.approx(12**0.5)
    assert facts["travel of 0.weight"] == pytest.approx(0.5) and facts["travel of 2.weight"] == 0
    with torch.no_grad():
        model[0].weight.mul_(2.0)
    again = layer_facts(model, None, starts, ways)
    assert again["update of 0.weight"] == pytest.approx(1.5)  # since the look before
    assert not [name for name in again if name.startswith("gradient")]


def test_parameters_that_are_made_of_others_tell_nothing():
    model = network()
    assert layer_facts(model, [torch.ones(5)], {}, {}) == {}
    assert layer_facts(nn.ReLU(), None, {}, {}) == {}


def test_of_many_layers_evenly_spread_ones_are_noted(monkeypatch):
    monkeypatch.setattr(layers, "MOST", 2)
    model = nn.Sequential(*(nn.Linear(2, 2) for _ in range(5)))
    assert list(starting_entries(model, model.state_dict())) == ["0.weight", "3.weight"]


def test_what_is_as_it_began_stays():
    model = network()
    origin = {name: value.clone() for name, value in model.state_dict().items()}
    with torch.no_grad():
        model[0].bias.add_(1)
    assert stays(model, origin, "0.weight") and not stays(model, origin, "0.bias")


def test_a_table_has_a_row_a_layer_and_zero_where_a_look_did_not_read_it():
    records = [Record(0, facts={"gradient of a": 1.0}), Record(5, facts={"gradient of a": 2.0, "gradient of b": 3.0})]
    assert layer_tables(records) == {"gradient by layer": (["a", "b"], [[1.0, 2.0], [0.0, 3.0]])}
