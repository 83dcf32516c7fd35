"""Numbers that were once wrong, each with the input that showed it and an independent value beside it."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from theodolite.theory import Activation, Mlp
from theodolite.theory.bias import widest_margin
from theodolite.theory.capacity import smoothed_relu
from theodolite.theory.dynamics import Moment, run_outcome, training_phase
from theodolite.theory.kernels import (
    Kernels,
    hermite_coefficients,
    kernel_learning,
    mlp_kernels,
    sphere_gram,
    trained_prediction,
)
from theodolite.theory.propagation import covariance_trajectory, jacobian_fourth_moment, variance_trajectory


def test_covariance_trajectory_keeps_the_distance_of_nearly_parallel_inputs():
    """In 40 digits; the cosine's own recursion in float64 is 2 % off here, and K12 holds 1e-6."""
    K11, _, K12 = covariance_trajectory(Mlp(20_000, "relu", 2.0), (1.0, 1.0, 1 - 1e-10))[-1]
    assert pytest.approx(9.42576565e-11, rel=3e-6) == 1 - K12 / K11


@pytest.mark.parametrize("name", ["tanh", "gelu", "erf", "silu"])
def test_covariance_trajectory_agrees_with_the_kernels_recursion_however_close(name):
    x = torch.tensor([[1.0, 0.0], [1.0, 3e-5]], dtype=torch.float64)
    spec = Mlp(12, name, 1.7, 0.1)
    start = 0.1 + 1.7 * 0.5, 0.1 + 1.7 * (x[1] @ x[1]).item() / 2, 0.1 + 1.7 * 0.5
    K11, K22, K12 = covariance_trajectory(spec, start)[-1]
    nngp = mlp_kernels(spec, x).nngp
    ours, theirs = 1 - K12 / math.sqrt(K11 * K22), 1 - nngp[0, 1] / (nngp[0, 0] * nngp[1, 1]).sqrt()
    assert ours == pytest.approx(theirs.item(), rel=1e-4)
    assert pytest.approx((nngp[0, 0].item(), nngp[0, 1].item()), rel=1e-10) == (K11, K12)


def test_mlp_kernels_of_very_many_layers_follow_the_law_of_the_angle():
    """1 - c falls as 9π²/2l²; a chain of 5,000 layers is one object for each layer that repeats."""
    x = torch.tensor([[1.0, 0.0], [0.2, 0.96**0.5]], dtype=torch.float64)
    nngp = mlp_kernels(Mlp(5_000, "relu", 2.0), x).nngp
    K = covariance_trajectory(Mlp(5_000, "relu", 2.0), (1.0, 1.0, 0.2))[-1]
    assert 1 - nngp[0, 1].item() / nngp[0, 0].item() == pytest.approx(1 - K[2] / K[0], rel=1e-5)


@pytest.mark.parametrize("time", [1e6, 1e7, 1e9, math.inf])
def test_trained_prediction_in_float32_with_repeated_points(time):
    torch.manual_seed(0)
    x = torch.randn(12, 5).repeat(3, 1)
    y = torch.randn(12).repeat(3)
    new = torch.randn(4, 5)
    spec = Mlp(2, "relu", 2.0)
    found = []
    for kind in (torch.float32, torch.float64):
        parts = [mlp_kernels(spec, a.to(kind), b.to(kind)) for a, b in ((x, x), (new, x), (new, new))]
        found.append(trained_prediction(parts[0], y.to(kind), time=time, cross=parts[1], prior=parts[2]).mean)
    assert found[0].dtype == torch.float32
    assert torch.allclose(found[0].double(), found[1], atol=2e-3)


def test_steps_of_descent_are_whole():
    one = Kernels(torch.ones(1, 1), torch.ones(1, 1))
    with pytest.raises(ValueError, match="expected a whole number of steps"):
        trained_prediction(one, torch.ones(1), time=2.5, cross=one, prior=one, discrete=True)


