import math

import numpy as np
import pytest
import torch
from scipy.integrate import quad

from theodolite.theory.capacity import (
    RadialFunction,
    corrective_contraction,
    cosine_density,
    dual_kernel,
    dual_scale,
    gaussian,
    memorization_bounds,
    one_group_error,
    polynomial_units,
    ridge_directions,
    separation,
    smoothed_cosine_density,
    smoothed_relu,
    smoothed_relu_slope,
    smoothing_density,
    smoothing_transform,
)
from theodolite.theory.capacity.corrective_networks import _unit_moment


def tensor(*values):
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize("width", [1.0, 0.3])
def test_smoothed_relu_is_the_formula(order, width):
    """Against the alternating sum of all 2k+1 truncated powers, in exact rational arithmetic's stead: mpmath digits."""
    import mpmath

    mpmath.mp.dps = 40
    step = mpmath.mpf(width) / order
    for t in (-1.2 * width, -0.7 * width, -1e-3, 0.0, 0.2 * width, 0.99 * width, 3.0):
        total = sum(
            (-1) ** j * mpmath.binomial(2 * order, j) * max(mpmath.mpf(t) + width - j * step, 0) ** (2 * order + 1)
            for j in range(2 * order + 1)
        )
        exact = float(total / (mpmath.factorial(2 * order + 1) * step ** (2 * order)))
        assert float(smoothed_relu(tensor(t), order, smoothing_width=width)) == pytest.approx(exact, abs=1e-14)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_smoothed_relu_slope_density_and_autograd_agree(order):
    t = torch.linspace(-1.3, 1.3, 53, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(smoothed_relu(t, order).sum(), t, create_graph=True)
    assert torch.allclose(slope, smoothed_relu_slope(t, order), atol=1e-13)
    at = t.detach()
    finite = (smoothed_relu_slope(at + 1e-5, order) - smoothed_relu_slope(at - 1e-5, order)) / 2e-5
    assert torch.allclose(finite, smoothing_density(at, order), atol=2e-5)  # kinks of the triangle, within a step
    assert float(slope[26].detach()) == pytest.approx(0.5, abs=1e-15)


def test_smoothed_relu_is_relu_outside_and_has_its_known_values():
    far = tensor(-5.0, -1.0, 1.0, 7.0)
    for order in range(5):
        assert torch.equal(smoothed_relu(far, order), torch.relu(far))
    assert [float(smoothed_relu(tensor(0.0), k)) for k in (1, 2)] == pytest.approx([1 / 6, 7 / 60], abs=1e-15)


def test_smoothing_transform_is_the_densitys():
    for order in (1, 2):
        for alpha in (0.5, 3.0, 5.5):
            integral, _ = quad(
                lambda t, a=alpha, k=order: math.cos(a * t) * float(smoothing_density(tensor(t), k)), 0, 1, points=[0.5]
            )
            assert float(smoothing_transform(tensor(alpha), order)) == pytest.approx(2 * integral, abs=1e-9)


def test_frequencies_that_smoothing_kills_are_refused():
    with pytest.raises(ValueError, match="expected frequencies below"):
        smoothing_transform(tensor(2 * math.pi), 1)
    with pytest.raises(ValueError, match="expected frequencies below"):
        smoothed_cosine_density(tensor(0.0), tensor(30.0), tensor(0.0), order=2, smoothing_width=0.5)
    assert float(smoothing_transform(tensor(100.0), 0)) == 1.0  # ReLU damps nothing


@pytest.mark.parametrize("bad", [-1, 1.5, True])
def test_orders_are_whole_numbers(bad):
    with pytest.raises((ValueError, TypeError), match="expected (an order|a whole number for order)"):
        smoothed_relu(tensor(0.0), bad)


def test_cosine_density_stays_below_its_bound():
    t = torch.linspace(-2.5, 2.5, 2001, dtype=torch.float64)
    for alpha in (0.1, 2.0, 15.0):
        for psi in (0.0, 1.0, -2.5):
            top = float(cosine_density(t, tensor(alpha), tensor(psi)).abs().max())
            bound = 4 * max(alpha**2, 6 + 4 * alpha)  # where the 1 / theta^2 of the network comes from
            assert top <= bound * (1 + 1e-12)
    assert float(cosine_density(tensor(2.2), tensor(3.0), tensor(0.0))) == 0.0


def test_separation_against_brute_force_in_blocks():
    x = torch.randn(70, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    pairs = [float((x[i] - x[j]).norm()) for i in range(70) for j in range(i)]
    assert separation(x) == pytest.approx(min(pairs), rel=1e-14)
    assert math.isinf(separation(x[:1]))


def test_dual_scale_makes_the_kernel_nearly_the_identity():
    x = torch.nn.functional.normalize(torch.randn(20, 6, generator=torch.Generator().manual_seed(0)).double(), dim=1)
    kernel = dual_kernel(x, scale=dual_scale(20, separation(x), margin=1.5))
    assert float((kernel - torch.eye(20)).abs().max()) == pytest.approx(20**-1.5, rel=1e-9)
    with pytest.raises(ValueError, match="separation"):
        dual_scale(5, 0.0)


def test_contraction_against_brute_force():
    """Many small groups, written out: their mean squared error over N0 = 1, 4 standard errors."""
    g = torch.Generator().manual_seed(0)
    x = torch.nn.functional.normalize(torch.randn(6, 4, generator=g, dtype=torch.float64), dim=1)
    y = tensor(1.0, -1.0, 0.5, 2.0, -1.0, 0.3)
    theory = corrective_contraction(x, y, scale=3.0, generator=g, draws=60_000)
    draws = 200_000
    xi = 3.0 * torch.randn(draws, 4, generator=g, dtype=torch.float64)
    kinks = torch.rand(draws, generator=g, dtype=torch.float64) * 4 - 2
    angles = xi @ x.T
    transform = torch.complex(torch.cos(angles) @ y, torch.sin(angles) @ y)
    alpha = angles.abs().amax(1)
    weight = transform.abs() * cosine_density(kinks, alpha, -transform.angle())
    one = torch.relu(angles / alpha[:, None] - kinks[:, None]) * weight[:, None]
    errors = (one - y).square().sum(1) / y.square().sum()
    slack = 4 * math.hypot(float(errors.std()) / math.sqrt(draws), theory.noise_share_stderr)
    assert abs(theory.factor(1) - float(errors.mean())) < slack
    assert theory.factor(round(theory.threshold)) == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize("alpha", [0.3, 2.0])
def test_the_second_moment_of_a_unit_is_its_integral(alpha):
    """4 times the integral of g''^2 (t - T)^2: a cubic rises from -2 to -1, and a cosine goes on to t."""
    t, phase = 0.4, 0.7
    value, slope = math.cos(phase - alpha), -alpha * math.sin(phase - alpha)

    def rise(place):
        s = place + 2
        return (value * (6 - 12 * s) + slope * (6 * s - 2)) ** 2 * (t - place) ** 2

    def wave(place):
        return (alpha**2 * math.cos(alpha * place + phase)) ** 2 * (t - place) ** 2

    expected = 4 * (quad(rise, -2, -1)[0] + quad(wave, -1, t)[0])
    assert float(_unit_moment(tensor(t), tensor(alpha), tensor(phase))) == pytest.approx(expected, rel=1e-11)


def test_bounds_and_constants():
    bounds = memorization_bounds(10, 5, 0.5)
    assert bounds["Du and others 2019: n^6"] == 1e6
    assert min(bounds, key=bounds.get).startswith("Daniely")
    closer = memorization_bounds(10, 5, 0.25)
    for name, bound in bounds.items():
        power = int(name[-1]) if "theta^" in name else 0  # as its title says
        assert closer[name] == pytest.approx(2**power * bound, rel=1e-12)
    assert polynomial_units(7, 2, order=1, error=0.1, failure_probability=0.2) == pytest.approx(7**4 / 0.02)
    with pytest.raises(ValueError, match="expected order to be a finite number above 0"):
        polynomial_units(7, 2, order=0)


def test_radial_functions_are_what_they_say():
    t = torch.linspace(-2, 2, 9, dtype=torch.float64)
    g = gaussian(1)
    assert torch.allclose(g.profile(t), torch.exp(-(t**2) / 2), atol=1e-13)
    assert torch.allclose(g.profile(t, derivative=1), -t * torch.exp(-(t**2) / 2), atol=1e-13)
    assert torch.allclose(g.profile(t, derivative=2), (t**2 - 1) * torch.exp(-(t**2) / 2), atol=1e-12)
    x = torch.rand(50, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 0.5
    assert torch.allclose(gaussian(2, scale=0.7).value(x), torch.exp(-x.square().sum(1) / 0.98), atol=1e-10)
    with pytest.raises(ValueError, match="one or two variables"):
        ridge_directions(RadialFunction(torch.exp, 3), like=x)


def test_sharpened_profile_smooths_back():
    g, k, h = gaussian(1), 2, 0.5
    nodes, weights = np.polynomial.legendre.leggauss(40)
    t, total = tensor(0.3), 0.0
    for low in np.arange(-k, k) * h:  # piece by piece between the knots
        u = torch.as_tensor(low + (nodes + 1) * h / 2)
        density = smoothing_density(u, k, smoothing_width=k * h)
        total += (
            float((torch.as_tensor(weights) * density * g.profile(t - u, derivative=2, order=k, box=h)).sum()) * h / 2
        )
    assert total == pytest.approx((0.09 - 1) * math.exp(-0.045), abs=1e-12)


def test_one_group_error_is_for_one_variable():
    assert one_group_error(gaussian(1), units=10) == pytest.approx(one_group_error(gaussian(1), units=1) / 10)
    with pytest.raises(ValueError, match="one variable"):
        one_group_error(gaussian(2), units=1)


@pytest.mark.parametrize(("samples", "theta"), [(2, 0.3), (20, 1.0), (1000, 1.9)])
@pytest.mark.parametrize("margin", [0.5, 1.0, 3.0])
def test_two_points_as_near_as_the_separation_meet_the_kernel_s_bound(samples, theta, margin):
    x = tensor([0.0, 0.0], [theta, 0.0])
    kernel = dual_kernel(x, scale=dual_scale(samples, theta, margin=margin))
    assert float(kernel[0, 1]) == pytest.approx(samples**-margin, rel=1e-12)


def test_the_scale_knows_one_point_and_points_farther_apart_than_the_sphere_allows():
    assert dual_scale(9, 1.0) == dual_scale(9, 1.0, margin=1.0)
    assert dual_scale(1, 1.0) == dual_scale(2, 1.0) > 0
    assert dual_scale(9, 5.0) == dual_scale(9, 2.0) < dual_scale(9, 1.9)


def test_one_point_is_infinitely_far_from_others_and_has_a_scale():
    alone = torch.ones(1, 3, dtype=torch.float64)
    assert separation(alone) == math.inf
    assert dual_scale(1, separation(alone)) == dual_scale(1, 2.0)


def test_one_point_at_frequency_zero_in_closed_form():
    """The cosine is then 1, its density the cubic's that rises from -2 to -1; a point lies at either end, at 1 or at -1."""
    given = {"scale": 1e-7, "generator": torch.Generator().manual_seed(0), "draws": 4000}
    found = corrective_contraction(torch.ones(1, 1).double(), tensor(2.0), **given)
    ends = [4 * quad(lambda s, t=t: (6 - 12 * s) ** 2 * (t + 2 - s) ** 2, 0, 1)[0] for t in (1, -1)]
    above = float(
        (torch.randn(4000, 1, generator=given["generator"].manual_seed(0), dtype=torch.float64) > 0).double().mean()
    )
    assert found.bias_share == pytest.approx(0.0, abs=1e-12)
    assert found.noise_share == pytest.approx(above * ends[0] + (1 - above) * ends[1] - 1, rel=1e-5)
