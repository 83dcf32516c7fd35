"""Estimators of dimension against known manifolds, slow versions of themselves, and the values of other tools."""

import math

import numpy as np
import pytest
import torch
from benchmarks.known_manifolds import benchmark_manifolds
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import pdist, squareform
from sklearn.datasets import load_digits
from sklearn.linear_model import LinearRegression

from theodolite.construct.dimension import manifold, rotated
from theodolite.measure import dimension as measure
from theodolite.measure.dimension import by_distances, embeddings, planar_embeddings, tsne_affinities


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def ball(n=1500, d=5, columns=50, seed=0):
    g = generator(seed)
    return rotated(manifold("ball", n, d, generator=g), columns, generator=g)


@pytest.fixture(scope="module")
def digits():
    return load_digits().data


def test_twonn_is_the_line_of_the_paper():
    graph = measure.nearest_neighbors(ball(), 2)
    mu = np.sort(graph.distances[:, 1] / graph.distances[:, 0])[: int(1500 * 0.9)]
    height = -np.log(1 - np.arange(1, len(mu) + 1) / 1500)
    line = LinearRegression(fit_intercept=False).fit(np.log(mu)[:, None], height)
    assert measure.dimension_twonn(graph).value == pytest.approx(line.coef_[0], rel=1e-12)


def test_gride_is_the_maximum_of_its_likelihood():
    graph = measure.nearest_neighbors(ball(500), 16)
    log_mu = np.log(graph.distances[:, 15] / graph.distances[:, 7])

    def loss(d):
        return -(len(log_mu) * np.log(d) + 7 * np.log(np.expm1(d * log_mu)).sum() - (15 * d + 1) * log_mu.sum())

    best = minimize_scalar(loss, bounds=(1, 10), method="bounded", options={"xatol": 1e-10}).x
    assert measure.dimension_gride(graph, near=8).value == pytest.approx(best, rel=1e-6)
    assert measure.dimension_gride(graph).value == pytest.approx(
        1 / np.log(graph.distances[:, 1] / graph.distances[:, 0]).mean(), rel=1e-9
    )


def test_the_correlation_integral_counts_all_pairs():
    x = ball(600).numpy()
    x = np.concatenate([x, 0.01 * x + 3])  # a dense part: its rows have more neighbors in reach than the graph knows
    apart = pdist(x)
    full = np.sort(squareform(apart), axis=1)
    radii = [np.median(full[:, k]) for k in (10, 20)]
    counts = [(apart < radius).sum() for radius in radii]
    truth = math.log(counts[1] / counts[0]) / math.log(radii[1] / radii[0])
    assert measure.dimension_correlation(torch.from_numpy(x)).value == pytest.approx(truth, rel=1e-9)


def test_one_graph_serves_all():
    graph = measure.nearest_neighbors(ball(), 128)
    curve = measure.gride_curve(graph)
    assert len(curve) == 7
    assert [e.scale for e in curve] == sorted(e.scale for e in curve)
    assert curve[0].value == measure.dimension_gride(ball(), near=1).value


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_repeated_rows_do_not_matter(share):
    x = ball()
    again = torch.cat([x, x[: int(share * len(x))]])[
        torch.randperm(len(x) + int(share * len(x)), generator=generator())
    ]
    for estimate in (
        measure.dimension_twonn,
        measure.dimension_mle,
        measure.dimension_correlation,
        measure.dimension_gride,
    ):
        assert estimate(again).value == pytest.approx(estimate(x).value, rel=1e-9)
        assert abs(estimate(again).value - 5) < 0.75


@pytest.mark.parametrize(("factor", "shift"), [(1e-8, 0.0), (1.0, 1e5), (1e9, -1e12)])
def test_scale_and_shift_do_not_matter(factor, shift):
    x = ball(600)
    for estimate in (measure.dimension_twonn, measure.dimension_mle, measure.dimension_participation):
        assert estimate(factor * x + shift).value == pytest.approx(
            estimate(x).value, rel=1e-4 if shift < -1e9 else 1e-6
        )


