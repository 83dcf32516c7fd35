"""Kernels by random signs of the outputs are the trace kernel in the mean, and the same at every call."""

import torch
from torch import nn

from theodolite.measure.kernels import empirical_ntk, projected_jacobians


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 12), nn.Tanh(), nn.Linear(12, 30)).double(), torch.randn(3, 4).double()


def kernels(projections, **options):
    model, x = network()
    J = projected_jacobians(model, x, projections=projections, **options).double()
    return J @ J.mT


def test_the_mean_over_signs_is_the_trace_kernel():
    model, x = network()
    exact = 30 * empirical_ntk(model, x)  # which is the mean over outputs
    drawn = kernels(400)
    error = drawn.std(0) / 20
    assert bool(((drawn.mean(0) - exact).abs() < 4.5 * error + 1e-5 * exact.abs()).all())
    assert float((error / exact.diagonal().mean()).max()) < 0.05  # and that is no wide net


def test_the_same_seed_draws_the_same_signs_and_thinned_entries_are_weighted():
    assert torch.equal(kernels(4), kernels(4))
    assert not torch.equal(kernels(4), kernels(4, seed=1))
    whole, thin = kernels(64).mean(0), kernels(64, most=200).mean(0)
    assert float((thin.trace() / whole.trace() - 1).abs()) < 0.3
