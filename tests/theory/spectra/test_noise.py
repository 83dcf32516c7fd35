"""Marchenko-Pastur against quadrature and against the measuring code's own form, edges against draws, bounds against SVDs."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from theodolite.measure.spectra import bulk
from theodolite.theory import spectra

RATIOS = (0.05, 0.3, 0.9, 1.0, 2.5)


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("variance", [1.0, 2.5])
def test_density_integrates_to_the_closed_distribution(ratio, variance):
    low, high = spectra.marchenko_pastur_edges(ratio, variance=variance)
    atom = max(0.0, 1 - 1 / ratio)
    for part in (0.2, 0.5, 0.9, 1.0):
        x = low + part * (high - low)
        mass = quad(  # x = t^2 removes the inverse square root at zero of the square case
            lambda t: 2 * t * float(spectra.marchenko_pastur_density(t * t, ratio, variance=variance)),
            math.sqrt(low),
            math.sqrt(x),
            epsabs=1e-10,
            limit=200,
        )[0]
        assert float(spectra.marchenko_pastur_cdf(x, ratio, variance=variance)) == pytest.approx(atom + mass, abs=1e-7)


def test_distribution_outside_the_edges():
    np.testing.assert_allclose(spectra.marchenko_pastur_cdf([-1.0, 0.0, 0.1, 3.0], 0.25), [0, 0, 0, 1])
    np.testing.assert_allclose(spectra.marchenko_pastur_cdf([-1.0, 0.0, 99.0], 4.0), [0, 0.75, 1])


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("order", [0, 1, 2, 3, 4])
def test_moments_are_those_of_the_density(ratio, order):
    low, high = spectra.marchenko_pastur_edges(ratio)
    found = quad(
        lambda t: 2 * t ** (2 * order + 1) * float(spectra.marchenko_pastur_density(t * t, ratio)),
        math.sqrt(low),
        math.sqrt(high),
        limit=200,
    )[0]
    expected = spectra.marchenko_pastur_moment(order, ratio) - (max(0.0, 1 - 1 / ratio) if order == 0 else 0.0)
    assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("ratio", RATIOS)
def test_quantiles_invert_the_distribution(ratio):
    for probability in (0.0, 0.1, 0.5, 0.99, 1.0):
        x = spectra.marchenko_pastur_quantile(probability, ratio)
        if probability > max(0.0, 1 - 1 / ratio):
            assert float(spectra.marchenko_pastur_cdf(x, ratio)) == pytest.approx(probability, abs=1e-9)
    with pytest.raises(ValueError, match="probability"):
        spectra.marchenko_pastur_quantile(1.5, ratio)
    with pytest.raises(ValueError, match="positive ratio"):
        spectra.marchenko_pastur_edges(0.0)


@pytest.mark.parametrize("ratio", [0.01, 0.3, 0.99, 1.0])
def test_two_ways_of_writing_the_distribution_agree(ratio):
    angle = np.linspace(0, math.pi, 50)
    x = 1 + ratio + 2 * math.sqrt(ratio) * np.cos(angle)
    np.testing.assert_allclose(1 - bulk._share_above(angle, ratio), spectra.marchenko_pastur_cdf(x, ratio), atol=1e-7)


def test_the_edge_of_noise_fluctuates_as_tracy_and_widom_say():
    from benchmarks.spectral_nulls import gaussian_spectrum

    random = np.random.default_rng(0)
    center, scale = spectra.noise_edge(200, 100)
    draws = np.array([(200 * gaussian_spectrum(200, 100, random)[-1] - center) / scale for _ in range(800)])
    assert draws.mean() == pytest.approx(-1.2065, abs=3 * 1.27 / math.sqrt(800) + 0.05)
    for probability in (0.1, 0.5, 0.9):
        found = (draws <= spectra.tracy_widom_quantile(probability)).mean()
        assert found == pytest.approx(probability, abs=3 * math.sqrt(probability * (1 - probability) / 800) + 0.01)


@pytest.mark.parametrize(("probability", "known"), [(0.9, 0.4501), (0.95, 0.9793), (0.99, 2.0234), (0.05, -3.1808)])
def test_tracy_widom_quantiles_are_those_of_the_tables(probability, known):
    assert spectra.tracy_widom_quantile(probability) == pytest.approx(known, abs=0.02)
    assert spectra.tracy_widom_cdf(known) == pytest.approx(probability, abs=0.002)


def test_spikes_leave_the_bulk_at_the_threshold_without_a_jump():
    for ratio in (0.1, 1.0, 3.0):
        edge = spectra.marchenko_pastur_edges(ratio)[1]
        threshold = spectra.bbp_threshold(ratio)
        assert spectra.spike_location(threshold * 0.5, ratio) == edge
        assert spectra.spike_location(threshold * (1 + 1e-9), ratio) == pytest.approx(edge)
        assert spectra.spike_location(threshold * 4, ratio) > edge


def test_the_two_exponents_invert_each_other():
    for b in (0.25, 1.0, 3.0):
        assert spectra.rank_exponent(spectra.density_exponent(b)) == pytest.approx(b)
    golden = (1 + math.sqrt(5)) / 2
    assert spectra.density_exponent(golden) == pytest.approx(golden)
    with pytest.raises(ValueError, match="above 1"):
        spectra.rank_exponent(1.0)


def matrices(n, p, q, seed):
    random = np.random.default_rng(seed)
    return random.normal(size=(n, p)), random.normal(size=(p, q))


@pytest.mark.parametrize("shape", [(9, 5, 7), (5, 9, 4), (4, 9, 9), (9, 9, 9), (1, 5, 6)])
def test_majorization_holds_for_every_shape(shape):
    for seed in range(20):
        A, B = matrices(*shape, seed)
        values = [np.linalg.svd(M, compute_uv=False) for M in (A @ B, A, B)]
        slack = spectra.majorization_slack(*values)
        assert min(slack) >= -1e-9
        bounds = spectra.horn_bounds(*values[1:])
        np.testing.assert_allclose(np.cumsum(np.log(values[0]))[: len(slack)] + slack, bounds[: len(slack)])


def test_condition_numbers_multiply_where_it_is_said():
    def kappa(M):
        values = np.linalg.svd(M, compute_uv=False)
        values = values[values > 1e-10 * values[0]]
        return values[0] / values[-1], values.size

    broken = 0
    for seed in range(200):
        random = np.random.default_rng(seed)
        n, p, q, r, s = random.integers(2, 9, 5)
        A = random.normal(size=(n, min(r, n, p))) @ random.normal(size=(min(r, n, p), p))
        B = random.normal(size=(p, min(s, p, q))) @ random.normal(size=(min(s, p, q), q))
        (left, rank_left), (right, rank_right), (whole, _) = kappa(A), kappa(B), kappa(A @ B)
        if spectra.product_bound_applies(p, rank_left, rank_right):
            assert whole <= spectra.condition_number_bound(left, right) * (1 + 1e-9)
        else:
            broken += whole > left * right
    assert broken > 5


def test_end_point_exponents_and_their_bounds():
    assert spectra.endpoint_exponent(spectra.power_law_condition_number(1.3, 50), 50) == pytest.approx(1.3)
    assert spectra.feature_exponent_bound(10.0, 1.0, weight_rank=100, feature_rank=10) == pytest.approx(4.0)
    assert spectra.two_layer_exponent_bound(1.0, 2.0, hidden_rank=4, weight_rank=4, rank=2) == pytest.approx(6.0)
    with pytest.raises(ValueError, match="rank"):
        spectra.endpoint_exponent(2.0, 1)


def test_gains_of_directions():
    A, _ = matrices(6, 4, 4, 0)  # directions of a space of 6, outputs 4
    values = np.linalg.svd(A, compute_uv=False)
    directions = np.random.default_rng(1).normal(size=(20_000, 6))
    gains = np.linalg.norm(directions @ A, axis=1) / np.linalg.norm(directions, axis=1)
    low, high = spectra.steering_gain_bounds(values, 6)
    assert low == 0.0
    assert gains.max() <= high
    assert np.sqrt((gains**2).mean()) == pytest.approx(spectra.random_direction_gain(values, 6), rel=0.02)
    assert spectra.steering_gain_bounds(values, 4)[0] == pytest.approx(values[-1])


@pytest.mark.parametrize("variance", [1.0, 0.3])
def test_the_edge_is_that_of_drawn_matrices_of_any_shape_and_variance(variance):
    """3,000 draws know the mean to 0.023 scales: three such errors, and 0.03 for sizes that are finite."""
    random = np.random.default_rng(1)
    for rows, columns in ((30, 30), (20, 60)):
        center, scale = spectra.noise_edge(rows, columns, variance=variance)
        assert (center, scale) == pytest.approx(spectra.noise_edge(columns, rows, variance=variance))
        drawn = math.sqrt(variance) * random.standard_normal((3000, rows, columns))
        largest = np.linalg.svd(drawn, compute_uv=False)[:, 0] ** 2
        assert (largest.mean() - center) / scale == pytest.approx(-1.2065, abs=0.1)


def test_the_edge_in_other_words():
    """Johnstone's form of the scale, from center and both square roots; halves are taken off both sides."""
    for rows, columns in ((3, 2), (50, 7), (400, 400)):
        a, b = rows - 0.5, columns - 0.5
        center, scale = spectra.noise_edge(rows, columns, variance=2.5)
        assert center == pytest.approx(2.5 * (a + b + 2 * math.sqrt(a * b)), rel=1e-12)
        assert (scale / 2.5) ** 3 == pytest.approx((math.sqrt(a) + math.sqrt(b)) ** 4 / math.sqrt(a * b), rel=1e-12)


