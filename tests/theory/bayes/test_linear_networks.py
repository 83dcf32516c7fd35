import math

import mpmath
import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import digamma, kve
from scipy.stats import chi2 as chi2_law
from scipy.stats import multivariate_normal

from theodolite.measure.experiments import Problem, prior_draws, product_log_norms, tilted_draws
from theodolite.theory.bayes import (
    LinearNet,
    best_log_evidence,
    best_variance,
    effective_depth,
    limiting_best_variance,
    log_evidence,
    log_norm_moments,
    log_scale_density,
    noisy_scale_posterior,
    perpendicular_moment,
    posterior_ratio,
    scale_moment,
)
from theodolite.theory.bayes._meijer import log_meijer, log_meijers

SMALL = [
    (3.0, [0.5]),
    (0.01, [0.5, 1.0]),
    (2.0, [1, 1.5, 2.5]),
    (1e-3, [1.5, 2, 2, 2]),
    (50.0, [1.5, 2, 2.5]),
    (0.3, [0.5, 0.5, 0.5, 0.5]),
    (20.0, [3, 4, 7, 9]),
    (1e4, [1.0, 2.5]),
]


@pytest.mark.parametrize(("x", "b"), SMALL)
def test_meijer_agrees_with_mpmath_within_its_stated_error(x, b):
    with mpmath.workdps(30):
        truth = float(mpmath.log(mpmath.meijerg([[], []], [[mpmath.mpf(v) for v in b], []], mpmath.mpf(x))))
    found = log_meijer(math.log(x), b)
    assert abs(found.value - truth) <= found.stderr
    assert found.stderr < 1e-11


@pytest.mark.parametrize("order", [0.0, 3.5, 40.0])
@pytest.mark.parametrize("x", [1e-2, 5.0, 300.0])
def test_meijer_of_two_parameters_is_a_bessel_function(order, x):
    found = log_meijer(math.log(x), [2.0, 2.0 + order])
    truth = math.log(2 * kve(order, 2 * x**0.5)) - 2 * x**0.5 + (2 + order / 2) * math.log(x)
    assert found.value == pytest.approx(truth, abs=1e-11)


def test_meijer_of_large_widths_agrees_with_high_precision_on_another_contour():
    # widths of 2,000 and 20 layers; mpmath integrates along another vertical line, with another rule, in 30 digits
    b, log_x = [500.0] + [1000.0] * 20, 143.5
    found = log_meijer(log_x, b)
    with mpmath.workdps(30):
        s = mpmath.mpf(-38)

        def integrand(t):
            z = mpmath.mpc(s, t)
            total = mpmath.loggamma(b[0] + z) + 20 * mpmath.loggamma(b[1] + z) - z * log_x
            return mpmath.exp(total - 119000).real

        truth = 119000 + float(mpmath.log(mpmath.quad(integrand, [0, 20, 40, 80, 160, 260]) / mpmath.pi))
    assert abs(found.value - truth) <= found.stderr + 1e-9
    assert found.stderr < 1e-8


@pytest.mark.parametrize("log_x", [-1000.0, 1000.0])
def test_meijer_far_out_is_finite(log_x):
    found = log_meijer(log_x, [3.0, 5.0, 5.0])
    assert math.isfinite(found.value)


def test_meijer_of_many_points_is_that_of_each():
    points = np.linspace(-5, 5, 7)
    values, errors = log_meijers(points, [1.0, 2.0, 2.0])
    assert values.tolist() == [log_meijer(v, [1.0, 2.0, 2.0]).value for v in points]
    assert (errors < 1e-12).all()


def test_meijer_refuses_nonsense():
    with pytest.raises(ValueError, match="expected finite logarithms"):
        log_meijer(math.inf, [1.0])
    with pytest.raises(ValueError, match="expected at least one finite parameter"):
        log_meijer(0.0, [])