@pytest.mark.parametrize(("kind", "d"), [("torus", 1), ("sphere", 2), ("torus", 2), ("sphere", 3)])
def test_stated_errors_cover_the_truth(kind, d):
    inside = 0
    for seed in range(8):
        graph = measure.nearest_neighbors(manifold(kind, 600, d, generator=generator(seed)), 20)
        found = [measure.dimension_twonn(graph), measure.dimension_mle(graph), measure.dimension_gride(graph, near=4)]
        inside += sum(abs(e.value - d) < 3 * e.stderr for e in found)
    assert inside >= 22  # of 24; at 99.7 % each, three misses come once in fifty thousand


@pytest.mark.parametrize(("n", "d"), [(2000, 5), (20_000, 5), (1500, 10), (1500, 20)])
def test_the_error_of_twonn_covers_the_bias_of_an_edge(n, d):
    x = torch.rand(n, d, generator=generator(), dtype=torch.float64)
    bare, found = measure.twonn_fit(x).estimate, measure.dimension_twonn(x)
    assert found.value == bare.value < d
    assert abs(found.value - d) < 3 * found.stderr
    if n > 2000:  # so many rows tell it to a hundredth, and they are wrong by four of these
        assert abs(bare.value - d) > 4 * bare.stderr


def test_the_error_of_twonn_is_the_bias_that_farther_neighbors_tell():
    """The mean of log ratios and the likelihood of Gride read the farther ones alike."""
    graph = measure.nearest_neighbors(torch.rand(4000, 5, generator=generator(), dtype=torch.float64), 16)
    near, far = measure.twonn_fit(graph).estimate, measure.dimension_gride(graph, near=8)
    farther = far.scale / near.scale - 1
    told = math.hypot(near.stderr, near.stderr / farther, (near.value - far.value) / farther)
    assert measure.dimension_twonn(graph).stderr == pytest.approx(told, rel=0.1)


@pytest.mark.parametrize("seed", range(3))
def test_the_error_of_the_calibrated_dimension_covers_a_manifold_that_bends(seed):
    known = benchmark_manifolds()["curled 12"]
    found = measure.dimension_calibrated(known.points(1500, generator=generator(seed)))
    assert known.dimension == 12
    assert abs(found.value - 12) < 3 * found.stderr
    assert found.stderr < 0.15 * found.value  # and it still says something


@pytest.mark.parametrize(("kind", "d"), [("sphere", 10), ("ball", 10), ("sphere", 20), ("ball", 40)])
def test_calibration_covers_the_truth_where_neighbors_are_biased(kind, d):
    x = manifold(kind, 1000, d, generator=generator())
    raw, calibrated = measure.dimension_twonn(x), measure.dimension_calibrated(x)
    assert raw.value < d
    assert abs(calibrated.value - d) < 3 * calibrated.stderr
    assert calibrated.stderr < 0.2 * d


def test_linear_dimensions_of_digits_are_the_known_ones(digits):
    assert [measure.dimension_pca(digits, share=s).value for s in (0.9, 0.95, 0.99)] == [21, 29, 41]
    assert [measure.dimension_pca(digits, share=s, standardized=True).value for s in (0.9, 0.95, 0.99)] == [31, 40, 54]
    assert measure.dimension_participation(digits).value == pytest.approx(13.2, abs=0.05)


def test_the_error_of_the_participation_ratio_is_its_spread():
    scale = torch.arange(1, 9, dtype=torch.float64) ** -0.5
    draws = [
        measure.dimension_participation(scale * torch.randn(300, 8, generator=generator(s), dtype=torch.float64))
        for s in range(40)
    ]
    spread = np.std([e.value for e in draws], ddof=1)
    assert 0.6 < np.mean([e.stderr for e in draws]) / spread < 1.6


def test_more_columns_than_rows():
    x = rotated(manifold("sphere", 60, 2, generator=generator()), 500, generator=generator(1))
    assert measure.linear_rank(x) == 3
    assert measure.dimension_participation(x).stderr > 0
    assert 1.3 < measure.dimension_mle(x).value < 2.7


def test_local_pca_and_mixture():
    x = ball()
    assert measure.dimension_local_pca(x).value == pytest.approx(5.0, abs=0.1)
    assert measure.gaussian_mixture(x).dimension.value == pytest.approx(5.0, abs=0.3)
    arc = manifold("arc and cube", 1500, 2, generator=generator())
    assert measure.gaussian_mixture(arc).components > 1


@pytest.mark.parametrize("function", [measure.dimension_twonn, measure.dimension_gride])
def test_a_lattice_is_refused_in_one_line(function):
    with pytest.raises(ValueError, match="^expected.*lattice") as caught:
        function(np.arange(100)[:, None])
    assert "\n" not in str(caught.value)


