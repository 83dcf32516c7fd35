"""Tensors on disk are those that were laid there, and leave nothing behind."""

import gc
import math
import tempfile

import torch
from torch import nn

import theodolite as th
from theodolite.io.tensors_on_disk import OnDisk
from theodolite.verbs.watching import starts


def test_every_kind_of_tensor_comes_back_bit_for_bit():
    torch.manual_seed(0)
    tensors = {
        "half": torch.randn(3, 4).bfloat16(),
        "bool": torch.tensor([True, False, True]),
        "complex": torch.randn(2, dtype=torch.complex64),
        "none": torch.empty(0, 3),
        "one": torch.tensor(3),
        "turned": torch.randn(5, 4).t(),
        "double": torch.randn(7, dtype=torch.float64),
    }
    kept = OnDisk(tensors)
    assert dict(kept).keys() == tensors.keys() and "other" not in kept
    for name, tensor in tensors.items():
        assert kept[name].dtype == tensor.dtype and torch.equal(kept[name], tensor)
    kept["half"].zero_()  # what is read is a copy
    assert torch.equal(kept["half"], tensors["half"])


def test_the_start_of_a_large_model_lies_on_disk_and_is_gone_with_its_watch(monkeypatch, tmp_path):
    monkeypatch.setattr(starts, "LARGE", 1)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Linear(5, 3))
    first = {name: value.clone() for name, value in model.state_dict().items()}
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    x, y = torch.randn(12, 4), torch.arange(12) % 3
    watch = th.Watch(model, optimizer=optimizer, probe=(x, y), every=1, budget=math.inf)
    for step in range(4):
        watch(step)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    origin = watch._carried.origin
    assert isinstance(origin, OnDisk)
    assert all(torch.equal(origin[name], value) for name, value in first.items())
    assert watch.records[-1].value("relative distance from the starting weights") > 0
    assert watch.records[-1].value("drift of the tangent kernel since the start") > 0
    del watch, origin
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_where_nothing_can_be_written_the_start_stays_in_memory(monkeypatch, tmp_path):
    monkeypatch.setattr(starts, "LARGE", 1)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    model = nn.Linear(2, 2)
    assert torch.equal(starts.starting_weights(model, None)["weight"], model.weight)
