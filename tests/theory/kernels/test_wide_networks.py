import math

import mpmath
import numpy as np
import pytest
import torch
from torch import nn

from theodolite.core.state import exact_products
from theodolite.theory import Activation, Mlp, activation_of
from theodolite.theory.kernels import mlp_kernels
from theodolite.theory.kernels._deep_chains import bow_of
from theodolite.theory.kernels._duals.maps import Pairs, known_dual
from theodolite.theory.kernels._map_sequences import (
    Dense,
    Nonlinear,
    Normalized,
    Sum,
    _added,
    dense_layers,
    dual_of,
    program_of,
)
from theodolite.theory.kernels._tiled_pairs import plan_of
from theodolite.theory.propagation import covariance_trajectory, first_covariance

KNOWN_X = torch.tensor([[1.0, 2.0, -1.0, 0.5], [0.5, -1.0, 1.5, 1.0]], dtype=torch.float64)
CLOSED = {
    "identity": torch.clone,
    "relu": torch.relu,
    "leaky_relu": nn.functional.leaky_relu,
    "abs": torch.abs,
    "erf": torch.erf,
    "gelu": nn.functional.gelu,
    "sin": torch.sin,
    "cos": torch.cos,
    "exp": torch.exp,
    "square": torch.square,
    "cube": lambda z: z**3,
    "half cube": lambda z: 0.5 * z**3,
    "fourth": lambda z: z**4,
    "bell": lambda z: torch.exp(-z * z),
}


def points(n, d=5, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, d, generator=generator, dtype=torch.float64)
    return (x * torch.linspace(0.5, 1.5, n, dtype=torch.float64)[:, None]).to(dtype)


def brute(layers, x, y):
    """The recursion pair by pair with the expectations of `Activation`."""
    sizes = (x @ x, y @ y, x @ y)
    k = [float(s) / len(x) for s in sizes]
    t = [0.0, 0.0, 0.0]
    for layer in layers:
        if isinstance(layer, Dense):
            rate, bias = layer.rates
            t = [bias + rate * a + layer.weight_variance * b for a, b in zip(k, t, strict=True)]
            k = [layer.bias_variance + layer.weight_variance * a for a in k]
        else:
            s = layer.activation
            slopes = s.slope_moment(k[0]), s.slope_moment(k[1]), s.slope_covariance(*k)
            t = [a * b for a, b in zip(slopes, t, strict=True)]
            k = [s.moment(k[0]), s.moment(k[1]), s.covariance(*k)]
    return k[2], t[2]


def compare(layers, x, tolerance):
    kernels = mlp_kernels(layers, x)
    for i in range(len(x)):
        for j in range(len(x)):
            nngp, ntk = brute(layers, x[i], x[j])
            assert kernels.nngp[i, j].item() == pytest.approx(nngp, rel=tolerance, abs=tolerance)
            assert kernels.ntk[i, j].item() == pytest.approx(ntk, rel=tolerance, abs=tolerance)


def test_linear_layers_one_behind_the_other_are_the_recursion():
    compare([Dense(1.3, 0.2, 0.7, 0.4), Dense(0.8, 0.1, 1.1, 0.3), Dense(1.7)], points(4), 1e-12)


def test_the_angle_behind_a_sum_of_two_branches_is_that_of_summed_covariances():
    first = Pairs(*(torch.tensor([v], dtype=torch.float64) for v in (1.0, 4.0, 0.3, 1.7)))
    second = Pairs(*(torch.tensor([v], dtype=torch.float64) for v in (9.0, 0.5, 1.6, 0.4)))
    cosine = (first.covariance + second.covariance) / (10.0 * 4.5) ** 0.5
    found = _added(first, second)
    assert torch.allclose(found.less, 1 - cosine, rtol=1e-12) and torch.allclose(found.more, 1 + cosine, rtol=1e-12)


