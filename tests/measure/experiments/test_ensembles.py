import math

import pytest
import torch

from theodolite.measure.experiments import (
    Ensemble,
    conditional_chain,
    correlations,
    elementwise,
    perturbation_growth,
    preactivations,
    safe_cholesky,
)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_safe_cholesky_is_the_library_s_where_that_works():
    a = torch.randn(5, 4, 6, generator=generator(), dtype=torch.float64)
    K = a @ a.mT
    assert torch.allclose(safe_cholesky(K), torch.linalg.cholesky(K), atol=1e-12)


def test_safe_cholesky_of_singular_matrices():
    a = torch.randn(7, 4, 2, generator=generator(), dtype=torch.float64)
    a[3] = 0
    K = a @ a.mT
    root = safe_cholesky(K)
    assert torch.isfinite(root).all()
    assert torch.allclose(root @ root.mT, K, atol=1e-10)


@pytest.mark.parametrize("name", ["tanh", "relu"])
def test_chain_and_weights_have_the_same_moments(name):
    """Both sample the same finite networks: mean and spread of the last layer's covariances agree."""
    x = torch.tensor([[1.0, 2.0, -1.0, 0.5], [0.5, -1.0, 1.5, 1.0]], dtype=torch.float64)
    ensemble = Ensemble(activation=elementwise(name), widths=(8, 8), weight_variance=1.4, bias_variance=0.1)
    first = 0.1 + 1.4 * x @ x.mT / 4
    nets = 40_000
    chain = conditional_chain(ensemble, first, nets=nets, generator=generator())[:, -1]
    z = preactivations(ensemble, x, nets=nets, generator=generator(1))[-2]  # (nets, 2, 8)
    signal = ensemble.activation(z)
    drawn = 0.1 + 1.4 * signal @ signal.mT / 8
    for i, j in ((0, 0), (0, 1)):
        a, b = chain[:, i, j], drawn[:, i, j]
        error = math.sqrt((a.var() + b.var()).item() / nets)
        assert abs(a.mean() - b.mean()).item() < 4.5 * error
        spread = (a.var() / b.var()).item()
        assert spread == pytest.approx(1, abs=0.15)


def test_chain_of_dead_layers_stays_dead_and_finite():
    ensemble = Ensemble(activation=torch.relu, widths=(1,) * 8, weight_variance=2.0)
    chain = conditional_chain(ensemble, torch.eye(2), nets=500, generator=generator())
    assert torch.isfinite(chain).all()
    assert (chain[:, -1] == 0).any()
    gone = chain[:, 4, 0, 0] == 0
    assert (chain[gone, 5:, 0, 0] == 0).all()


def test_chain_is_cut_into_parts_without_losing_networks():
    ensemble = Ensemble(activation=torch.relu, widths=(1000,), weight_variance=2.0)
    chain = conditional_chain(ensemble, torch.eye(1), nets=4500, generator=generator())
    assert chain.shape == (4500, 2, 1, 1)
    assert chain[:, 1].mean().item() == pytest.approx(1, abs=0.01)


def test_chain_refuses_weights_that_are_not_gaussian():
    ensemble = Ensemble(activation=torch.relu, widths=(4,), weight_variance=2.0, entries="sign")
    with pytest.raises(ValueError, match="Gaussian"):
        conditional_chain(ensemble, torch.eye(1), nets=2, generator=generator())


@pytest.mark.parametrize("entries", ["gauss", "uniform", "sign"])
def test_weights_have_the_variance_asked_for(entries):
    ensemble = Ensemble(activation=torch.tanh, widths=(50,), weight_variance=1.7, bias_variance=0.2, entries=entries)
    first = preactivations(ensemble, torch.ones(1, 10, dtype=torch.float64), nets=2000, generator=generator())[0]
    assert first.shape == (2000, 1, 50)
    assert first.var().item() == pytest.approx(1.9, rel=0.03)


def test_residual_and_copies():
    ensemble = Ensemble(activation=torch.tanh, widths=(6, 6), weight_variance=1.0, copies=3, with_skips=True)
    z = preactivations(ensemble, torch.ones(1, 3), nets=5, generator=generator())
    assert torch.equal(z[0][..., :2], z[0][..., 2:4])
    chain = conditional_chain(ensemble, torch.eye(2), nets=5, generator=generator())
    assert chain.shape == (5, 3, 2, 2)


def test_perturbations_of_a_line_and_a_square():
    linear = {
        kind: perturbation_growth(torch.clone, 2.0, kind=kind, units=200_000, generator=generator()).mean().item()
        for kind in ("parallel", "perpendicular", "mixed")
    }
    assert linear == pytest.approx({"parallel": 1.0, "perpendicular": 1.0, "mixed": 0.0}, abs=0.02)
    square = {
        kind: perturbation_growth(torch.square, 2.0, kind=kind, units=200_000, generator=generator()).mean().item()
        for kind in ("parallel", "perpendicular", "mixed")
    }
    assert square == pytest.approx({"parallel": 12.0, "perpendicular": 8.0, "mixed": 2.0}, rel=0.03)
    with pytest.raises(ValueError, match="parallel"):
        perturbation_growth(torch.tanh, 1.0, kind="sideways", units=2, generator=generator())


def test_names_and_correlations():
    assert elementwise("gelu") is torch.nn.functional.gelu
    with pytest.raises(ValueError, match="name"):
        elementwise("nothing")
    assert correlations(torch.tensor([[4.0, 1.0], [1.0, 1.0]])).item() == 0.5
