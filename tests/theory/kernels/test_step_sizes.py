import numpy as np
import pytest
import torch

from theodolite.construct.propagation import network
from theodolite.theory import Mlp
from theodolite.theory.kernels import (
    depth_exponents,
    kernel_learning,
    learning_rates,
    mlp_kernels,
    tangent_pair,
    tangent_shares,
)
from theodolite.theory.kernels._top_directions import fans_of, imagined_tops
from theodolite.theory.propagation import first_covariance

FIRST, SECOND = (1.0, 2.0, -1.0, 0.5), (0.5, -1.0, 1.5, 1.0)


@pytest.mark.parametrize(("name", "weight", "bias"), [("relu", 2.0, 0.0), ("tanh", 1.5, 0.05), ("gelu", 2.0, 0.17)])
def test_shares_add_up_to_the_kernel_that_another_recursion_gives(name, weight, bias):
    spec = Mlp(3, name, weight, bias)
    kernel = mlp_kernels(spec, torch.tensor([FIRST, SECOND], dtype=torch.float64), weight_rate=2.0, bias_rate=0.5).ntk
    pair = tangent_pair(spec, first_covariance(spec, FIRST, SECOND), weight_rate=2.0, bias_rate=0.5)
    assert pair == pytest.approx((kernel[0, 0].item(), kernel[1, 1].item(), kernel[0, 1].item()), rel=1e-9)


def test_known_values():
    spec = Mlp(3, "tanh", 1.0)
    pair = tangent_pair(spec, first_covariance(spec, FIRST, SECOND), weight_rate=1.0, bias_rate=1.0)
    assert pair == pytest.approx((3.1271384890, 3.1341532502, 1.8945441903), abs=1e-9)


def test_depth_exponents_depend_on_the_class():
    assert depth_exponents(Mlp(1, "relu", 2.0), 1.0) == pytest.approx((1.0, 1.0))
    weights, biases = depth_exponents(Mlp(1, "tanh", 1.0), 1.0)
    assert abs(weights) < 0.1
    assert biases == pytest.approx(1.0, abs=0.05)


def test_rates_fall_with_width_and_layers_share_alike():
    narrow, wide = (learning_rates(Mlp(3, "relu", 2.0), inputs=64, width=width) for width in (256, 1024))
    assert wide.largest / narrow.largest == pytest.approx(4.0, rel=0.1)
    assert 3.0 < narrow.single / wide.single < 4.0  # a narrower network strays further from its mean
    assert wide.layers[0].weight_lr == pytest.approx(narrow.layers[0].weight_lr)
    assert narrow.layers[1].weight_lr / wide.layers[1].weight_lr == pytest.approx(4.0)
    assert sum(layer.share for layer in wide.layers) == pytest.approx(1.0)


def test_layer_wise_rates_have_a_largest_eigenvalue_of_one():
    spec = Mlp(2, "tanh", 1.5, 0.1)
    rates = learning_rates(spec, inputs=16, width=64, cosine=0.3, samples=8)
    start, across = 1.6, 0.1 + 1.5 * 0.3
    shares = tangent_shares(spec, (start, start, across))
    total = 0.0
    for layer, share in zip(rates.layers, shares, strict=True):
        for rate, part in ((layer.weight_lr * layer.fan_in, share.weights), (layer.bias_lr, share.biases)):
            total += rate * (part[2] + (part[0] - part[2]) / 8)
    assert total == pytest.approx(1.0)


