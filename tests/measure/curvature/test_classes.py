"""Exact decompositions, and the fast way to the mean gradients against the slow one."""

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from theodolite.measure.curvature import (
    activation_structure,
    class_structure,
    gauss_newton,
    label_errors,
    label_gradients,
    outlier_gap,
    pair_gradients,
    pair_structure,
)


@pytest.fixture
def problem():
    generator = torch.Generator().manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 4)).double()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=generator, dtype=torch.float64))
    labels = torch.tensor([0] * 3 + [1] * 7 + [2] + [3] * 5)
    return model, torch.randn(16, 5, generator=generator, dtype=torch.float64), labels


def test_parts_of_gradients_add_up_to_the_gauss_newton_matrix(problem):
    model, x, labels = problem
    g, p = label_gradients(model, x)
    parts = class_structure(g, p, labels)
    G = gauss_newton(model, cross_entropy, (x, labels)).dense()
    assert torch.allclose(parts.matrix(), G, atol=1e-13)
    assert sum(parts.traces.values()) == pytest.approx(G.trace().item())
    exact = torch.linalg.eigvalsh(G).flip(0)
    assert torch.allclose(parts.eigenvalues()[:10], exact[:10], atol=1e-12)
    assert parts.rank("class", "cross", "equal") == 12
    assert parts.rank("class") == 4 == parts.rank("class", "equal")


def test_mean_gradients_by_backward_passes_are_the_means_of_all(problem):
    model, x, labels = problem
    g, p = label_gradients(model, x)
    means, weights = pair_gradients(model, [(x[:6], labels[:6]), (x[6:], labels[6:])], classes=4)
    parts, slow = pair_structure(means, weights), class_structure(g, p, labels)
    for name in ("class", "cross", "equal"):
        assert torch.allclose(parts.matrix(name), slow.matrix(name), atol=1e-13)
    assert weights.sum().item() == pytest.approx(1)


def test_errors_behind_a_layer_and_activations(problem):
    model, x, labels = problem
    errors, p = label_errors(lambda: model(x), model[1])
    direct = (p[:, None] - torch.eye(4, dtype=torch.float64)) @ model[2].weight.detach()
    assert torch.allclose(errors, direct)
    parts = class_structure(errors, p, labels)
    moment = torch.einsum("nc,ncd,nce->de", p / len(x), errors, errors)
    assert torch.allclose(parts.matrix(), moment, atol=1e-14)
    h = model[:2](x).detach()
    assert torch.allclose(activation_structure(h, labels).matrix(), h.T @ h / 16, atol=1e-13)
    assert not model[1]._forward_hooks


def test_words_instead_of_numbers():
    with pytest.raises(ValueError, match="two positive"):
        outlier_gap(torch.tensor([1.0, -1.0]))


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_a_gap_among_eigenvalues_that_are_not_finite_is_refused(bad):
    with pytest.raises(ValueError, match="^expected finite eigenvalues"):
        outlier_gap(torch.tensor([9.0, bad, 2.0, 1.0]))
