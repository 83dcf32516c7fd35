import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from theodolite.theory import Mlp
from theodolite.theory.propagation import (
    chi_parallel,
    chi_perpendicular,
    covariance_jacobian,
    covariance_trajectory,
    critical_decay,
    criticality,
    first_covariance,
    fixed_points,
    limiting_correlation,
    next_covariance,
    next_variance,
    phase,
    variance_trajectory,
)

X, Y = (1, 2, -1, 0.5), (0.5, -1, 1.5, 1)


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        (("relu", 2.0, 0.0), (3.125, 2.25, 1.4093916137)),
        (("tanh", 1.0, 0.0), (0.1812021004, 0.1707654525, -0.0739616852)),
        (("tanh", 1.5, 0.05), (0.5084068732, 0.4967137270, -0.0291240445)),
    ],
)
def test_covariance_trajectories(spec, want):
    mlp = Mlp(3, *spec)
    assert covariance_trajectory(mlp, first_covariance(mlp, X, Y))[-1] == pytest.approx(want, abs=1e-10)


def test_covariance_trajectory_contains_the_variance_trajectory():
    mlp = Mlp(4, "silu", 1.7, 0.1)
    both = covariance_trajectory(mlp, (1.0, 2.0, 0.3))
    assert [pair[1] for pair in both] == pytest.approx(variance_trajectory(mlp, 2.0))


CRITICAL = {
    "gelu": ((3 + math.sqrt(17)) / 2, 1.98305826, 0.17292239),
    "silu": (14.3201736180, 1.98800468, 0.55514317),
    "tanh": (0.0, 1.0, 0.0),
    "sin": (0.0, 1.0, 0.0),
    "atan": (0.0, 1.0, 0.0),
    "erf": (0.0, math.pi / 4, 0.0),
    "elu": (0.0, 1.0, 0.0),
    "celu": (0.0, 1.0, 0.0),
    "selu": (0.0, 0.476771017882753, 0.0),
    "softsign": (0.0, 1.0, 0.0),
    "hardtanh": (0.0, 1.0, 0.0),
    "relu6": (0.0, 2.0, 0.0),
    "relu": (None, 2.0, 0.0),
    "identity": (None, 1.0, 0.0),
    "abs": (None, 1.0, 0.0),
}


@pytest.mark.parametrize("name", CRITICAL)
def test_critical_points(name):
    point = criticality(name)
    fixed, weight, bias = CRITICAL[name]
    kind = "scale-invariant" if fixed is None else "zero fixed point" if fixed == 0 else "half-stable"
    assert point.kind == kind
    assert point.fixed_point == (None if fixed is None else pytest.approx(fixed, abs=1e-9))
    assert (point.weight_variance, point.bias_variance) == pytest.approx((weight, bias), abs=6e-9)
    assert (point.chi_parallel, point.chi_perpendicular) == pytest.approx((1.0, 1.0), abs=1e-11)
    assert point.reason.endswith(".")


@pytest.mark.parametrize("name", ["gelu", "silu", "mish", "hardswish", lambda z: z + torch.sin(z) ** 2])
def test_half_stable_points_satisfy_all_conditions(name):
    point = criticality(name)
    weight, bias, K = point.weight_variance, point.bias_variance, point.fixed_point
    assert point.kind == "half-stable"
    assert next_variance(name, K, weight_variance=weight, bias_variance=bias) == pytest.approx(K, rel=1e-12)
    assert chi_parallel(name, K, weight_variance=weight) == pytest.approx(1, abs=1e-11)
    assert chi_perpendicular(name, K, weight_variance=weight) == pytest.approx(1, abs=1e-11)
    assert bias >= 0


def test_swish_scales():
    one, two = criticality("silu"), criticality(lambda z: z * torch.sigmoid(2 * z))
    assert two.fixed_point == pytest.approx(one.fixed_point / 4, abs=1e-8)
    assert two.bias_variance == pytest.approx(one.bias_variance / 4, abs=1e-9)
    assert two.weight_variance == pytest.approx(one.weight_variance, abs=1e-9)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("sigmoid", "negative at every variance.*C_b = -5.54"),
        ("softplus", "positive at every variance.*C_b = -2.14"),
        ("exp", "positive"),
        ("cos", "negative"),
        ("quadratic", "positive"),
        ("tanhshrink", "positive"),
        ("sign", "jumps"),
        ("hardshrink", "jumps"),
        (lambda z: 0 * z, "zero everywhere"),
        (lambda z: 0 * z + 1, "slope"),
    ],
)
def test_no_criticality_says_why(source, words):
    import re

    point = criticality(source)
    assert point.kind == "none"
    assert point.weight_variance is None
    assert point.fixed_point is None
    assert re.search(words, point.reason)