@pytest.mark.parametrize("name", CLOSED)
def test_closed_forms_agree_with_quadrature(name):
    function = CLOSED[name]
    assert known_dual(function) is not None
    activation = Activation(lambda z: function(z) + 0.0)  # has no name: where it has no closed form it is integrated
    if name in ("identity", "relu", "leaky_relu", "abs"):
        activation = Activation(function)
    dual = known_dual(function)
    for a, b, c in ((0.3, 0.3, 0.2), (0.5, 1.2, -0.7), (1.0, 1.0, 0.999), (1.2, 0.4, 0.0), (0.7, 0.7, -1.0)):
        at = Pairs(*(torch.tensor([v], dtype=torch.float64) for v in (a, b, 1 - c, 1 + c)))
        e, d = dual.pairs(at)
        k = c * math.sqrt(a * b)
        size = math.sqrt(activation.moment(a) * activation.moment(b))
        slope = math.sqrt(activation.slope_moment(a) * activation.slope_moment(b))
        assert e.item() == pytest.approx(activation.covariance(a, b, k), abs=2e-11 * size)
        assert d.item() == pytest.approx(activation.slope_covariance(a, b, k), abs=2e-11 * slope)
        q = torch.tensor([a], dtype=torch.float64)
        assert dual.moment(q).item() == pytest.approx(activation.moment(a), rel=1e-11)
        assert dual.slope_moment(q).item() == pytest.approx(activation.slope_moment(a), rel=1e-11)


@pytest.mark.parametrize("name", [*CLOSED, "tanh", "selu", "hardtanh"])
@pytest.mark.parametrize("sphere", [False, True])
def test_blocks_agree_with_pairs(name, sphere):
    """The tiles and the careful route for single pairs are two codes for one quantity."""
    x = points(20)
    x = x / x.norm(dim=1, keepdim=True) if sphere else 0.3 * x if name == "exp" else x
    function = CLOSED.get(name)
    layers = dense_layers([0.6, 0.5, 0.4], activation=activation_of(function or name), bias_variances=[0.1, 0.0, 0.2])
    plan = plan_of(layers, x)
    kernels = plan.kernels()
    i, j = torch.triu_indices(20, 20, 1)
    nngp, ntk = plan._pairs(i, j)
    assert torch.allclose(kernels.nngp[i, j], nngp, rtol=1e-11, atol=1e-12)
    assert torch.allclose(kernels.ntk[i, j], ntk, rtol=1e-10, atol=1e-11)
    assert torch.equal(kernels.ntk, kernels.ntk.T)


@pytest.mark.parametrize("name", ["relu", "erf", "gelu", "tanh", "silu", "hardtanh", "elu"])
def test_the_recursion_agrees_with_brute_force(name):
    layers = dense_layers([1.5, 0.8, 1.2], activation=name, bias_variances=[0.1, 0.0, 0.3])
    compare(layers, points(3), 1e-10)


def test_activations_may_differ_from_layer_to_layer():
    layers = dense_layers([1.5, 0.8, 1.2, 2.0], activation=["relu", "tanh", "erf"], bias_variances=0.05)
    compare(layers, points(3), 1e-10)
    with pytest.raises(ValueError, match="2 activations"):
        dense_layers([1.0, 1.0, 1.0], activation=["relu"])


def test_known_figures():
    cases = {
        ("relu", 2.0, 0.0): ((3.125, 2.25, 1.4093916137), (10.25, 8.5, 3.0747769192)),
        ("tanh", 1.0, 0.0): ((0.1812021004, 0.1707654525, -0.0739616852), (3.1271384890, 3.1341532502, 1.8945441903)),
        ("tanh", 1.5, 0.05): ((0.5084068732, 0.4967137270, -0.0291240445), (4.15636313, 4.16928398, 2.02807472)),
    }
    for (name, weight, bias), (nngp, ntk) in cases.items():
        kernels = mlp_kernels(Mlp(3, name, weight, bias), KNOWN_X, weight_rate=1.0, bias_rate=1.0)
        for found, expected in ((kernels.nngp, nngp), (kernels.ntk, ntk)):
            seen = found[0, 0].item(), found[1, 1].item(), found[0, 1].item()
            assert seen == pytest.approx(expected, abs=6e-9 if expected[0] == 4.15636313 else 6e-11)
    rates = mlp_kernels(Mlp(3, "relu", 2.0), KNOWN_X, weight_rate=2.0, bias_rate=0.5).ntk
    assert (rates[0, 0].item(), rates[1, 1].item(), rates[0, 1].item()) == pytest.approx(
        (14.5, 11, 3.0369525147), abs=6e-11
    )


