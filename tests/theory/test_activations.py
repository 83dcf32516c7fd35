import math
from itertools import pairwise
from pathlib import Path

import mpmath
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.integrate import dblquad, quad
from torch import nn

from theodolite.theory import Activation, nonlinearities
from theodolite.theory._quadrature import Resolution, filled

# <s^2>, <s'^2> and d<s^2>/dK at K = 1, computed once by composite quadrature with panel edges at the kinks.
TABLE = {
    "identity": (1, 1, 1),
    "relu": (0.5, 0.5, 0.5),
    "tanh": (0.394294490398, 0.464402902448, 0.181797688140),
    "erf": (0.464559054398, 0.569410034734, 0.189803344911),
    "sin": (0.432332358382, 0.567667641618, 0.135335283237),
    "arctan": (0.449700916435, 0.5, 0.252200832559),
    "gelu": (0.425221482570, 0.455850865649, 0.486480248728),
    "silu": (0.355775519817, 0.379482351633, 0.417180259132),
    "sigmoid": (0.293379035858, 0.044836241350, 0.031198241980),
    "softplus": (0.921245908859, 0.293379035858, 0.453301972480),
    "elu": (0.644945417493, 0.668102001223, 0.574625710581),
    "selu": (1, 1.071574992456, 0.782647883197),
    "hardtanh": (0.516058550962, 0.682689492137, 0.198748043099),
}
MOMENTS = ("moment", "slope_moment", "curvature_moment", "fourth_moment", "moment_curvature")
FILES = sorted(path.stem for path in Path(nonlinearities.__file__).parent.glob("[!_]*.py"))
EXACT = (
    *("identity", "relu", "leaky_relu", "abs", "erf", "sin", "cos", "exp", "quadratic", "gelu"),
    *(name for name in FILES if Activation(name).exact is not None),
)


def by_quadrature(source):
    """The same activation with its closed form taken away."""
    activation = Activation(source)
    object.__setattr__(activation, "exact", None)
    return activation


def gaussian_mean(function, K, points=()):
    """The expectation by 30-digit integration."""
    with mpmath.workdps(30):
        deviation = mpmath.sqrt(K)
        ends = [-14 * deviation, *(p for p in sorted(points) if abs(p) < 14 * deviation), 14 * deviation]
        edges = [a + (b - a) * mpmath.mpf(i) / 8 for a, b in pairwise(ends) for i in range(8)]
        density = lambda z: mpmath.exp(-z * z / (2 * K)) / mpmath.sqrt(2 * mpmath.pi * K)  # noqa: E731
        return float(mpmath.quad(lambda z: function(z) * density(z), [*edges, ends[-1]]))


@pytest.mark.parametrize("name", TABLE)
def test_moments_at_unit_variance(name):
    activation = Activation(name)
    got = activation.moment(1.0), activation.slope_moment(1.0), activation.curvature_moment(1.0)
    assert got == pytest.approx(TABLE[name], abs=1e-11)


@pytest.mark.parametrize("name", EXACT)
def test_closed_forms_equal_quadrature(name):
    exact, numeric = Activation(name), by_quadrature(name)
    for K in np.geomspace(1e-6, 1e3, 19).tolist():
        for what in MOMENTS:
            want, got = getattr(exact, what)(K), getattr(numeric, what)(K)
            if name == "exp" and (K > 100 or (what == "fourth_moment" and K > 10)):
                assert want > 1e80  # beyond what panels in double precision hold
                continue
            # rounding alone makes an error of the order 1e-16 / K^1.5 in the second derivative in K
            size = max(abs(want), 1e-2 * K**-1.5 if what == "moment_curvature" else 1e-3)
            assert abs(want - got) <= 1e-12 * size, (K, what)