def test_bends_only_where_zero_are_critical_at_any_variance():
    point = criticality("softshrink")
    assert point.kind == "half-stable"
    assert "every variance" in point.reason


def test_decay_at_zero_fixed_points():
    alpha = 1.6732632423543772
    want = {"tanh": (0.5, 1), "sin": (1.0, 1), "erf": (0.5, 1), "atan": (0.5, 1), "elu": (2 * math.pi, 2)}
    want |= {"softsign": (math.pi / 8, 2), "selu": (2 * math.pi * ((1 + alpha**2) / (2 * alpha**2)) ** 2, 2)}
    for name, (coefficient, power) in want.items():
        got = critical_decay(name)
        assert (got.coefficient, got.exponent) == (pytest.approx(coefficient, rel=1e-9), power)
    assert critical_decay("hardtanh").exponent == 0
    with pytest.raises(ValueError, match="zero fixed point"):
        critical_decay("gelu")


@pytest.mark.parametrize(("name", "at_1000"), [("tanh", 0.5017), ("sin", 0.9976), ("erf", 0.5008)])
def test_decay_is_what_the_recursion_does(name, at_1000):
    mlp = Mlp(999, name, criticality(name).weight_variance)
    assert 1000 * variance_trajectory(mlp, 1.0)[-1] == pytest.approx(at_1000, abs=6e-5)


def test_fixed_points_of_tanh():
    found = fixed_points("tanh", weight_variance=1.5, bias_variance=0.05)
    assert [point.variance for point in found] == pytest.approx([0.41803720], abs=1e-8)
    assert (found[0].chi_parallel, found[0].chi_perpendicular) == pytest.approx((0.551983, 0.938636), abs=1e-6)
    found = fixed_points("tanh", weight_variance=2.5)
    assert [point.variance for point in found] == pytest.approx([0.0, 0.97357411], abs=1e-8)
    assert [point.stable for point in found] == [False, True]
    assert [point.stable for point in fixed_points("tanh", weight_variance=1.0)] == [True]
    assert [point.stable for point in fixed_points("gelu", weight_variance=4.0)] == [False]


@pytest.mark.parametrize(
    ("name", "neighbor", "parallel", "perpendicular"),
    [("gelu", 3.0349814355, 0.99990560, 0.99397847), ("silu", 14.5931049881, 0.99999924, 1.00046174)],
)
def test_the_neighbor_of_a_half_stable_point_is_not_taken_for_it(name, neighbor, parallel, perpendicular):
    point = criticality(name)
    found = fixed_points(name, weight_variance=point.weight_variance, bias_variance=point.bias_variance)
    other = next(p for p in found if p.stable)
    half = next(p for p in found if not p.stable)
    assert half.variance == pytest.approx(point.fixed_point, rel=1e-8)
    assert other.variance == pytest.approx(neighbor, abs=1e-7)
    assert (other.chi_parallel, other.chi_perpendicular) == pytest.approx((parallel, perpendicular), abs=1e-8)


@pytest.mark.parametrize(
    ("weight", "bias", "name", "fixed", "correlation", "depth"),
    [
        (0.9, 0.0, "vanishing", 0.0, None, 9.4912),
        (1.0, 0.05, "ordered", 0.19359252, 1.0, 3.62698),
        (1.5, 0.05, "ordered", 0.41803720, 1.0, 15.79099),
        (2.5, 0.05, "chaotic", 1.06395838, 0.44680423, 11.79560),
        (2.5, 0.0, "chaotic", 0.97357411, 0.0, 14.19794),
        (1.5, 0.0, "chaotic", 0.28689423, 0.0, 52.363),
        (1.0, 0.0, "critical", 0.0, None, math.inf),
    ],
)
def test_phases_of_tanh(weight, bias, name, fixed, correlation, depth):
    got = phase("tanh", weight_variance=weight, bias_variance=bias)
    assert got.name == name
    assert got.fixed_point == pytest.approx(fixed, abs=1e-8)
    assert got.limiting_correlation == (None if correlation is None else pytest.approx(correlation, abs=1e-7))
    assert got.correlation_depth == pytest.approx(depth, rel=1e-5)