def _centered():
    X = torch.randn(200, 10, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return X - X.mean(0)


def _losses(spec, X, lr, steps=60):
    torch.manual_seed(1)
    model = network(spec, X.shape[1], 1, width=128).double()
    y = X[:, :1].sign()
    found = []
    for _ in range(steps):
        loss = 0.5 * (model(X) - y).square().mean()
        found.append(loss.item())
        if not loss < 1e6:
            break
        slopes = torch.autograd.grad(loss, tuple(model.parameters()))
        for parameter, slope in zip(model.parameters(), slopes, strict=True):
            parameter.data -= lr * slope
    return found


@pytest.mark.parametrize(("name", "weight"), [("tanh", 1.0), ("erf", 0.785), ("identity", 1.0), ("relu", 2.0)])
def test_training_is_stable_below_the_rate_for_centered_data_and_not_far_above(name, weight):
    """The constant direction alone would advise 3 to 19 times too much for the odd ones."""
    spec, X = Mlp(3, name, weight), _centered()
    advised = learning_rates(spec, inputs=X, width=128).single
    below, above = _losses(spec, X, 0.9 * advised), _losses(spec, X, 3.0 * advised)
    assert max(below) == below[0] > below[-1]
    assert max(above) > 1.5 * above[0]  # ReLU comes down again, flatter: a catapult


def test_layer_wise_rates_are_stable_on_centered_data():
    spec, X = Mlp(3, "tanh", 1.0), _centered()
    torch.manual_seed(1)
    model = network(spec, 10, 1, width=128).double()
    rates = learning_rates(spec, inputs=X, width=128)
    linear = [module for module in model.modules() if isinstance(module, torch.nn.Linear)]
    groups = [(m.weight, r.weight_lr) for m, r in zip(linear, rates.layers, strict=True)]
    groups += [(m.bias, r.bias_lr) for m, r in zip(linear, rates.layers, strict=True) if m.bias is not None]
    losses = []
    for _ in range(60):
        loss = 0.5 * (model(X) - X[:, :1].sign()).square().mean()
        losses.append(loss.item())
        for (parameter, lr), slope in zip(groups, torch.autograd.grad(loss, [p for p, _ in groups]), strict=True):
            parameter.data -= lr * slope
    assert max(losses) == losses[0] > losses[-1]


def test_the_rate_on_centered_data_is_at_most_the_true_limit_and_at_least_half():
    advised = learning_rates(Mlp(3, "tanh", 1.0), inputs=_centered(), width=128).single
    assert 0.12 <= advised <= 0.24
    imagined = learning_rates(Mlp(3, "tanh", 1.0), inputs=10, width=128, cosine=0.0, samples=200).single
    assert imagined == pytest.approx(advised, rel=0.25)


def test_the_top_of_the_kernel_on_data_is_that_of_its_matrix():
    spec, X = Mlp(2, "tanh", 1.5, 0.1), _centered()[:50]
    kernel = mlp_kernels(Mlp(2, "tanh", 1.5, 0.1), X, weight_rate=1.0, bias_rate=1.0).ntk
    found = learning_rates(spec, inputs=X, width=10)  # all fan-ins are 10: weights move 10 times as fast as biases
    tenfold = mlp_kernels(spec, X, weight_rate=10.0, bias_rate=1.0).ntk
    assert found.largest == pytest.approx(float(torch.linalg.eigvalsh(tenfold)[-1]) / 50, rel=1e-6)
    assert found.largest > float(torch.linalg.eigvalsh(kernel)[-1]) / 50


@pytest.mark.parametrize("cosine", [-1.0, -0.5, -0.01, 0.0, 1.0])
@pytest.mark.parametrize("name", ["tanh", "identity", "relu"])
def test_no_rate_is_negative_at_any_cosine(name, cosine):
    for samples in (1, 2, 100):
        rates = learning_rates(Mlp(3, name, 1.0), inputs=10, width=128, cosine=cosine, samples=samples)
        assert 0 < rates.single < float("inf")
        assert all(layer.weight_lr > 0 and layer.bias_lr > 0 and layer.share >= 0 for layer in rates.layers)


def test_the_learning_curve_of_a_kernel_is_that_of_descent():
    generator = np.random.default_rng(0)
    A = generator.standard_normal((6, 9))
    K, y = A @ A.T, generator.standard_normal((6, 2))
    found = kernel_learning(K, y, times=(0.0, 3.0))
    z, step = np.zeros_like(y), 1e-4
    for _ in range(30_000):
        z = z - step * K / np.linalg.norm(K, 2) @ (z - y)
    assert found.losses[0] == pytest.approx(1.0)
    assert found.losses[1] == pytest.approx(((z - y) ** 2).sum() / (y**2).sum(), rel=1e-3)
    assert found.condition == pytest.approx(np.linalg.cond(K), rel=1e-6)
    assert found.limit == pytest.approx(2 * 6 / np.linalg.norm(K, 2))
    assert kernel_learning(np.ones((2, 2)), np.ones(2)).condition == float("inf")


def test_refusals():
    with pytest.raises(ValueError, match="weight variance"):
        tangent_shares(Mlp(1, "relu", 0.0), (1.0, 1.0, 1.0))


@pytest.mark.parametrize(("name", "weight", "bias"), [("relu", 2.0, 0.0), ("tanh", 1.5, 0.2)])
def test_the_largest_eigenvalue_is_that_of_the_kernel_matrix_of_the_inputs(name, weight, bias):
    """Inputs as many as the width, so that every fan-in is n and the kernel is n (by weights) + 1 (by biases)."""
    n, m = 12, 5
    x = torch.randn(m, n, generator=torch.Generator().manual_seed(2), dtype=torch.float64) + 0.5
    spec = Mlp(3, name, weight, bias)
    by_weights = mlp_kernels(spec, x, weight_rate=1.0, bias_rate=0.0).ntk
    by_biases = mlp_kernels(spec, x, weight_rate=0.0, bias_rate=1.0).ntk
    top = float(torch.linalg.eigvalsh(n * by_weights + by_biases)[-1]) / m
    found = learning_rates(spec, inputs=x, width=n)
    assert found.largest == pytest.approx(top, rel=1e-8)
    assert found.single < 2 / top  # a network of finite width strays from its mean


def test_layers_are_numbered_from_one_and_know_their_fan_in_and_share():
    """Of one sample: every eigenvalue is the kernel's own entry."""
    spec, n, width = Mlp(3, "tanh", 1.5, 0.2), 7, 50
    found = learning_rates(spec, inputs=n, width=width, cosine=0.9)
    assert [layer.layer for layer in found.layers] == [1, 2, 3, 4]
    assert [layer.fan_in for layer in found.layers] == [n, width, width, width]
    shares = tangent_shares(spec, (1.7, 1.7, 1.7))
    assert found.largest == pytest.approx(
        sum(layer.fan_in * s.weights[0] + s.biases[0] for layer, s in zip(found.layers, shares, strict=True))
    )
    for layer, share in zip(found.layers, shares, strict=True):
        weights, biases = layer.fan_in * share.weights[0], share.biases[0]
        assert layer.weight_lr * weights == pytest.approx(1 / 8)  # half for weights, a quarter a layer
        assert layer.bias_lr * biases == pytest.approx(1 / 8)
        assert layer.share == pytest.approx((weights + biases) / found.largest)


def test_directions_that_share_the_top_are_those_of_a_drawn_matrix():
    """Centerd inputs and an odd activation: the linear functions are on top, whose eigenvalues are the covariance's."""
    spec, inputs, samples = Mlp(1, "tanh", 1.0), 40, 400
    said = imagined_tops(spec, (1.0, 0.0), fans=fans_of(spec, inputs, 64), samples=samples).directions
    x = np.random.default_rng(0).standard_normal((200, samples, inputs))
    values = np.linalg.eigvalsh(x.transpose(0, 2, 1) @ x)
    drawn = ((values**2).sum(1) / values[:, -1] ** 2).mean()
    assert said == pytest.approx(drawn, rel=0.1)  # the edge of a small matrix lies below that of a large one


def test_beyond_the_largest_step_of_a_kernel_descent_on_its_features_grows():
    rng = np.random.default_rng(1)
    phi, y = rng.normal(size=(6, 9)), rng.normal(size=(6, 2))
    limit = kernel_learning(phi @ phi.T, y, times=(0.8,)).limit

    def grown(lr):
        w = np.random.default_rng(2).normal(size=9)
        for step in range(460):
            if step == 60:
                start = np.linalg.norm(w)
            w = w - lr / 6 * phi.T @ (phi @ w)
        return np.linalg.norm(w) > start

    assert grown(1.001 * limit) and not grown(0.999 * limit)


def test_opposite_inputs_share_no_relu_feature():
    # behind one ReLU layer the features of x and -x are orthogonal, of mean square 1/2 each: the top of their Gram over 2 is 1/4
    rates = learning_rates(Mlp(1, "relu", 2.0), inputs=torch.tensor([[1.0, 0.0], [-1.0, 0.0]]), width=8)
    assert rates.layers[-1].weight_lr == pytest.approx(0.5 / 2 / (8 * 0.25))