@pytest.mark.parametrize("name", EXACT)
def test_closed_covariances_equal_quadrature(name):
    exact, numeric = Activation(name), by_quadrature(name)
    for K11, K22 in [(1.0, 1.0), (1e-4, 1e-4), (0.01, 3.0), (50.0, 0.3)]:
        for c in (0.0, 0.3, -0.7, 0.999999, 1 - 1e-10, 1.0, -1.0):
            K12 = c * math.sqrt(K11) * math.sqrt(K22)
            size = math.sqrt(exact.moment(K11) * exact.moment(K22))
            steep = math.sqrt(exact.slope_moment(K11) * exact.slope_moment(K22))
            assert abs(exact.covariance(K11, K22, K12) - numeric.covariance(K11, K22, K12)) <= 1e-12 * size
            slopes = exact.slope_covariance(K11, K22, K12), numeric.slope_covariance(K11, K22, K12)
            assert abs(slopes[0] - slopes[1]) <= 1e-12 * steep


KINKED = {
    "hardtanh": (F.hardtanh, lambda z: max(-1, min(1, z)), (-1, 0, 1)),
    "kink at 0.3": (lambda z: torch.where(z > 0.3, 2 * z - 0.3, z), lambda z: 2 * z - 0.3 if z > 0.3 else z, (0, 0.3)),
    "kinks at ±1/7": (lambda z: (z.abs() - 1 / 7).abs(), lambda z: abs(abs(z) - 1 / 7), (-1 / 7, 0, 1 / 7)),
    "tanh(5z)": (lambda z: torch.tanh(5 * z), lambda z: mpmath.tanh(5 * z), (0,)),
    "jump at 0.3": (lambda z: (z > 0.3).double() + z, lambda z: z + (z > 0.3), (0, 0.3)),
}


@pytest.mark.parametrize("case", KINKED)
@pytest.mark.parametrize("K", [0.01, 1.0, 37.0])
def test_kinks_and_jumps_anywhere(case, K):
    function, reference, points = KINKED[case]
    activation = Activation(function)
    second = gaussian_mean(lambda z: reference(z) ** 2, K, points)
    bend = gaussian_mean(lambda z: reference(z) ** 2 * (z * z - K), K, points) / (2 * K * K)
    assert activation.moment(K) == pytest.approx(second, rel=1e-12)
    assert activation.mean(K) == pytest.approx(gaussian_mean(reference, K, points), rel=1e-12, abs=1e-14)
    assert activation.curvature_moment(K) == pytest.approx(bend, rel=1e-11)


def test_slope_moments_of_kinked_functions():
    inside = math.erf(1 / math.sqrt(2 * 2.0))
    assert Activation("hardtanh").slope_moment(2.0) == pytest.approx(inside, rel=1e-12)
    right = 0.5 * math.erfc(0.3 / math.sqrt(2 * 0.5))
    kinked = Activation(KINKED["kink at 0.3"][0])
    assert kinked.slope_moment(0.5) == pytest.approx(4 * right + (1 - right), rel=1e-12)
    steep = quad(lambda z: 25 / math.cosh(5 * z) ** 4 * math.exp(-z * z / 2), -6, 6, points=[0], epsabs=1e-14)[0]
    assert Activation(lambda z: torch.tanh(5 * z)).slope_moment(1.0) == pytest.approx(
        steep / math.sqrt(2 * math.pi), rel=1e-10
    )


def test_covariance_of_a_kinked_function_against_a_plain_double_integral():
    activation, c = Activation("hardtanh"), 0.6

    def integrand(y, x):
        density = math.exp(-(x * x - 2 * c * x * y + y * y) / (2 * (1 - c * c))) / (2 * math.pi * math.sqrt(1 - c * c))
        return max(-1, min(1, x)) * max(-1, min(1, y)) * density

    edges = (-8.0, -1.0, 1.0, 8.0)
    boxes = [(a, b, p, q) for a, b in pairwise(edges) for p, q in pairwise(edges)]
    total = sum(dblquad(integrand, a, b, p, q, epsabs=1e-11)[0] for a, b, p, q in boxes)
    assert activation.covariance(1.0, 1.0, c) == pytest.approx(total, abs=1e-9)


