"""The noise of batches by enumeration, and its balance with the pull of the loss."""

import itertools

import pytest
import torch

from theodolite.theory.dynamics import batch_scatter, dissipation


def test_scatter_of_batches_is_that_of_all_batches_there_are():
    g = torch.randn(5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    m, B = 5, 2
    scatter, signal = torch.cov(g.T).trace().item(), g.mean(0).square().sum().item()

    def spread(means, weights):
        mean = (weights[:, None] * means).sum(0)
        return (weights * (means - mean).square().sum(1)).sum().item()

    pairs = torch.stack([g[list(rows)].mean(0) for rows in itertools.combinations(range(m), B)])
    assert batch_scatter(scatter, signal, batch_size=B, samples=m) == pytest.approx(
        spread(pairs, torch.full((10,), 0.1))
    )
    draws = torch.stack([g[list(rows)].mean(0) for rows in itertools.product(range(m), repeat=B)])
    found = batch_scatter(scatter, signal, batch_size=B, samples=m, sampler="with replacement")
    assert found == pytest.approx(spread(draws, torch.full((25,), 0.04)))
    masks = torch.tensor(list(itertools.product((0.0, 1.0), repeat=m)), dtype=torch.float64)
    chance = torch.prod(torch.where(masks > 0, B / m, 1 - B / m), 1)
    found = batch_scatter(scatter, signal, batch_size=B, samples=m, sampler="independent")
    assert found == pytest.approx(spread(masks @ g / B, chance))
    assert batch_scatter(scatter, batch_size=B) == pytest.approx(scatter / B)
    with pytest.raises(ValueError, match="1 to 5"):
        batch_scatter(1.0, batch_size=6, samples=5)
    with pytest.raises(ValueError, match="sampler"):
        batch_scatter(1.0, batch_size=1, sampler="shuffled")


@pytest.mark.parametrize("momentum", [0.0, 0.6])
def test_dissipation_balances_a_stationary_linear_recursion(momentum):
    """In one dimension, L = h x^2/2 with noise of variance s: moments of (x, b) solve a linear system exactly."""
    h, s, lr = 1.3, 0.7, 0.2
    A = torch.tensor([[1 - lr * h, -lr * momentum], [h, momentum]], dtype=torch.float64)  # (x, b) to (x', b')
    N = s * torch.tensor([[lr**2, -lr], [-lr, 1.0]], dtype=torch.float64)
    C = torch.linalg.solve(torch.eye(4, dtype=torch.float64) - torch.kron(A, A), N.flatten()).reshape(2, 2)
    assert h * C[0, 0].item() == pytest.approx(dissipation(C[1, 1].item(), lr=lr, momentum=momentum), rel=1e-12)
