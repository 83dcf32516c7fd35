"""Layers of squared weights: their values, gradients, precisions, copies, and what descent on them finds."""

import copy

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrize

from theodolite.nn import Spindly, spindly


def test_the_layer_is_linear_with_the_difference_of_squares():
    layer = Spindly(5, 3, scale=0.2, dtype=torch.float64)
    assert layer.weight.abs().max() == 0
    with torch.no_grad():
        layer.plus.uniform_(0, 1, generator=torch.Generator().manual_seed(0))
    x = torch.randn(7, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    wanted = x @ (layer.plus**2 - layer.minus**2).T + layer.bias
    torch.testing.assert_close(layer(x), wanted)
    layer(x).sum().backward()
    torch.testing.assert_close(layer.plus.grad, 2 * layer.plus.detach() * x.sum(0))
    assert torch.autograd.gradgradcheck(
        lambda u: torch.func.functional_call(layer, {"plus": u}, (x,)).square().sum(),
        (layer.plus.detach().requires_grad_(),),
    )


def test_positive_without_bias():
    layer = Spindly(4, 2, bias=False, positive=True)
    assert sorted(layer.state_dict()) == ["plus"]
    assert layer.weight.detach().flatten().tolist() == pytest.approx([0.25] * 8)
    assert "positive=True" in repr(layer)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_precisions(dtype):
    layer = Spindly(64, 2, dtype=dtype)
    out = layer(torch.ones(3, 64, dtype=dtype))
    out.float().sum().backward()
    assert out.dtype == dtype == layer.plus.grad.dtype
    small = Spindly(1, 1, bias=False, scale=1e-4, dtype=dtype)  # its squares are below float16's smallest number
    with torch.no_grad():
        small.plus.fill_(0.5)
    assert small.weight.item() == pytest.approx(0.25, rel=1e-3)


@pytest.mark.parametrize("module", [nn.Linear(6, 4), nn.Conv2d(3, 5, 3), nn.Embedding(7, 3)])
def test_any_module_keeps_its_weight(module):
    before = module.weight.detach().clone()
    own = spindly(copy.deepcopy(module))
    torch.testing.assert_close(own.weight, before, rtol=1e-5, atol=1e-7)
    plus, minus = own.parametrizations.weight.original0, own.parametrizations.weight.original1
    torch.testing.assert_close(plus * minus, torch.full_like(plus, before[0].numel() ** -1.0))
    again = spindly(copy.deepcopy(module), scale=0.5)
    again.load_state_dict(own.state_dict())
    assert torch.equal(again.weight, own.weight)
    assert torch.equal(copy.deepcopy(own).weight, own.weight)
    parametrize.remove_parametrizations(own, "weight")
    torch.testing.assert_close(own.weight.detach(), before, rtol=1e-5, atol=1e-7)


def test_half_precision_weights_stay_to_rounding():
    layer = nn.Linear(32, 8).to(torch.bfloat16)
    before = layer.weight.detach().float()
    scale = (before.abs() + 2 / 32).max().item()  # the squares that are subtracted
    assert (spindly(layer).weight.detach().float() - before).abs().max() <= 4 * torch.finfo(torch.bfloat16).eps * scale


def test_descent_finds_the_sparse_target_that_plain_weights_miss():
    x = torch.randn(30, 100, generator=torch.Generator().manual_seed(0))
    y, test = x[:, :1], torch.randn(500, 100, generator=torch.Generator().manual_seed(1))
    errors = []
    for layer, lr in ((Spindly(100, 1, bias=False, scale=0.01), 0.05), (nn.Linear(100, 1, bias=False), 0.05)):
        if isinstance(layer, nn.Linear):
            nn.init.zeros_(layer.weight)
        optimizer = torch.optim.SGD(layer.parameters(), lr=lr)
        for _ in range(800):
            optimizer.zero_grad()
            (layer(x) - y).square().mean().backward()
            optimizer.step()
        errors.append((layer(test) - test[:, :1]).square().mean().item())
    assert errors[0] < 0.05
    assert errors[1] > 0.5  # about 1 - 30/100


def test_wrong_input_is_named():
    with pytest.raises(ValueError, match="expected a positive scale"):
        Spindly(3, 2, scale=0.0)
    with pytest.raises(ValueError, match="expected the name of a parameter, got 'wieght'"):
        spindly(nn.Linear(2, 2), "wieght")
    with pytest.raises(ValueError, match="expected positive weights"):
        spindly(nn.Linear(4, 4), positive=True)