@pytest.mark.parametrize("name", ["tanh", "silu", "hardtanh", "elu", "softplus"])
def test_covariance_limits_and_symmetry(name):
    activation = Activation(name)
    assert activation.covariance(2.0, 2.0, 2.0) == pytest.approx(activation.moment(2.0), rel=1e-13)
    assert activation.covariance(2.0, 0.5, 0.0) == pytest.approx(activation.mean(2.0) * activation.mean(0.5), abs=1e-13)
    assert activation.covariance(2.0, 0.5, 0.4) == activation.covariance(0.5, 2.0, 0.4)
    assert activation.slope_covariance(2.0, 2.0, 2.0) == pytest.approx(activation.slope_moment(2.0), rel=1e-12)
    assert activation.covariance(2.0, 0.0, 0.0) == pytest.approx(activation.mean(2.0) * activation.mean(0.0))
    near = [activation.covariance(1.0, 1.0, 1 - gap) for gap in (1e-14, 1e-12, 1e-9)]
    assert near == pytest.approx([activation.moment(1.0)] * 3, abs=2e-9)


def test_covariance_derivative_is_the_slope_covariance():
    activation, step = Activation("silu"), 1e-4
    up, down = activation.covariance(1.3, 0.8, 0.4 + step), activation.covariance(1.3, 0.8, 0.4 - step)
    assert (up - down) / (2 * step) == pytest.approx(activation.slope_covariance(1.3, 0.8, 0.4), rel=1e-7)


def test_covariance_against_monte_carlo():
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(2, 400_000, generator=generator, dtype=torch.float64)
    u, v = z[0] * math.sqrt(2.0), (0.5 * z[0] + math.sqrt(0.75) * z[1]) * math.sqrt(3.0)
    draws = F.mish(u) * F.mish(v)
    error = float(draws.std()) / math.sqrt(draws.numel())
    assert Activation("mish").covariance(2.0, 3.0, 0.5 * math.sqrt(6.0)) == pytest.approx(
        float(draws.mean()), abs=4 * error
    )


def test_limits_at_zero_variance():
    assert Activation("selu").slope_moment(0.0) == pytest.approx(1 / 0.476771017882753, rel=1e-9)
    assert Activation("sigmoid").curvature_moment(0.0) == pytest.approx(1 / 16)
    assert Activation("sigmoid").curvature_moment(1e-9) == pytest.approx(1 / 16, rel=1e-6)
    assert Activation("softplus").moment(0.0) == pytest.approx(math.log(2) ** 2)
    assert Activation(lambda z: z.abs() + 1).curvature_moment(0.0) == math.inf
    assert Activation(lambda z: 1 + torch.minimum(z, 2 * z)).curvature_moment(0.0) == -math.inf  # both slopes rise


def test_a_jump_makes_the_slope_moment_infinite():
    for source in ("sign", lambda z: (z > 0.3).double(), lambda z: torch.round(z)):
        activation = Activation(source)
        assert math.isinf(activation.slope_moment(1.0))
        assert math.isinf(activation.slope_covariance(1.0, 1.0, 0.5))
        assert math.isfinite(activation.moment(1.0))
    assert Activation("softplus").jumps(100.0) == ()  # torch's own step of 2e-9 at its threshold is no jump


def test_orthant_probability_of_a_step():
    step = Activation(lambda z: (z > 0).double())
    assert step.covariance(1.0, 2.0, 0.5 * math.sqrt(2)) == pytest.approx(1 / 3, abs=1e-12)


def test_growth_is_followed_or_infinite():
    cosh = Activation(torch.cosh)
    assert cosh.moment(10.0) == pytest.approx(0.5 * (math.exp(20.0) + 1), rel=1e-12)
    assert math.isinf(cosh.moment(1e4))


def test_names_callables_and_modules_agree():
    same = [Activation("gelu"), Activation(F.gelu), Activation(nn.GELU()), by_quadrature(lambda z: F.gelu(z))]
    assert len({round(activation.slope_moment(2.0), 13) for activation in same}) == 1
    assert Activation("swish").name == "silu"
    assert Activation("leaky_relu", negative_slope=0.1).slope_moment(1.0) == pytest.approx(0.505)
    assert Activation(nn.LeakyReLU(0.1)).is_homogeneous
    assert Activation(nn.GELU(approximate="tanh")).moment(1.0) != pytest.approx(same[0].moment(1.0), rel=1e-7)
    assert Activation(Activation("tanh")).name == "tanh"