def settings(count=20):
    generator = np.random.default_rng(5)
    for _ in range(count):
        depth = int(generator.integers(1, 6))
        inputs = int(generator.integers(2, 60))
        widths = tuple(int(n) for n in generator.integers(2, 120, size=depth))
        samples = int(generator.integers(1, inputs + 1))
        yield LinearNet(inputs, widths, float(generator.uniform(0.5, 2))), samples, float(generator.uniform(0.2, 3))


@pytest.mark.parametrize(("net", "samples", "norm2"), list(settings()))
def test_evidence_and_scale_agree_with_importance_sampling(net, samples, norm2):
    problem = Problem(sizes=(net.inputs, *net.widths), samples=samples, norm2=norm2, prior_variance=net.prior_variance)
    z = posterior_ratio(net, samples=samples, norm2=norm2)
    drawn = tilted_draws(problem, scale_ratio=z, draws=20_000, generator=torch.Generator().manual_seed(1))
    evidence, fit = drawn.log_evidence(), drawn.quantity("fit")
    assert drawn.effective > 500
    assert abs(evidence.value - log_evidence(net, samples=samples, norm2=norm2).value) < 3 * evidence.stderr
    # the mean of 1/tau^2: moments of tau itself may be ruled by draws too rare to see
    assert abs(fit.value - norm2 * scale_moment(net, -1, samples=samples, norm2=norm2)) < 3 * fit.stderr


def test_the_two_samplers_agree():
    problem = Problem(sizes=(5, 4, 6), samples=2, norm2=0.8)
    generator = torch.Generator().manual_seed(0)
    plain = prior_draws(problem, draws=40_000, generator=generator).log_evidence()
    tilted = tilted_draws(problem, scale_ratio=0.7, draws=40_000, generator=generator).log_evidence()
    assert abs(plain.value - tilted.value) < 3 * math.hypot(plain.stderr, tilted.stderr)


def test_density_of_the_scale_is_normalized_and_has_the_moments():
    net, seen = LinearNet(8, (5, 9), 1.3), {"samples": 3, "norm2": 1.1}

    def density(u, power=0.0):
        return math.exp(log_scale_density(net, np.array([u]), **seen)[0] + power * u)

    assert quad(density, -12, 8)[0] == pytest.approx(1, abs=1e-8)
    assert quad(density, -12, 12, args=(1.0,))[0] == pytest.approx(scale_moment(net, 1, **seen), rel=1e-7)
    with pytest.raises(ValueError, match="expected a hidden layer"):
        log_scale_density(LinearNet(8), np.zeros(1), **seen)


@pytest.mark.parametrize("widths", [(), (7,), (60, 60), (30, 100, 30)])
def test_the_best_variance_has_the_largest_evidence(widths):
    best = best_variance(LinearNet(40, widths), samples=20, norm2=2.0)
    values = [
        log_evidence(LinearNet(40, widths, best * factor), samples=20, norm2=2.0).value for factor in (0.99, 1.0, 1.01)
    ]
    assert values[1] > max(values[0], values[2])
    bound = best_log_evidence(samples=20, norm2=2.0)
    assert values[1] < bound + 1e-9  # attained without hidden layers
    assert (values[1] == pytest.approx(bound)) == (not widths)


def test_known_values_of_the_best_variance_and_the_limit():
    assert best_variance(LinearNet(40, (60,)), samples=20, norm2=2.0) ** 2 == pytest.approx(4.1016, abs=1e-4)
    assert best_variance(LinearNet(40, (60, 60)), samples=20, norm2=2.0) ** 3 == pytest.approx(4.192, abs=1e-3)
    large = best_variance(LinearNet(4000, (6000,) * 3), samples=2000, norm2=2.0)
    assert large == pytest.approx(
        limiting_best_variance(LinearNet(4000, (6000,) * 3), samples=2000, norm2=2.0), rel=1e-3
    )


@pytest.mark.parametrize("inputs", [30, 400])
def test_with_one_hidden_layer_the_length_at_the_best_variance_is_exact(inputs):
    P = inputs // 3
    best = best_variance(LinearNet(inputs, (50,)), samples=P, norm2=2.0)
    found = perpendicular_moment(LinearNet(inputs, (50,), best), samples=P, norm2=2.0)
    assert found == pytest.approx((1 - P / inputs) * best**2, rel=1e-9)