def test_other_phases():
    assert phase("relu", weight_variance=2.0).name == "critical"
    assert phase("relu", weight_variance=1.0).name == "vanishing"
    assert phase("relu", weight_variance=3.0).name == "exploding"
    assert phase("relu", weight_variance=2.0, bias_variance=0.1).name == "exploding"
    assert phase("relu", weight_variance=1.5, bias_variance=0.1).fixed_point == pytest.approx(0.4)
    assert phase("gelu", weight_variance=4.0).name == "exploding"
    selu = phase("selu", weight_variance=1.0)
    assert selu.name == "chaotic"
    assert (selu.chi_parallel, selu.chi_perpendicular) == pytest.approx((0.7826, 1.0716), abs=1e-4)
    assert phase("cos", weight_variance=3.0).name == "chaotic"
    assert phase("relu6", weight_variance=2.0).fixed_point == 0.0
    point = criticality("gelu")
    at = {"weight_variance": point.weight_variance, "bias_variance": point.bias_variance}
    assert phase("gelu", **at, variance=point.fixed_point).name == "critical"
    assert phase("gelu", **at, variance=1.0).fixed_point == pytest.approx(3.0349814, abs=1e-6)
    for off in (1 - 1e-7, 1 + 1e-7):  # so near the touching point that no step leads away
        assert phase("gelu", **at, variance=3.5615528 * off).fixed_point == pytest.approx(3.5615528, abs=1e-6)


@pytest.mark.parametrize("name", ["sigmoid", "softplus", "exp", "quadratic", "sign", "mish", "cos", "sin", "softsign"])
@pytest.mark.parametrize(("weight", "bias"), [(0.0, 0.0), (0.5, 0.0), (1.0, 0.3), (5.0, 0.0)])
def test_every_activation_has_a_phase_everywhere(name, weight, bias):
    got = phase(name, weight_variance=weight, bias_variance=bias)
    assert got.variance_depth >= 0
    assert got.correlation_depth >= 0


def test_the_fixed_point_reached_is_where_iteration_goes():
    for weight, bias in [(1.5, 0.05), (2.5, 0.0), (3.0, 0.4)]:
        last = variance_trajectory(Mlp(400, "tanh", weight, bias), 1.0)[-1]
        assert phase("tanh", weight_variance=weight, bias_variance=bias).fixed_point == pytest.approx(last, rel=1e-9)


def test_jacobian_of_the_covariance_map_by_differences():
    K, weight, bias, step = 0.41803720, 1.5, 0.05, 1e-5
    want = np.array(covariance_jacobian("tanh", K, weight_variance=weight))
    base = np.array([K, K, 0.999 * K])
    for column in range(2):
        shift = np.zeros(3)
        shift[column] = step
        ends = [
            next_covariance("tanh", tuple(base + sign * shift), weight_variance=weight, bias_variance=bias)
            for sign in (1, -1)
        ]
        slope = (np.array(ends[0]) - np.array(ends[1])) / (2 * step)
        assert slope == pytest.approx(want[:, column], abs=3e-4)
    down = next_covariance("tanh", (K, K, K * (1 - 1e-5)), weight_variance=weight, bias_variance=bias)
    assert (down[0] - down[2]) / (K * 1e-5) == pytest.approx(want[2, 2], abs=1e-5)


def test_correlation_of_relu_at_criticality():
    mlp = Mlp(1000, "relu", 2.0)
    last = covariance_trajectory(mlp, (1.0, 1.0, 0.0))[-1]
    assert (1 - last[2] / last[0]) * 1000**2 == pytest.approx(43.13, abs=0.01)


def test_correlation_of_tanh_freezes():
    trajectory = covariance_trajectory(Mlp(99, "tanh", 1.0), (1.0, 1.0, 0.5))
    assert [trajectory[i][2] / trajectory[i][0] for i in (1, 9, 99)] == pytest.approx(
        [0.4726, 0.4469, 0.4411], abs=6e-5
    )


def test_limiting_correlation_is_a_fixed_point():
    K = phase("erf", weight_variance=3.0, bias_variance=0.1).fixed_point
    c = limiting_correlation("erf", K, weight_variance=3.0, bias_variance=0.1)
    again = next_covariance("erf", (K, K, c * K), weight_variance=3.0, bias_variance=0.1)
    assert again[2] / again[0] == pytest.approx(c, abs=1e-10)
    assert 0 < c < 1


def test_explosion_stays_infinite():
    assert variance_trajectory(Mlp(600, F.relu, 4.0), 1.0)[-1] == math.inf


def test_bad_arguments():
    with pytest.raises(ValueError, match="length"):
        first_covariance(Mlp(1, "relu", 2.0), [1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="positive"):
        phase("tanh", weight_variance=1.0, variance=0.0)