def test_a_module_is_left_alone():
    module = nn.PReLU()
    Activation(module)
    assert module.weight.dtype == torch.float32
    z = torch.tensor([-1.0, 1.0])
    Activation(nn.ReLU(inplace=True))(z)
    assert z.tolist() == [-1.0, 1.0]


def test_global_randomness_is_left_alone():
    before = torch.random.get_rng_state()
    with pytest.raises(ValueError, match="random"):
        Activation("dropout")
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("tahn", "did you mean tanh"),
        ("softmax", "mixes"),
        ("log", "finite"),
        ("conv1d", "fails"),
        (3, "got int"),
        (lambda z: z.sum(), "shape"),
        (lambda z: z - z.mean(), "mixes"),
        (lambda z: z.float(), "float64"),
        (nn.Dropout(0.5), "random"),
        (nn.Linear(3, 3), "fails"),
        (lambda z: torch.tanh(z.float()).double(), "float32"),
    ],
)
def test_what_is_no_activation_is_refused(source, words):
    with pytest.raises(ValueError, match=words):
        Activation(source).moment(1.0)


@pytest.mark.parametrize("variance", [-1.0, math.nan, math.inf])
def test_variances_are_checked(variance):
    with pytest.raises(ValueError, match="variance"):
        Activation("tanh").moment(variance)
    with pytest.raises(ValueError, match="K12"):
        Activation("tanh").covariance(1.0, 1.0, 1.1)


def test_panels_end_at_kinks():
    resolution = Resolution.of(lambda z: np.abs(z - 0.3))
    assert np.abs(resolution.breaks(16.0) - 0.3).min() < 1e-12
    assert len(resolution.breaks(16.0)) == 1
    assert len(resolution.edges(16.0)) < 60
    assert np.diff(filled(np.array([-10.0, 0.0, 10.0]))).max() <= 1.5


@pytest.mark.parametrize("name", ["tanh", "gelu", "silu", "sigmoid", "softplus", "elu"])
def test_the_growth_of_the_mean_square_at_zero_variance_is_its_difference_quotient(name):
    """(<s^2>_K - s(0)^2) / K at two small K, extrapolated: the error is K^2, or sqrt(K) where the curvature jumps."""
    sigma = Activation(name)
    start = float(sigma(torch.zeros(1, dtype=torch.float64))) ** 2
    one, two = ((sigma.moment(K) - start) / K for K in (1e-4, 2e-4))
    limit = sigma.curvature_moment(0.0)
    assert limit == pytest.approx(2 * one - two, abs=2e-6 if name != "elu" else 2e-2)
    assert limit == pytest.approx(sigma.curvature_moment(1e-12), rel=1e-5)


def test_slope_covariance_of_a_kink_where_a_variance_is_zero():
    bent = Activation(lambda z: torch.where(z < 0, 0.3 * z, 2 * z) + 0.1 * torch.tanh(z))  # slopes 0.4 and 2.1 at 0
    assert bent.slope_covariance(0.0, 0.0, 0.0) == pytest.approx(0.5 * (0.4**2 + 2.1**2), rel=1e-12)
    apart = quad(lambda z: math.exp(-z * z / 1.4) / math.sqrt(1.4 * math.pi) * (2 + 0.1 / math.cosh(z) ** 2), 0, 12)[0]
    apart += quad(
        lambda z: math.exp(-z * z / 1.4) / math.sqrt(1.4 * math.pi) * (0.3 + 0.1 / math.cosh(z) ** 2), -12, 0
    )[0]
    assert bent.slope_covariance(0.7, 0.0, 0.0) == pytest.approx(apart * 0.5 * (0.4 + 2.1), rel=1e-10)


def test_derivatives_of_a_function_that_works_in_place():
    value, slope = Activation(nn.ReLU(inplace=True)).derivatives(torch.tensor([-1.0, 2.0]), order=1)
    assert value.tolist() == [0.0, 2.0] and slope.tolist() == [0.0, 1.0]