@pytest.mark.parametrize(
    ("widths", "norm2"), [((3000,) * 2, 2.0), ((3000,) * 8, 2.0), ((800, 3000), 0.2), ((500,), 5.0)]
)
def test_the_root_z_is_the_limit_of_exact_posteriors(widths, norm2):
    net = LinearNet(4000, widths)
    exact = perpendicular_moment(net, samples=2000, norm2=norm2) / norm2
    assert exact == pytest.approx(posterior_ratio(net, samples=2000, norm2=norm2), rel=2e-3)


def test_depth_beyond_measure_gives_the_posterior_of_the_best_variance():
    deep = LinearNet(100, (200,) * 400)
    assert effective_depth(deep, samples=50) == pytest.approx(100)
    assert posterior_ratio(deep, samples=50, norm2=2.0) == pytest.approx(1, abs=0.02)


def test_log_norms_of_drawn_products():
    logs = product_log_norms((6, 9, 5), nets=20_000, generator=torch.Generator().manual_seed(0))
    mean, variance = log_norm_moments((6, 9, 5))
    assert float(logs.mean()) == pytest.approx(mean, abs=4 * math.sqrt(variance / 20_000))
    assert float(logs.var()) == pytest.approx(variance, rel=0.05)


def test_bad_networks_and_targets_are_refused():
    with pytest.raises(ValueError, match="expected widths of at least 1"):
        LinearNet(3, (0,))
    with pytest.raises(ValueError, match="expected a positive prior variance"):
        LinearNet(3, (2,), -1.0)
    with pytest.raises(ValueError, match="^expected"):
        log_evidence(LinearNet(3), samples=1, norm2=0.0)


def explicit(samples=3, inputs=5):
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((samples, inputs)), rng.standard_normal(samples)
    gram = x @ x.T
    seen = {"samples": samples, "norm2": float(y @ np.linalg.solve(gram, y)), "log_det": math.log(np.linalg.det(gram))}
    return gram, y, seen


def test_the_evidence_is_the_integral_of_a_gaussian_density_over_the_scale():
    gram, y, seen = explicit()
    width, variance = 4, 1.7

    def integrand(chi2):
        tau2 = variance / 5 * variance / width * chi2
        return chi2_law.pdf(chi2, width) * multivariate_normal.pdf(y, cov=tau2 * gram)

    truth = math.log(quad(integrand, 0, 200, epsabs=0, epsrel=1e-11, limit=400)[0])
    assert log_evidence(LinearNet(5, (width,), variance), **seen).value == pytest.approx(truth, abs=1e-8)


def test_the_evidence_of_two_hidden_layers_by_a_sum_over_both_scales():
    gram, y, seen = explicit()
    points = np.linspace(-12, 6, 361)  # logarithms of both chi-squares; the trapezoidal rule is exponentially exact
    weight = [points[1] - points[0]] * 361
    first, second = (np.exp(points) * chi2_law.pdf(np.exp(points), n) * weight for n in (3, 6))
    log_tau2 = math.log(0.8**3 / (5 * 3 * 6)) + points[:, None] + points
    density = np.exp(
        -0.5 * (3 * (math.log(2 * math.pi) + log_tau2) + seen["log_det"] + seen["norm2"] * np.exp(-log_tau2))
    )
    assert multivariate_normal.pdf(y, cov=np.exp(log_tau2[200, 200]) * gram) == pytest.approx(density[200, 200])
    truth = math.log(first @ density @ second)
    assert log_evidence(LinearNet(5, (3, 6), 0.8), **seen).value == pytest.approx(truth, abs=1e-8)