def test_sphere_gram_of_nearly_parallel_rows_has_the_true_least_eigenvalue():
    angle = math.acos(0.9999)
    rows = np.array([[1.0, 0.0], [math.cos(angle), math.sin(angle)]])
    exact = Activation("relu")
    least = exact.moment(1.0) - exact.covariance(1.0, 1.0, 0.9999)
    assert np.linalg.eigvalsh(sphere_gram("relu", rows))[0] == pytest.approx(least, rel=1e-6)
    assert least == pytest.approx(4.98e-5, rel=1e-2)


def test_sphere_gram_refuses_rows_that_are_not_of_unit_norm():
    with pytest.raises(ValueError, match="expected rows of unit norm"):
        sphere_gram("relu", np.array([[2.0, 0.0], [0.0, 1.0]]))


@pytest.mark.parametrize("place", [0.3, -1.7, 0.0])
def test_hermite_coefficients_see_a_step_wherever_it_is(place):
    found = hermite_coefficients(lambda z: (z > place).to(z.dtype), order=4)
    density = math.exp(-0.5 * place**2) / math.sqrt(2 * math.pi)
    hermite = [1.0, place, place**2 - 1, place**3 - 3 * place]
    expected = [0.5 * math.erfc(place / math.sqrt(2))]
    expected += [density * hermite[j - 1] / math.sqrt(math.factorial(j)) for j in range(1, 5)]
    assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("scale", [1e3, 1e15, 1e20])
def test_gelu_kernels_keep_their_digits_at_any_scale(scale):
    """Far from 0 GELU is ReLU: its kernel over the squared scale is that of ReLU."""
    x = torch.tensor([[1.0, 0.0], [0.6, 0.8], [1.0, 1e-9]], dtype=torch.float64)
    gelu = mlp_kernels(Mlp(1, "gelu", 2.0), scale * x).nngp / scale**2
    relu = mlp_kernels(Mlp(1, "relu", 2.0), x).nngp
    assert torch.allclose(gelu, relu, rtol=1e-5 if scale == 1e3 else 1e-12, atol=0)
    assert Activation("gelu").covariance(scale, scale, 0.5 * scale) / scale == pytest.approx(
        Activation("relu").covariance(1.0, 1.0, 0.5), rel=0.05 if scale == 1e3 else 1e-6
    )


@pytest.mark.parametrize("name", ["hardtanh", "relu6", "hardswish", "tanh", "gelu", "hardsigmoid", "silu"])
def test_kernels_with_a_zero_row_and_no_bias_are_those_of_the_limit(name):
    x = torch.tensor([[0.0, 0.0], [1.0, 2.0], [-0.5, 0.3]], dtype=torch.float64)
    found = mlp_kernels(Mlp(2, name, 1.5), x)
    sigma = Activation(name)
    first = [1.5 * (row @ row).item() / 2 for row in x]
    second = [1.5 * sigma.moment(K) for K in first]
    across = [1.5 * sigma.covariance(first[0], K, 0.0) for K in first]
    third = [1.5 * sigma.covariance(second[0], K, k) for K, k in zip(second, across, strict=True)]
    assert torch.isfinite(found.ntk).all()
    assert found.nngp[0, 1:].tolist() == pytest.approx(third[1:], rel=1e-8, abs=1e-9)
    assert torch.isfinite(mlp_kernels(Mlp(2, name, 1.5), torch.zeros(3, 2)).ntk).all()


def test_hard_sigmoid_has_its_derivatives_in_the_kernels():
    for source in ("hardsigmoid", torch.nn.functional.hardsigmoid, torch.nn.Hardsigmoid()):
        ntk = mlp_kernels(Mlp(1, source, 2.0, 0.1), torch.eye(2, dtype=torch.float64)).ntk
        assert torch.isfinite(ntk).all()
        assert Activation(source).name == "hardsigmoid"


