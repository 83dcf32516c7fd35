import math

import numpy as np
import pytest
import torch

import theodolite.theory.kernels.solvers as solvers
from theodolite.theory import Mlp
from theodolite.theory.kernels import (
    Kernel,
    cholesky_factor,
    conjugate_gradients,
    dpp_sample,
    gp_posterior,
    kernel_ridge,
    leave_one_out_residuals,
    log_marginal_likelihood,
    mercer_eigenvalues,
    mlp_kernels,
    one_hot_targets,
    pivoted_cholesky,
    ridge_by_conjugate_gradients,
    rkhs_norm,
    trained_prediction,
)
from theodolite.theory.kernels._tiled_pairs import Kernels, TilePlan

SPEC = Mlp(2, "erf", 1.5, 0.1)


def data(n=25, new=6, d=4, seed=0, outputs=()):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n + new, d, generator=generator, dtype=torch.float64)
    return x[:n], x[n:], torch.randn(n, *outputs, generator=generator, dtype=torch.float64)


def test_ridge_primal_and_dual():
    x, new, y = data()
    weights = torch.linalg.solve(x.T @ x + 0.3 * torch.eye(4, dtype=torch.float64), x.T @ y)
    solution = kernel_ridge(x @ x.T, y, ridge=0.3)
    assert torch.allclose(solution.predict(new @ x.T), new @ weights, rtol=1e-12)
    assert rkhs_norm(x @ x.T, solution.weights).item() == pytest.approx(weights.norm().item(), rel=1e-12)


def test_gaussian_process_is_ridge_with_a_variance():
    x, new, y = data(outputs=(2,))
    kernel, cross, prior = mlp_kernels(SPEC, x).nngp, mlp_kernels(SPEC, new, x).nngp, mlp_kernels(SPEC, new).nngp
    posterior = gp_posterior(kernel, y, cross=cross, prior=prior, noise_variance=0.2)
    assert torch.allclose(posterior.mean, kernel_ridge(kernel, y, ridge=0.2).predict(cross), rtol=1e-12)
    inverse = torch.linalg.inv(kernel + 0.2 * torch.eye(25, dtype=torch.float64))
    assert torch.allclose(posterior.covariance, prior - cross @ inverse @ cross.T, atol=1e-12)
    assert (posterior.variance > 0).all() and (posterior.variance < prior.diagonal()).all()
    at_data = gp_posterior(kernel, y, cross=kernel, prior=kernel)
    assert torch.allclose(at_data.mean, y, atol=1e-8) and at_data.variance.max() < 1e-9


def test_leaving_one_out_in_closed_form():
    x, _, y = data(n=12, outputs=(2,))
    kernel = mlp_kernels(SPEC, x).ntk
    found = leave_one_out_residuals(kernel, y, ridge=0.1)
    for i in range(12):
        rest = [j for j in range(12) if j != i]
        model = kernel_ridge(kernel[rest][:, rest], y[rest], ridge=0.1)
        assert torch.allclose(found[i], y[i] - model.predict(kernel[i : i + 1][:, rest])[0], rtol=1e-9)


def test_log_marginal_likelihood_is_a_gaussian_density():
    x, _, y = data(n=8)
    kernel = mlp_kernels(SPEC, x).nngp
    law = torch.distributions.MultivariateNormal(torch.zeros(8).double(), kernel + 0.1 * torch.eye(8).double())
    assert log_marginal_likelihood(kernel, y, noise_variance=0.1) == pytest.approx(law.log_prob(y).item(), rel=1e-10)


@pytest.mark.parametrize("discrete", [False, True])
def test_gradient_flow_solves_its_equation(discrete):
    x, new, y = data(n=10, new=3)
    train, cross, test = mlp_kernels(SPEC, x), mlp_kernels(SPEC, new, x), mlp_kernels(SPEC, new)
    steps, rate = 7, 1.3
    eye = torch.eye(10, dtype=torch.float64)
    one = eye - rate * train.ntk / 10 if discrete else torch.linalg.matrix_exp(-rate * train.ntk / 10)
    left = eye - torch.linalg.matrix_power(one, steps)
    A = cross.ntk @ torch.linalg.solve(train.ntk, left)
    found = trained_prediction(train, y, time=steps, cross=cross, prior=test, lr=rate, discrete=discrete)
    assert torch.allclose(found.mean, A @ y, atol=1e-9)
    expected = test.nngp + A @ train.nngp @ A.T - A @ cross.nngp.T - cross.nngp @ A.T
    assert torch.allclose(found.covariance, expected, atol=1e-9)


