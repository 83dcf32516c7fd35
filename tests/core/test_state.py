import random

import numpy as np
import pytest
import torch
from torch import nn

from theodolite.core.state import exact_products, untouched


def model():
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(), nn.Linear(4, 2))
    net[0].weight.requires_grad_(False)
    net[2].eval()
    net(torch.randn(5, 3)).sum().backward()
    return net


def snapshot(net):
    return (
        [p.detach().clone() for p in net.parameters()],
        [b.clone() for b in net.buffers()],
        [None if p.grad is None else p.grad.clone() for p in net.parameters()],
        [p.requires_grad for p in net.parameters()],
        [m.training for m in net.modules()],
        [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in net.modules()],
        torch.get_rng_state(),
        np.random.get_state()[1].copy(),
        random.getstate(),
    )


def same(a, b):
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    return bool(np.all(a == b))


def test_everything_is_as_before():
    net = model()
    grads = [p.grad for p in net.parameters()]
    before = snapshot(net)
    with untouched(net, training=True):
        assert all(module.training for module in net.modules())
        net(torch.randn(7, 3)).square().sum().backward()
        net[1].running_mean.add_(1)
        net[0].weight.requires_grad_(True)
        net[3].register_forward_hook(lambda *_: None)
        net[3].register_forward_pre_hook(lambda *_: None)
        np.random.rand(3)
        random.random()
    assert same(before, snapshot(net))
    assert all(p.grad is g for p, g in zip(net.parameters(), grads, strict=True))


def test_everything_is_as_before_when_the_body_fails():
    net = model()
    before = snapshot(net)
    with pytest.raises(RuntimeError, match="halfway"), untouched(net):
        net[1].running_var.zero_()
        torch.rand(3)
        raise RuntimeError("halfway")
    assert same(before, snapshot(net))


def test_gradients_made_inside_are_gone():
    net = nn.Linear(2, 1)
    with untouched(net):
        net(torch.ones(1, 2)).sum().backward()
    assert net.weight.grad is None


def test_the_user_s_own_hooks_stay():
    net, calls = nn.Linear(2, 1), []
    net.register_forward_hook(lambda *_: calls.append(1))
    with untouched(net):
        net(torch.ones(1, 2))
    net(torch.ones(1, 2))
    assert len(calls) == 2


def test_a_body_that_changes_parameters_is_an_error():
    net = nn.Linear(2, 1)
    with pytest.raises(ValueError, match="parameters changed"), untouched(net), torch.no_grad():
        net.weight.add_(1)


def test_without_a_model_only_the_random_state_is_kept():
    before = torch.get_rng_state()
    with untouched(None):
        torch.rand(3)
    assert torch.equal(before, torch.get_rng_state())


def test_the_setting_is_highest_within_and_restored_after_an_error_too():
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        with pytest.raises(KeyError), exact_products():
            assert torch.get_float32_matmul_precision() == "highest"
            raise KeyError
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)