def _exact_srelu(order, at):
    step, power = Fraction(1, order), 2 * order + 1
    total = sum(
        (-1) ** j * math.comb(2 * order, j) * max(Fraction(at) + 1 - j * step, Fraction(0)) ** power
        for j in range(2 * order + 1)
    )
    return float(total / (math.factorial(power) * step ** (2 * order)))


@pytest.mark.parametrize("order", [1, 5, 10, 20])
def test_srelu_of_high_order_is_its_formula_in_fractions(order):
    for at in (-0.5, -0.1, 0.0, 0.3):
        found = float(smoothed_relu(torch.tensor(at, dtype=torch.float64), order))
        assert found == pytest.approx(_exact_srelu(order, at), abs=1e-6)
    assert torch.isfinite(smoothed_relu(torch.linspace(-2, 2, 9), order)).all()


def test_jacobian_fourth_moment_of_a_thousand_single_units_is_infinite_not_nan():
    assert jacobian_fourth_moment(3, (1,) * 1000) == math.inf
    assert jacobian_fourth_moment(3, (1,) * 100) == pytest.approx(12 / 9 * 6.0**100, rel=1e-10)
    assert jacobian_fourth_moment(4, (6,) * 300, kurtosis=1.8) > 0


def test_widest_margin_with_a_free_intercept_knows_no_origin_and_no_unit():
    generator = np.random.default_rng(0)
    x = generator.standard_normal((40, 3))
    y = np.where(x[:, 0] > 0, 1.0, -1.0)
    x[:, 0] += 0.5 * y
    here = widest_margin(x, y, intercept="free")
    for shift, unit in ((1e4, 1.0), (0.0, 1e6), (1e6, 1.0)):
        there = widest_margin(unit * x + shift, y, intercept="free")
        assert there.margin == pytest.approx(unit * here.margin, rel=1e-5)
        assert (y * ((unit * x + shift) @ there.weight + there.bias)).min() == pytest.approx(1.0, rel=1e-4)
    scaled = np.hstack([x, 1e5 * generator.standard_normal((40, 1))])
    found = widest_margin(scaled, y, intercept="free")
    assert (y * (scaled @ found.weight + found.bias)).min() == pytest.approx(1.0, rel=1e-4)
    assert (
        found.margin <= np.linalg.norm(np.append(here.weight, 0)) ** -1 * 1.001 or found.margin >= here.margin * 0.999
    )


def test_mlp_takes_numbers_of_numpy_and_torch():
    spec = Mlp(np.int64(2), "relu", np.float32(2.0), torch.tensor(0.5))
    assert (spec.hidden_layers, spec.weight_variance, spec.bias_variance) == (2, 2.0, 0.5)
    assert Mlp(widths=np.array([3, 4]), activation="relu", weight_variance=np.float64(1.0)).widths == (3, 4)


def test_a_catapult_is_a_run_whose_loss_rose():
    start = Moment(0, loss=2.303, sharpness=3.0, lr=1.0)
    down = Moment(9, loss=0.1, sharpness=0.5, lr=1.0)
    assert training_phase([start, down]).name == "stable"
    assert training_phase([start, Moment(3, loss=4.0, sharpness=2.0, lr=1.0), down]).name == "catapult"
    assert run_outcome([1.0, 0.5, 0.0], [3.0, 2.0, 1.0], lr=1.0).name == "lazy"


def test_trajectories_stay_infinite_and_refuse_no_layers():
    assert covariance_trajectory(Mlp(20, "quadratic", 2.0), (10.0, 10.0, 1.0))[-1][0] == math.inf
    with pytest.raises(ValueError, match="expected weight_layers to be a whole number of at least 1"):
        variance_trajectory(Mlp(2, "relu", 2.0), 1.0, weight_layers=0)


def test_zero_targets_have_no_learning_curve():
    with pytest.raises(ValueError, match="expected targets that are not all 0"):
        kernel_learning(np.eye(2), np.zeros(2))
