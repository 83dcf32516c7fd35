"""Ranks of drawn noise beside what is said of them."""

import numpy as np
import pytest
from scipy.stats import chi2

from theodolite.theory.spectra import (
    marchenko_pastur_edges,
    noise_edge,
    noise_effective_rank,
    noise_stable_rank,
    noise_stable_rank_band,
    random_product_rank_band,
    tracy_widom_quantile,
)

SHAPES = [(60, 60), (30, 120)]


@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_the_band_of_the_stable_rank_holds_its_share_of_draws_on_either_side(rows, columns):
    """At a significance of 0.2 a tenth of the draws lies beyond each end, but for the room that the norm's own band adds."""
    singular = np.linalg.svd(np.random.default_rng(0).standard_normal((2000, rows, columns)), compute_uv=False)
    ranks = (singular**2).sum(1) / singular[:, 0] ** 2
    assert ranks.mean() == pytest.approx(
        noise_stable_rank(rows, columns), rel=0.1
    )  # the edge is that of large matrices
    band = noise_stable_rank_band(rows, columns, significance=0.2)
    low, high = np.quantile(ranks, [0.1, 0.9])
    spread = 3 * (2 / (rows * columns)) ** 0.5
    assert band.low == pytest.approx(low * (1 - spread), rel=0.02)
    assert band.high == pytest.approx(high * (1 + spread), rel=0.02)


@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_the_ends_are_three_deviations_of_chi_squares_law_over_quantiles_of_the_edge(rows, columns):
    band, law = noise_stable_rank_band(rows, columns, significance=0.2), chi2(rows * columns)
    edge, unit = noise_edge(rows, columns)
    low, high = (edge + unit * tracy_widom_quantile(p) for p in (0.1, 0.9))
    assert band.low * high == pytest.approx(law.mean() - 3 * law.std(), rel=1e-12)
    assert band.high * low == pytest.approx(law.mean() + 3 * law.std(), rel=1e-12)


@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_the_effective_rank_is_that_of_drawn_noise(rows, columns):
    singular = np.linalg.svd(np.random.default_rng(1).standard_normal((200, rows, columns)), compute_uv=False)
    share = singular / singular.sum(1, keepdims=True)
    drawn = np.exp(-(share * np.log(share)).sum(1))
    assert noise_effective_rank(rows, columns) == pytest.approx(drawn.mean(), rel=0.01)


@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_the_effective_rank_is_the_integral_over_the_density(rows, columns):
    r"""With M the mean of the root of an eigenvalue: $p\,M\exp(-E[\sqrt\lambda\ln\sqrt\lambda]/M)$."""
    p, n = sorted((rows, columns))
    low, high = marchenko_pastur_edges(p / n)
    t = (np.arange(4000) + 0.5) * np.pi / 4000  # the eigenvalue runs from edge to edge as a cosine: no end is singular
    eigenvalue = 0.5 * (high + low) - 0.5 * (high - low) * np.cos(t)
    weight = (0.5 * (high - low) * np.sin(t)) ** 2 / (2 * (p / n) * eigenvalue) / 4000
    root = np.sqrt(eigenvalue)
    mean, product = (weight * root).sum(), (weight * root * np.log(root)).sum()
    assert weight.sum() == pytest.approx(1.0, abs=1e-9)
    assert noise_effective_rank(rows, columns) == pytest.approx(p * mean * np.exp(-product / mean), rel=2e-5)


def test_most_random_products_lie_in_the_band_and_on_either_side_of_its_middle():
    band, random, found = random_product_rank_band(30, 8, 20), np.random.default_rng(5), []
    for _ in range(60):
        singular = np.linalg.svd(random.normal(size=(30, 8)) @ random.normal(size=(8, 20)), compute_uv=False)
        share = singular[singular > 1e-9] / singular[singular > 1e-9].sum()
        found.append(float(np.exp(-(share * np.log(share)).sum())))
    assert all(band.low < rank < band.high for rank in found)
    assert np.mean(found) == pytest.approx(0.5 * (band.low + band.high), abs=0.1)
