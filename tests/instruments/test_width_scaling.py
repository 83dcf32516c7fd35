"""Exponents of networks in the standard way, and what is said of them."""

import torch
from torch import nn

import theodolite as th
from theodolite.instruments.width_scaling import QUANTITIES, rule_of, wrong_layers


def net(width):
    return nn.Sequential(nn.Linear(8, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 3))


def data():
    generator = torch.Generator().manual_seed(0)
    return torch.randn(96, 8, generator=generator), torch.randint(3, (96,), generator=generator)


def readings(optimizer):
    torch.manual_seed(0)
    model = net(48)
    subject = th.Subject(model, data=data(), loss=nn.functional.cross_entropy, optimizer=optimizer(model.parameters()))
    return {(r.quantity, r.where): r for r in th.read("width-scaling", subject)}


def test_adam_in_the_standard_way_changes_hidden_layers_as_the_width():
    found = readings(lambda p: torch.optim.AdamW(p, lr=1e-3))
    change = {where: r for (quantity, where), r in found.items() if quantity == QUANTITIES["change"]}
    for where, power in (("0", 0), ("2", 1), ("4", 1)):
        assert abs(change[where].measured - power) < 3 * change[where].stderr + 0.1, where
        assert not change[where].alarming
    assert "must fall as 1 over the width" in change["2"].meaning


def test_descent_changes_input_layers_less_and_hidden_layers_more():
    found = readings(lambda p: torch.optim.SGD(p, lr=0.1))
    assert found[QUANTITIES["change"], "0"].measured < -0.3 < 0.2 < found[QUANTITIES["change"], "2"].measured


def test_wrong_first_sizes_are_named_before_steps():
    right = th.Reading(quantity=QUANTITIES["change"], where="a", measured=1.0, stderr=0.01, expected=th.Band(-0.1, 0.1))
    wrong = th.Reading(quantity=QUANTITIES["gain"], where="b", measured=1.0, stderr=0.01, expected=th.Band(-0.1, 0.1))
    assert wrong_layers([right]) == ("a",) and wrong_layers([right, wrong]) == ("b",)


def test_rules_of_optimizers():
    w = [nn.Parameter(torch.ones(2, 2))]
    assert rule_of(None) == rule_of(torch.optim.SGD(w)) == "sgd"
    assert rule_of(torch.optim.AdamW(w)) == "adam" and rule_of(torch.optim.LBFGS(w)) is None