@pytest.mark.parametrize("ratio", [1e-12, 1e-8, 1e-4, 0.0099, 0.0101, 0.25, 0.999, 1.0])
@pytest.mark.parametrize("angle", [0.3, 1.2, 2.0, 3.0])
def test_the_distribution_at_small_ratios_does_not_cancel(ratio, angle):
    r = math.sqrt(ratio)  # x = 1 + q - 2 sqrt(q) cos(angle): an integrand without a narrow support
    true = quad(lambda p: 2 / math.pi * math.sin(p) ** 2 / (1 + ratio - 2 * r * math.cos(p)), 0, angle, epsabs=1e-13)[0]
    x = 1 + ratio - 2 * r * math.cos(angle)
    assert float(spectra.marchenko_pastur_cdf(x, ratio)) == pytest.approx(true, abs=1e-12 + 2e-16 / r)


@pytest.mark.parametrize("ratio", [1.05, 2.0, 10.0])
def test_quantiles_within_the_mass_at_zero_are_zero_and_beyond_it_above_the_edge(ratio):
    atom, edge = 1 - 1 / ratio, spectra.marchenko_pastur_edges(ratio)[0]
    assert spectra.marchenko_pastur_quantile(0.999 * atom, ratio) == 0.0
    beyond = atom + 0.01 / ratio
    assert edge < spectra.marchenko_pastur_quantile(beyond, ratio)
    assert spectra.marchenko_pastur_cdf(spectra.marchenko_pastur_quantile(beyond, ratio), ratio) == pytest.approx(
        beyond
    )


def test_quantiles_without_a_mass_at_zero_are_never_zero():
    assert spectra.marchenko_pastur_quantile(0.0, 0.5) == spectra.marchenko_pastur_edges(0.5)[0] > 0
    assert spectra.marchenko_pastur_quantile(0.05, 0.95) > 0