def test_gradient_flow_begins_at_the_prior_and_ends_at_ridge_without_ridge():
    x, new, y = data(n=10, new=3)
    train, cross, test = mlp_kernels(SPEC, x), mlp_kernels(SPEC, new, x), mlp_kernels(SPEC, new)
    start = trained_prediction(train, y, time=0.0, cross=cross, prior=test)
    assert start.mean.abs().max() == 0.0 and torch.allclose(start.covariance, test.nngp)
    end = trained_prediction(train, y, time=math.inf, cross=cross, prior=test)
    assert torch.allclose(end.mean, kernel_ridge(train.ntk, y, ridge=0.0).predict(cross.ntk), atol=1e-8)
    late = trained_prediction(train, y, time=1e9, cross=cross, prior=test)
    assert torch.allclose(late.mean, end.mean, atol=1e-8)
    with pytest.raises(ValueError, match="diverges"):
        trained_prediction(train, y, time=3, cross=cross, prior=test, lr=1e3, discrete=True)
    with pytest.raises(ValueError, match="time"):
        trained_prediction(train, y, time=-1.0, cross=cross, prior=test)


def test_only_the_last_layer_trained_samples_the_posterior():
    """With Θ = K the trained ensemble is the Gaussian process posterior without noise."""
    x, new, y = data(n=10, new=3)
    k, c, t = (mlp_kernels(SPEC, *points).nngp for points in ((x,), (new, x), (new,)))
    found = trained_prediction(Kernels(k, k), y, time=math.inf, cross=Kernels(c, c), prior=Kernels(t, t))
    posterior = gp_posterior(k, y, cross=c, prior=t)
    assert torch.allclose(found.mean, posterior.mean, atol=1e-8)
    assert torch.allclose(found.covariance, posterior.covariance, atol=1e-9)


def test_jitter_is_reported():
    x, _, y = data(n=6)
    singular = mlp_kernels(SPEC, torch.cat([x, x])).ntk
    assert kernel_ridge(singular, torch.cat([y, y]), ridge=0.0).jitter > 0
    assert kernel_ridge(singular, torch.cat([y, y]), ridge=1e-3).jitter == 0
    with pytest.raises(ValueError, match="positive semidefinite"):
        cholesky_factor(-torch.eye(3))
    with pytest.raises(ValueError, match="finite"):
        cholesky_factor(torch.full((2, 2), math.inf))