def exact_relu(x, y, layers, weight, bias):
    """The ReLU kernels of one pair in 40 digits."""
    with mpmath.workdps(40):
        u, v = ([mpmath.mpf(float(e)) for e in p] for p in (x, y))
        n = len(u)
        a, b, k = (sum(p * q for p, q in zip(s, t, strict=True)) / n for s, t in ((u, u), (v, v), (u, v)))
        a, b, k = (bias + weight * q for q in (a, b, k))
        t = k
        for _ in range(layers):
            c = max(-1, min(1, k / mpmath.sqrt(a * b)))
            theta = mpmath.acos(c)
            e = mpmath.sqrt(a * b) * (mpmath.sin(theta) + (mpmath.pi - theta) * c) / (2 * mpmath.pi)
            a, b, k = bias + weight * a / 2, bias + weight * b / 2, bias + weight * e
            t = k + weight * (mpmath.pi - theta) / (2 * mpmath.pi) * t
        return float(k), float(t)


@pytest.mark.parametrize(("weight", "bias"), [(2.0, 0.0), (1.7, 0.3)])
def test_relu_is_exact_for_repeated_and_nearly_parallel_points(weight, bias):
    base = points(1, d=20)[0]
    turn = points(2, d=20, seed=1)[1]
    rows = [base, base.clone(), 3.0 * base, -base, -0.5 * base]
    rows += [base + 10.0**-power * turn for power in range(1, 17)]
    rows += [-base + 10.0**-power * turn for power in (2, 5, 8, 11)]
    x = torch.stack(rows)
    spec = Mlp(3, "relu", weight, bias)
    for kernels in (mlp_kernels(spec, x), mlp_kernels(spec, x, x.clone())):
        for j in range(len(x)):
            nngp, ntk = exact_relu(x[0], x[j], 3, weight, bias)
            assert kernels.nngp[0, j].item() == pytest.approx(nngp, rel=1e-12, abs=1e-13)
            assert kernels.ntk[0, j].item() == pytest.approx(ntk, rel=1e-12, abs=1e-13)
    single = mlp_kernels(spec, x.to(torch.float32))
    x = x.to(torch.float32).to(torch.float64)
    truth = mlp_kernels(spec, x)
    assert (single.ntk - truth.ntk).abs().max() <= 3e-6 * truth.ntk.abs().max()


def test_a_chaotic_network_pulls_nearly_parallel_inputs_apart():
    # 1 - c begins at 4.5e-10 and grows by chi in each layer, by another recursion that keeps its digits
    spec, angle = Mlp(16, "tanh", 9.0, 0.05), 3e-5
    x = torch.tensor([[1.0, 0.0], [math.cos(angle), math.sin(angle)]], dtype=torch.float64)
    found = mlp_kernels(spec, x).nngp
    first, _, both = covariance_trajectory(spec, first_covariance(spec, x[0], x[1]))[-1]
    assert 1 - both / first > 5e-6
    assert float(1 - found[0, 1] / found[0, 0]) == pytest.approx(1 - both / first, rel=1e-4)


def test_a_deep_network_that_draws_points_together_stays_exact():
    x = points(2, d=4)
    kernels = mlp_kernels(Mlp(60, "relu", 1.0, 0.1), x)  # the ordered phase: 1 - c shrinks by 2 in every layer
    nngp, ntk = exact_relu(x[0], x[1], 60, 1.0, mpmath.mpf("0.1"))
    assert kernels.nngp[0, 1].item() == pytest.approx(nngp, rel=1e-12)
    assert kernels.ntk[0, 1].item() == pytest.approx(ntk, rel=1e-12)