def test_isomap_reads_the_dimension_of_a_roll_and_a_cube():
    roll = manifold("swiss roll", 1000, 2, generator=generator())
    assert embeddings.isomap(roll, neighbors=7).dimension == 2
    assert embeddings.isomap(manifold("cube", 800, 4, generator=generator())).dimension == 4
    parts = torch.cat([roll[:300], roll[:100] + 1e3])
    assert "largest connected part" in embeddings.isomap(parts, neighbors=7).note


def test_hessian_eigenmaps_find_the_dimension_only_of_flat_manifolds():
    assert embeddings.dimension_hessian(manifold("arc and cube", 500, 3, generator=generator()))[0] == 3
    assert embeddings.dimension_hessian(manifold("sphere", 500, 3, generator=generator()))[0] == 0


def test_lle_weights_sum_to_one_and_coordinates_are_orthonormal():
    x = manifold("swiss roll", 300, 2, generator=generator())
    graph = measure.nearest_neighbors(x, 10)
    assert np.allclose(embeddings.lle_weights(graph, neighbors=10).sum(1), 1.0)
    y = embeddings.lle(x, neighbors=10).coordinates
    assert np.allclose(y.T @ y, 300 * np.eye(2))


def test_perplexity_is_the_exponential_of_the_entropy():
    x = torch.randn(80, 4, generator=generator(), dtype=torch.float64)
    p = tsne_affinities(x, perplexity=12.0)
    assert float(p.sum()) == pytest.approx(1.0)
    assert float(p.diagonal().sum()) == 0.0
    assert torch.allclose(p, p.T)


def test_every_planar_method_answers_or_says_why(digits):
    found = {quality.name: quality for quality in planar_embeddings(digits, most=150)}
    assert {"PCA", "Isomap", "LLE", "Hessian LLE", "LTSA", "spectral", "t-SNE"} == set(found)
    assert found["t-SNE"].score > found["PCA"].score > 0.7
    pixels = np.random.default_rng(0).integers(0, 2, size=(60, 3)).repeat(2, 0) + 1e-3 * np.arange(120)[:, None]
    for quality in planar_embeddings(pixels, most=120):
        assert quality.failure or np.isfinite(quality.coordinates).all()


def test_responsibilities_are_those_of_bayes_rule():
    g = generator()
    x = torch.cat([torch.randn(300, 2, generator=g) * 0.3, torch.randn(150, 2, generator=g) * 0.3 + 4]).double()
    found = measure.gaussian_mixture(x)
    assert found.components == 2
    assert found.responsibilities.shape == (len(found.rows), 2)
    assert found.responsibilities.sum(1) == pytest.approx(1)
    sides = found.responsibilities.argmax(1)
    assert len(set(sides[:300])) == len(set(sides[300:])) == 1
    near = torch.cat([torch.randn(300, 2, generator=g), torch.randn(150, 2, generator=g) + 2.5]).double()
    fit = measure.gaussian_mixture(near)
    points = fit.rows.points.numpy()
    shares = fit.responsibilities
    weights = shares.mean(0)
    logs = []
    for k in range(fit.components):  # at the fixed point of EM the moments are those that the responsibilities weigh
        w = shares[:, k] / shares[:, k].sum()
        apart = points - w @ points
        covariance = (w[:, None] * apart).T @ apart
        form = np.einsum("ij,jk,ik->i", apart, np.linalg.inv(covariance), apart)
        logs.append(math.log(weights[k]) - 0.5 * (form + np.linalg.slogdet(covariance)[1]))
    again = np.exp(np.array(logs).T - np.logaddexp.reduce(logs)[:, None])
    assert again == pytest.approx(shares, abs=0.02)


def test_twonn_of_some_rows_agrees_with_that_of_all_and_says_how_well_it_knows(monkeypatch):
    x = torch.rand(20_000, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    whole = measure.twonn_fit(x).estimate
    monkeypatch.setattr(by_distances, "LOOKED_AT", 2000)
    some = measure.twonn_fit(x).estimate
    assert 2.5 < some.stderr / whole.stderr < 4  # the root of ten, and rows far apart share fewer neighbors
    assert abs(some.value - whole.value) < 3 * some.stderr