@pytest.mark.parametrize("kind", ["ntk", "nngp"])
@pytest.mark.parametrize("name", ["relu", "tanh"])
def test_matrix_free_products(kind, name, monkeypatch):
    x, new, _ = data(n=50, new=20)
    monkeypatch.setattr("theodolite.theory.kernels._tiled_pairs.TILE", 16)
    monkeypatch.setattr("theodolite.theory.kernels._tiled_pairs.STRIP", 2)
    kernel = Kernel(Mlp(2, name, 1.5, 0.1), kind=kind)
    v = torch.randn(50, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    matrix = kernel.matrix(x)
    whole = getattr(mlp_kernels(Mlp(2, name, 1.5, 0.1), x), kind)
    assert torch.allclose(matrix.dense(), whole, rtol=1e-12)
    assert torch.allclose(matrix @ v, whole @ v, rtol=1e-10, atol=1e-11)
    assert torch.allclose(matrix @ v[:, 0], whole @ v[:, 0], rtol=1e-10, atol=1e-11)
    assert torch.allclose(kernel.matrix(new, x) @ v, kernel(new, x) @ v, rtol=1e-10, atol=1e-11)
    assert torch.allclose(matrix.diagonal(), whole.diagonal(), rtol=1e-12)
    positions = torch.tensor([3, 7])
    assert torch.allclose(matrix.block(slice(2, 5), positions), whole[2:5][:, positions], rtol=1e-10)
    with pytest.raises(ValueError, match="50 numbers"):
        matrix @ v[:4]
    with pytest.raises(ValueError, match="ntk"):
        Kernel(SPEC, kind="rbf")


@pytest.mark.parametrize("memory", [0, 8 * 16 * 40, 10**6])
@pytest.mark.parametrize("symmetric", [True, False])
def test_tiles_that_are_kept_are_not_computed_again(memory, symmetric, monkeypatch):
    x, new, _ = data(n=50, new=20)
    monkeypatch.setattr("theodolite.theory.kernels._tiled_pairs.TILE", 16)
    monkeypatch.setattr("theodolite.theory.kernels._tiled_pairs.STRIP", 2)
    made = []
    strip = TilePlan._strip
    monkeypatch.setattr(
        TilePlan, "_strip", lambda self, rows, *rest, **how: made.append(rows) or strip(self, rows, *rest, **how)
    )
    kernel = Kernel(SPEC)
    matrix = kernel.matrix(x, memory=memory) if symmetric else kernel.matrix(new, x, memory=memory)
    whole = kernel(x) if symmetric else kernel(new, x)
    made.clear()
    v = torch.randn(50, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    counts = []
    for vectors in (v, v[:, 0], 2 * v):
        assert torch.allclose(matrix @ vectors, whole @ vectors, rtol=1e-10, atol=1e-11)
        counts.append(len(made))
        made.clear()
    held = sum(tile[2].numel() for tile in matrix._kept) * 8
    assert held <= memory
    assert counts[1] == counts[2] and (counts[1] == 0 if memory == 10**6 else counts[1] > 0)
    assert counts[1] < counts[0] if memory else counts[1] == counts[0]


def test_a_matrix_that_solvers_multiply_keeps_tiles_where_memory_is_free(monkeypatch):
    x, new, _ = data(n=50, new=20)
    v = torch.ones(50, dtype=torch.float64)
    kernel = Kernel(SPEC)
    for free, kept in ((10**8, True), (0, False)):
        monkeypatch.setattr("theodolite.theory.kernels.matrix_free.free_bytes", lambda device, free=free: free)
        matrix, others = kernel.matrix(x), kernel.matrix(new, x)
        matrix @ v, others @ v
        assert matrix.memory == free // 4 and bool(matrix._kept) == kept and not others._kept


def test_conjugate_gradients_with_a_preconditioner():
    x, _, y = data(n=200, d=3, outputs=(2,))
    matrix = Kernel(SPEC).matrix(x)
    dense = matrix.dense()
    exact = kernel_ridge(dense, y, ridge=1e-3).weights
    columns = []

    def column(places):
        columns.extend(places.tolist())
        return matrix.block(slice(None), places)

    found = ridge_by_conjugate_gradients(matrix, y, ridge=1e-3, column=column, rank=60, tolerance=1e-10)
    plain = conjugate_gradients(dense, y, ridge=1e-3, tolerance=1e-10)
    assert torch.allclose(dense @ found.weights, dense @ exact, atol=1e-6)
    assert found.converged and found.residual <= 2e-10 and found.iterations < plain.iterations / 3
    assert 60 <= len(columns) <= 2 * 60  # in blocks, of which not every column is taken
    assert not conjugate_gradients(dense, y, ridge=1e-6, iterations=2).converged


def test_pivoted_cholesky_of_full_rank_is_exact():
    x, _, _ = data(n=20)
    kernel = mlp_kernels(SPEC, x).nngp
    factor = pivoted_cholesky(lambda i: kernel[:, i], kernel.diagonal(), rank=20)
    assert torch.allclose(factor @ factor.T, kernel, atol=1e-12)


def test_pivots_in_blocks_leave_no_more_than_twice_those_one_by_one(monkeypatch):
    x = torch.randn(300, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x[150:] = x[:150] + 1e-4  # a block that took the largest alone would take both of each pair
    kernel = mlp_kernels(SPEC, x).nngp

    def left(pivots):
        monkeypatch.setattr(solvers, "PIVOTS", pivots)
        factor = pivoted_cholesky(lambda i: kernel[:, i], kernel.diagonal(), rank=64)
        return float((kernel - factor @ factor.T).trace())

    assert 0 < left(32) <= 2 * left(1)


def test_mercer_eigenvalues_of_brownian_motion_and_of_the_golden_ratio():
    n = 800
    grid = (torch.arange(n, dtype=torch.float64) + 0.5) / n
    values = mercer_eigenvalues(torch.minimum(grid[:, None], grid))
    exact = 1 / ((torch.arange(1, 6, dtype=torch.float64) - 0.5) ** 2 * math.pi**2)
    assert torch.allclose(values[:5], exact, rtol=5e-5)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = torch.from_numpy(weights / weights.sum()).sqrt()
    nodes = torch.from_numpy(nodes)
    kernel = weights[:, None] * torch.exp(-0.5 * (nodes[:, None] - nodes) ** 2) * weights
    golden = (1 + math.sqrt(5)) / 2
    assert torch.allclose(
        60 * mercer_eigenvalues(kernel)[:4], golden ** -(2 * torch.arange(4.0).double() + 1), rtol=1e-9
    )


def test_a_k_dpp_draws_sets_by_their_determinants():
    x, _, _ = data(n=5)
    kernel = mlp_kernels(SPEC, x).nngp
    generator = torch.Generator().manual_seed(0)
    sets = [(i, j) for i in range(5) for j in range(i + 1, 5)]
    weights = np.array([torch.linalg.det(kernel[list(s)][:, list(s)]).item() for s in sets])
    draws = 1000
    counts = dict.fromkeys(sets, 0)
    for _ in range(draws):
        counts[tuple(dpp_sample(kernel, 2, generator=generator).tolist())] += 1
    share = np.array([counts[s] for s in sets]) / draws
    expected = weights / weights.sum()
    assert (np.abs(share - expected) < 4.5 * np.sqrt(expected * (1 - expected) / draws)).all()
    with pytest.raises(ValueError, match="rank"):
        dpp_sample(kernel, 6, generator=generator)


def test_classes_as_targets():
    targets = one_hot_targets(torch.tensor([0, 2, 1]))
    assert targets.argmax(1).tolist() == [0, 2, 1]
    assert targets.sum(1).abs().max() < 1e-15


def test_conditioning_on_one_value_after_the_other_gives_posterior_evidence_and_what_is_left_out():
    places = torch.tensor([-1.0, -0.6, 0.0, 0.5, 1.2, 0.8], dtype=torch.float64)
    y = torch.tensor([0.4, -0.3, 1.0, 0.2, -0.9], dtype=torch.float64)
    K, noise, n = torch.exp(-0.5 * (places[:, None] - places) ** 2 / 0.6**2), 0.3, 5

    def conditioned(order):
        """A Gaussian of two numbers is all that is conditioned at a time."""
        mean, log_density = torch.zeros(n + 1, dtype=torch.float64), 0.0
        cov = K + noise * torch.diag(torch.tensor([1.0] * n + [0.0], dtype=torch.float64))
        for i in order:
            gap, variance = y[i] - mean[i], cov[i, i].clone()
            log_density -= 0.5 * float(gap * gap / variance + torch.log(2 * torch.pi * variance))
            mean = mean + cov[:, i] * gap / variance
            cov = cov - cov[:, i : i + 1] * cov[i] / variance
        return mean, cov, log_density

    mean, cov, log_density = conditioned(range(n))
    inner = K[:n, :n]
    found = gp_posterior(inner, y, cross=K[n:, :n], prior=K[n:, n:], noise_variance=noise)
    assert float(found.mean[0]) == pytest.approx(float(mean[n]), rel=1e-9)
    assert float(found.variance[0]) == pytest.approx(float(cov[n, n]), rel=1e-9)
    assert float(log_marginal_likelihood(inner, y, noise_variance=noise)) == pytest.approx(log_density, rel=1e-9)
    left_out = y[2] - conditioned([0, 1, 3, 4])[0][2]
    assert float(leave_one_out_residuals(inner, y, ridge=noise)[2]) == pytest.approx(float(left_out), rel=1e-9)


@pytest.mark.parametrize(("time", "discrete"), [(0.7, False), (math.inf, False), (3, True)])
def test_a_linear_model_trained_from_random_starts_answers_as_its_two_kernels_say(time, discrete):
    """Training maps starts to answers by an affine map: found from the answers for no start and for each weight's own."""
    generator = torch.Generator().manual_seed(4)
    phi = torch.randn(5, 6, generator=generator, dtype=torch.float64)
    y = 1.0 + torch.randn(4, generator=generator, dtype=torch.float64)
    old, new, sizes = phi[:4], phi[4:], torch.linspace(0.3, 1.5, 6, dtype=torch.float64)
    theta = torch.cat([torch.zeros(1, 6, dtype=torch.float64), torch.diag(sizes)])

    def slope(at):
        return (y - at @ old.T) @ old / 4

    if discrete:
        for _ in range(round(time)):
            theta = theta + 0.5 * slope(theta)
    else:
        h = min(time, 200.0) / 3000
        for _ in range(3000):  # the midpoint rule
            theta = theta + h * slope(theta + 0.5 * h * slope(theta))
    mean, *others = (theta @ new.T)[:, 0].tolist()
    pairs = ((old, old), (new, old), (new, new))
    train, cross, prior = (Kernels((a * sizes**2) @ b.T, a @ b.T) for a, b in pairs)
    lr = 0.5 if discrete else 1.0
    found = trained_prediction(train, y, time=time, cross=cross, prior=prior, lr=lr, discrete=discrete)
    # the flow in steps of 1/60 of the time of its fastest direction
    assert float(found.mean[0]) == pytest.approx(mean, rel=1e-3)
    assert float(found.variance[0]) == pytest.approx(sum((other - mean) ** 2 for other in others), rel=1e-3)


@pytest.mark.parametrize(("rank", "ridge"), [(5, 0.1), (30, 0.1), (30, 1e-3)])
def test_ridge_by_iteration_has_the_minimum_of_each_eigendirection(rank, ridge):
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(60, 3, generator=generator, dtype=torch.float64)
    y = x[:, 0] * x[:, 1] + torch.randn(60, generator=generator, dtype=torch.float64)
    K = torch.exp(-0.5 * torch.cdist(x, x).square())
    found = ridge_by_conjugate_gradients(K, y, ridge=ridge, column=lambda i: K[:, i], rank=rank, tolerance=1e-10)
    values, vectors = torch.linalg.eigh(K)
    expected = ((vectors.T @ y).square() / (values + ridge)).sum()
    assert float(found.weights @ y) == pytest.approx(float(expected), rel=1e-7)