@pytest.mark.parametrize("name", ["relu", "erf", "gelu", "tanh", "hardtanh"])
def test_tiles_make_no_difference(name, monkeypatch):
    x, y = points(31), points(17, seed=5)
    spec = Mlp(2, name, 1.4, 0.1)
    whole, cross = mlp_kernels(spec, x), mlp_kernels(spec, x, y)
    monkeypatch.setattr("theodolite.theory.kernels._tiled_pairs.TILE", 7)
    monkeypatch.setattr("theodolite.theory.kernels._tiled_pairs.STRIP", 2)
    parts, cross_parts = mlp_kernels(spec, x), mlp_kernels(spec, x, y)
    both = mlp_kernels(spec, torch.cat([x, y]))
    for found, expected in ((parts, whole), (cross_parts, cross)):
        assert torch.allclose(found.nngp, expected.nngp, rtol=1e-12, atol=1e-13)
        assert torch.allclose(found.ntk, expected.ntk, rtol=1e-12, atol=1e-13)
    assert torch.allclose(both.ntk[:31, 31:], cross.ntk, rtol=1e-10, atol=1e-11)
    other = mlp_kernels(spec, x, x.clone())
    assert torch.allclose(other.ntk, whole.ntk, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", ["relu", "erf", "gelu", "tanh"])
def test_single_precision(name):
    x = points(50, d=30)
    spec = Mlp(3, name, 1.5, 0.1)
    single, double = mlp_kernels(spec, x.float()), mlp_kernels(spec, x.float().double())
    assert single.nngp.dtype == single.ntk.dtype == torch.float32
    assert (single.nngp - double.nngp).abs().max() <= 2e-6 * double.nngp.max()
    assert (single.ntk - double.ntk).abs().max() <= 4e-6 * double.ntk.max()


def test_depth_of_relu_and_of_tanh():
    x = torch.ones(1, 4, dtype=torch.float64)
    assert mlp_kernels(Mlp(31, "relu", 2.0), x, weight_rate=1.0, bias_rate=0.5).ntk.item() == pytest.approx(32 * 1.5)
    deep = mlp_kernels(Mlp(99, "tanh", 1.0), x, weight_rate=1.0, bias_rate=0.0).ntk.item()
    assert deep == pytest.approx(0.520, abs=1e-3)  # the weights' part does not grow with depth


@pytest.mark.parametrize(
    ("step", "low", "high"),
    [
        (torch.sign, -1.0, 1.0),
        (lambda z: torch.heaviside(z, z.new_zeros(())), 0.0, 1.0),
        (lambda z: 3.5 * (z > 0).to(z.dtype) - 0.5, -0.5, 3.0),
    ],
)
def test_a_jump_makes_the_tangent_kernel_infinite(step, low, high):
    x = points(4)
    kernels = mlp_kernels(Mlp(1, Activation(step), 1.0), x)
    assert torch.isinf(kernels.ntk).all()
    cosine = (x[0] @ x[1] / (x[0].norm() * x[1].norm())).item()
    above = 0.25 + math.asin(cosine) / (2 * math.pi)  # both signals are
    value = (low**2 + high**2) * above + 2 * low * high * (0.5 - above)
    assert kernels.nngp[0, 1].item() == pytest.approx(value, rel=1e-12)
    assert kernels.nngp[0, 0].item() == pytest.approx((low**2 + high**2) / 2, rel=1e-12)


def test_hermite_gram_has_its_known_figures():
    """E σ(w·x)σ(w·y) = Σ σ_j² (x·y)^j for points of unit norm; odd functions are singular on antipodes."""
    x = points(6, d=10)
    x = x / x.norm(dim=1, keepdim=True) * math.sqrt(10)
    gram = mlp_kernels(dense_layers([1.0, 1.0], activation="tanh"), x).nngp
    coefficients = {1: 0.60570551, 3: -0.14843719, 5: 0.06254752}
    cosines = x @ x.T / 10
    series = sum(value**2 * cosines**j for j, value in coefficients.items())
    assert (gram - series)[~torch.eye(6, dtype=torch.bool)].abs().max() < 2e-3
    doubled = mlp_kernels(dense_layers([1.0, 1.0], activation="tanh"), torch.cat([x[:3], -x[:3]])).nngp
    assert torch.linalg.eigvalsh(doubled)[:3].abs().max() < 1e-12


def test_residual_sums_and_normalization():
    x = points(5)
    dense, relu = Dense(2.0, 0.1), Nonlinear(activation_of("relu"))
    plain = mlp_kernels((dense, relu, dense), x)
    first = mlp_kernels((dense,), x)
    both = mlp_kernels((dense, Sum((relu, dense))), x)
    assert torch.allclose(both.nngp, plain.nngp + first.nngp)
    assert torch.allclose(both.ntk, plain.ntk + first.ntk)
    normal = mlp_kernels((dense, Normalized()), x)
    sizes = first.nngp.diagonal().sqrt()
    assert torch.allclose(normal.nngp, first.nngp / sizes / sizes[:, None])
    assert torch.allclose(normal.ntk, first.ntk / sizes / sizes[:, None])
    wide = mlp_kernels((dense, Normalized(0.5)), x)
    sizes = (first.nngp.diagonal() + 0.5).sqrt()
    assert torch.allclose(wide.nngp, first.nngp / sizes / sizes[:, None])
    layers = (dense, Normalized(1e-5), relu, dense, Sum((Normalized(), relu, dense), (Dense(0.5),)), relu, dense)
    plan = plan_of(program_of(layers), x)
    i, j = torch.triu_indices(5, 5, 1)
    nngp, ntk = plan._pairs(i, j)
    kernels = plan.kernels()
    assert torch.allclose(kernels.nngp[i, j], nngp, rtol=1e-12)
    assert torch.allclose(kernels.ntk[i, j], ntk, rtol=1e-12)


def test_degenerate_points_and_networks():
    x = torch.zeros(3, 4, dtype=torch.float64)
    x[2] = 1.0
    for name in ("relu", "gelu", "tanh", "erf"):
        kernels = mlp_kernels(Mlp(2, name, 2.0), x)
        assert torch.isfinite(kernels.ntk).all()
        assert kernels.nngp[0].abs().max() <= 1e-13 * kernels.nngp.max()
    assert torch.equal(mlp_kernels(Mlp(0, "relu", 2.0), x).ntk, mlp_kernels(Mlp(0, "relu", 2.0), x).nngp)
    assert mlp_kernels(Mlp(1, "relu", 2.0), x[:0], x).nngp.shape == (0, 3)
    assert torch.allclose(mlp_kernels(Mlp(2, "relu", 0.0, 0.5), x).nngp, torch.tensor(0.5, dtype=torch.float64))


def test_wrong_input_says_what_to_do():
    spec = Mlp(1, "relu", 2.0)
    with pytest.raises(ValueError, match="flatten"):
        mlp_kernels(spec, torch.ones(2, 3, 4))
    with pytest.raises(ValueError, match="one dimension"):
        mlp_kernels(spec, torch.ones(2, 3), torch.ones(2, 4))
    with pytest.raises(ValueError, match="finite"):
        mlp_kernels(spec, torch.tensor([[1.0, math.nan]]))
    with pytest.raises(TypeError, match="Dense"):
        mlp_kernels([3], torch.ones(2, 3))
    assert mlp_kernels(spec, torch.ones(2, 3, dtype=torch.int64)).nngp.dtype == torch.float64


def test_the_precision_of_products_is_restored():
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("high")
        with exact_products():
            assert torch.get_float32_matmul_precision() == "highest"
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize(
    ("name", "tolerance"),
    [("tanh", 1e-11), ("silu", 1e-11), ("softplus", 1e-11), ("hardtanh", 1e-10), ("elu", 1e-10), ("selu", 1e-8)],
)
def test_any_activation_has_its_series(name, tolerance):
    activation = activation_of(name)
    for low, high in ((0.8, 0.8), (0.4, 1.6)):
        dual = dual_of(activation, low, high)
        for a, b in ((low, high), (high, high)):
            for c in (0.3, -0.9, 0.99999, 1.0 - 1e-12):
                at = Pairs(*(torch.tensor([v], dtype=torch.float64) for v in (a, b, 1 - c, 1 + c)))
                e, d = dual.pairs(at)
                k = c * math.sqrt(a * b)
                assert e.item() == pytest.approx(activation.covariance(a, b, k), abs=tolerance)
                assert d.item() == pytest.approx(activation.slope_covariance(a, b, k), abs=tolerance)


def test_a_series_is_as_exact_for_a_function_of_any_size():
    def kernel(factor):
        spec = Mlp(1, Activation(lambda z: factor * nn.functional.mish(z)), 1.5, 0.1)
        return (mlp_kernels(spec, KNOWN_X).nngp - 0.1) / factor**2

    assert torch.allclose(kernel(1e6), kernel(1.0), rtol=1e-10, atol=0.0)


def test_threads_make_no_difference():
    x = points(900)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = mlp_kernels(Mlp(2, "relu", 2.0), x)
        torch.set_num_threads(2)
        two = mlp_kernels(Mlp(2, "relu", 2.0), x)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert torch.allclose(one.ntk, two.ntk, rtol=1e-14)


def kernels_by_angle(angle, hidden_layers):
    """Of ReLU between inputs of length root 2: sines of half angles, without a difference of like numbers."""
    tangent = 2 * math.cos(angle)
    for _ in range(hidden_layers):
        bow = math.sin(angle) - angle * math.cos(angle) if angle > 0.02 else angle**3 / 3 * (1 - angle**2 / 10)
        half = math.sin(angle / 2) ** 2 - bow / (2 * math.pi)
        tangent *= 1 - angle / math.pi
        angle = 2 * math.asin(math.sqrt(half))
        tangent += 2 * math.cos(angle)
    return tangent, 4 * math.sin(angle / 2) ** 2


@pytest.mark.parametrize(("hidden_layers", "angle"), [(60, 1.2), (40, 1e-3), (600, 1e-3), (5, math.pi - 1e-3)])
def test_kernels_of_deep_relu_networks_follow_one_angle_from_layer_to_layer(hidden_layers, angle):
    x = math.sqrt(2) * torch.tensor([[1.0, 0.0], [math.cos(angle), math.sin(angle)]], dtype=torch.float64)
    found = mlp_kernels(Mlp(hidden_layers, "relu", 2.0), x)
    tangent, lacking = kernels_by_angle(angle, hidden_layers)
    assert found.ntk[0, 1].item() == pytest.approx(tangent, rel=1e-6)
    assert 2 - found.nngp[0, 1].item() == pytest.approx(lacking, rel=1e-6)


@pytest.mark.parametrize("name", ["relu_squared", "hardsigmoid", "hardtanh", "gelu", "leaky_relu", "silu", "softplus"])
def test_kernels_of_one_layer_are_two_gaussian_integrals_of_its_activation(name):
    """As sums over a grid of two Gaussians; slopes by automatic differentiation."""
    function = {"relu_squared": lambda z: torch.relu(z).square()}.get(name) or getattr(nn.functional, name)
    variance, bias = 1.7, 0.2
    x = torch.tensor([[1.0, -0.4, 0.8], [0.3, 1.1, 0.5]], dtype=torch.float64)
    start = bias + variance * (x @ x.T) / 3
    (a, k), (_, b) = start.tolist()
    axis = torch.linspace(-7.0, 7.0, 701, dtype=torch.float64)
    weight = torch.exp(-0.5 * axis**2) / torch.exp(-0.5 * axis**2).sum()
    share = k / math.sqrt(a * b)
    sides = [
        (math.sqrt(a) * axis[:, None].expand(701, 701)).clone().requires_grad_(),
        (math.sqrt(b) * (share * axis[:, None] + math.sqrt(1 - share * share) * axis)).requires_grad_(),
    ]
    values = [function(side) for side in sides]
    slopes = [torch.autograd.grad(v.sum(), side)[0] for v, side in zip(values, sides, strict=True)]
    whole = weight[:, None] * weight
    nngp = bias + variance * (whole * values[0] * values[1]).sum().item()
    ntk = nngp + variance * (whole * slopes[0] * slopes[1]).sum().item() * k
    found = mlp_kernels(Mlp(1, name, variance, bias), x)
    assert found.nngp[0, 1].item() == pytest.approx(nngp, rel=2e-4)
    assert found.ntk[0, 1].item() == pytest.approx(
        ntk, rel=3e-3
    )  # a jump of the slope is placed within half a step of 0.02


def test_nearly_parallel_inputs_of_a_step():
    step = lambda z: 3 * (z > 0).to(z.dtype) + 1  # noqa: E731
    x = torch.tensor([[1.0, 0.0], [1.0, 1e-5], [0.6, 0.8]], dtype=torch.float64)
    nngp = mlp_kernels(Mlp(1, step, 1.0), x).nngp
    assert float(nngp[0, 1]) == pytest.approx(8.5 - 9 * 1e-5 / (2 * math.pi), rel=1e-9)  # 1 or 4, apart in angle / 2 pi
    assert float(nngp[0, 2]) == pytest.approx(8.5 - 9 * math.acos(0.6) / (2 * math.pi), rel=1e-9)


@pytest.mark.parametrize("theta", [0.01, 0.15, 0.299, 0.301, 1.5, 3.1])
def test_sine_less_angle_times_cosine_keeps_its_digits(theta):
    with mpmath.workdps(40):
        exact = float(mpmath.sin(theta) - theta * mpmath.cos(theta))
    assert float(bow_of(np.array([theta]))[0]) == pytest.approx(exact, rel=1e-14, abs=0.0)
