"""The summary counts what torch's own counter counts, leaves the model alone, and shows readings beside shapes."""

import copy
import math

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.flop_counter import FlopCounterMode

import theodolite as th


def convolutions():
    torch.manual_seed(0)
    head = nn.Linear(8 * 64, 10)
    return nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), head)


X, Y = torch.randn(48, 1, 8, 8, generator=torch.Generator().manual_seed(0)), torch.arange(48) % 10


def test_sizes_and_work_are_those_of_torch():
    model = convolutions()
    found = th.summary(model, data=(X, Y))
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model.eval()(X[:32])
    assert found.multiply_adds == counter.get_total_flops() / 2 / 32
    assert (
        found.parameters
        == sum(p.numel() for p in model.parameters())
        == sum(layer.parameters for layer in found.layers)
    )
    assert [layer.output for layer in found.layers] == ["32 × 8 × 8 × 8"] * 3 + ["32 × 512", "32 × 10"]
    assert math.isnan(found.layers[0].gradient)


def test_readings_stand_beside_shapes_and_the_model_is_left_alone():
    model = convolutions().train()
    before = copy.deepcopy(model.state_dict())
    state = torch.get_rng_state()
    found = th.summary(model, data=(X, Y), loss=cross_entropy)
    first, last = found.layers[0], found.layers[-1]
    assert last.weight_variance == pytest.approx(float(model[4].weight.detach().var()) * 512, rel=1e-4)
    assert first.signal > 0 and last.gradient > 0 and model.training
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert torch.equal(state, torch.get_rng_state()) and not any(m._forward_hooks for m in model.modules())
    assert "multiply-adds a sample" in str(found) and "gradient" in str(found).splitlines()[0]
    assert found.html().startswith("<!doctype html>")


def test_shared_and_frozen_parameters_are_counted_once_and_named():
    shared = nn.Linear(8, 8)
    model = nn.Sequential(shared, nn.ReLU(), shared, nn.Linear(8, 2).requires_grad_(False))
    found = th.summary(model, data=torch.randn(3, 8))
    assert found.parameters == 72 + 18 and found.trainable == 72
    assert found.multiply_adds == 2 * 64 + 16
    assert "18 (frozen)" in str(found) and "18 frozen" in str(found)


def test_fused_attention_is_counted():
    torch.manual_seed(0)
    model = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    found = th.summary(model, data=torch.randn(4, 5, 16))
    linear = 5 * (16 * 48 + 16 * 16 + 2 * 16 * 32)
    assert found.multiply_adds == linear + 2 * 5 * 5 * 16


def test_data_may_come_second_as_in_torchinfo():
    model = nn.Linear(8, 3)
    assert th.summary(model, torch.randn(4, 8)).rows() == th.summary(model, data=torch.randn(4, 8)).rows()


def test_without_data_there_are_sizes_alone():
    found = th.summary(convolutions())
    assert found.samples == 0 and "multiply-adds" not in str(found) and len(found.layers) == 5
    with pytest.raises(TypeError, match=r"expected an nn.Module"):
        th.summary(3)
