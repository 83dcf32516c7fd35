"""The tangent kernel at a look: how far it has come, and whether it still tells samples apart."""

import pytest
import torch
from torch import nn
from torch.nn.functional import mse_loss

import theodolite as th
from fixtures.watched import Watch
from theodolite.measure.kernels import empirical_ntk, kernel_drift
from theodolite.verbs.watching.tangent import answers_alike


def half_off(share):
    """A network of one rectifier that is on for some samples alone, by their order in the probe."""
    model = nn.Sequential(nn.Linear(1, 1), nn.ReLU(), nn.Linear(1, 1))
    with torch.no_grad():
        for layer in (model[0], model[2]):
            layer.weight.fill_(1.0)
            layer.bias.zero_()
    x = torch.full((64, 1), -1.0)
    x[1 : 1 + share, 0] = torch.linspace(1.0, 2.0, share)  # the eight samples of a look are 0, 8, 16, ...
    return model, x


def test_a_network_is_dead_only_if_it_answers_all_of_the_probe_alike():
    for share, dead in ((3, False), (0, True)):
        model, x = half_off(share)
        watch = Watch(model, probe=(x, torch.zeros(64, 1)), loss=mse_loss, every=1)
        watch.look(0, lr=1e-3)
        record = watch.look(1, lr=1e-3)
        assert (record.phase == "dead") == dead, record.reason
        assert any(f.name == "units-dead" for f in watch.findings) == dead


def test_the_drift_at_a_look_is_that_of_the_kernel_on_spread_samples():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
    x = torch.randn(8, 3)
    watch = Watch(model, probe=(x, torch.zeros(8, 1)), loss=mse_loss, every=1)
    first = empirical_ntk(model, x).double()
    assert watch.look(0).facts["drift"] == 0
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(1.3)
    moved = kernel_drift(first, empirical_ntk(model, x).double())
    assert watch.look(1).facts["drift"] == pytest.approx(moved, rel=1e-5)


def test_answers_are_alike_up_to_rounding_and_never_where_they_are_not_finite():
    x = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))
    model = nn.Linear(3, 2)
    subject = th.Subject(model, data=x)
    assert not answers_alike(subject)
    with torch.no_grad():
        model.weight.mul_(1e-9)
    assert answers_alike(subject)  # of a bias of size 1 that is no digit
    with torch.no_grad():
        model.bias.fill_(float("inf"))
    assert not answers_alike(subject)