def test_the_best_evidence_is_the_largest_gaussian_density():
    gram, y, seen = explicit()
    found = minimize_scalar(lambda s: -multivariate_normal.logpdf(y, cov=math.exp(s) * gram), bounds=(-10, 10))
    assert best_log_evidence(**seen) == pytest.approx(-found.fun, abs=1e-9)
    assert math.exp(found.x) == pytest.approx(seen["norm2"] / 3, rel=1e-3)


@pytest.mark.parametrize("x", [4e9, 1e11])
def test_one_parameter_far_out_is_its_closed_form(x):
    """$G(x|b)=x^be^{-x}$ where the peak is taken for a Gaussian: billions less a logarithm that must not turn its sign."""
    found = log_meijer(math.log(x), [2.5])
    whole = 2.5 * mpmath.log(mpmath.mpf(math.exp(math.log(x)))) - mpmath.exp(mpmath.mpf(math.log(x)))
    assert abs(found.value - float(whole)) < found.stderr < 1.0


@pytest.mark.parametrize(("width", "size"), [(2000, 0.1), (20000, 0.1), (1, 2.0)])
def test_the_evidence_of_inputs_that_say_nothing_is_that_of_the_noise(width, size):
    """Targets below the noise: the likelihood is largest without a scale, and the search begins far from the prior's bulk.

    Above it the search begins at the bulk, whose lower tail is long where the width is 1.
    """
    squares = size * np.array([2.0, 4.0, 1.0])
    found = noisy_scale_posterior(LinearNet(3, (width,)), np.full(3, 1e-14), squares, noise_variance=0.7)
    expected = -0.5 * (np.log(2 * math.pi * 0.7) + squares / 0.7).sum()
    assert found.evidence.value == pytest.approx(expected, abs=1e-8)
    assert (found.weights * found.log_tau2).sum() == pytest.approx(
        digamma(width / 2) - math.log(3 * width / 2), abs=1e-8
    )


@pytest.mark.parametrize(("inputs", "samples", "widths"), [(6, 4, (5,)), (8, 3, (4, 7))])
def test_narrow_networks_have_the_evidence_and_the_scale_of_integrals_over_their_prior(inputs, samples, widths):
    """The squared scale is a product of chi-squares: their densities, convolved on a grid of its logarithm."""
    axis = np.linspace(-12.0, 6.0, 3000)
    step, density = axis[1] - axis[0], np.ones(1)
    for n in widths:
        one = np.exp(0.5 * n * (axis + math.log(0.5 * n) - np.exp(axis)) - math.lgamma(0.5 * n))
        density = np.convolve(density, one) * (step if len(density) > 1 else 1.0)
    grid = len(widths) * axis[0] + step * np.arange(len(density))

    def fit(log_variance):
        log_tau2 = grid + (len(widths) + 1) * log_variance - math.log(inputs)
        return np.exp(-0.5 * samples * log_tau2 - np.exp(-log_tau2)) * density  # labels of squared norm 2

    best = minimize_scalar(
        lambda s: -np.log(fit(s).sum()), bounds=(-3.0, 4.0), method="bounded", options={"xatol": 1e-9}
    )
    found = best_variance(LinearNet(inputs, widths), samples=samples, norm2=2.0)
    assert found == pytest.approx(math.exp(best.x), rel=5e-4)  # a grid of steps 0.006, read between its points
    whole = fit(math.log(1.5))
    at = -0.5 - (len(widths) + 1) * math.log(1.5) + math.log(inputs)
    net = LinearNet(inputs, widths, 1.5)
    found = np.exp(log_scale_density(net, np.array([-0.5]), samples=samples, norm2=2.0))[0]
    assert found == pytest.approx(np.interp(at, grid, whole) / (whole.sum() * step), rel=5e-4)


def test_the_narrowest_network_has_one_unit_a_layer():
    net = LinearNet(1, (1,), prior_variance=0.5)
    assert net.log_scale == 0.0
    for inputs, widths in ((0, ()), (1, (0,)), (1, (3, 0))):
        with pytest.raises(ValueError, match="^expected widths of at least 1"):
            LinearNet(inputs, widths)
