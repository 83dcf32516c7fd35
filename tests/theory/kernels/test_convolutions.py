import itertools

import pytest
import torch
import torch.nn.functional as F

from theodolite.theory import activation_of
from theodolite.theory.kernels import Average, Convolution, Flatten, ImageKernel, mlp_kernels
from theodolite.theory.kernels import convolutions as conv_kernels
from theodolite.theory.kernels._map_sequences import Dense, Nonlinear, Normalized, Sum, dense_layers

X = torch.randn(4, 2, 6, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
RELU, TANH, GELU = (Nonlinear(activation_of(name)) for name in ("relu", "tanh", "gelu"))
LAST = Dense(1.2, 0.1)


def convolution(window=3, stride=1, padding=1, dilation=1, circular=False):
    return Convolution(Dense(1.6, 0.05), (window,) * 2, (stride,) * 2, (padding,) * 2, (dilation,) * 2, circular)


PROGRAMS = {
    "flatten": (convolution(), RELU, convolution(2, 2, 0), RELU, Flatten(), LAST),
    "dilated": (convolution(2, 1, 2, 2), GELU, Flatten(), LAST, RELU, LAST),
    "whole average": (convolution(), RELU, convolution(), TANH, Average(), LAST),
    "pooling": (convolution(), RELU, Average((2, 2), (2, 1), (1, 0)), convolution(), RELU, Flatten(), LAST, RELU, LAST),
    "circular": (convolution(circular=True), RELU, convolution(3, 2, 1, circular=True), TANH, Flatten(), LAST),
    "circular average": (
        convolution(3, 1, 2, 2, circular=True),
        RELU,
        convolution(circular=True),
        RELU,
        Average(),
        LAST,
    ),
    "residual": (convolution(), Sum((RELU, convolution())), RELU, Average(), LAST),
}


def sampled(program, x, *, width, generator):
    """Outputs (width, n) of one random network: the last layer has as many outputs as there are channels."""

    def through(layers, x):
        for layer in layers:
            if isinstance(layer, Convolution):
                fan_in = x.shape[1] * layer.window[0] * layer.window[1]
                size = (width, x.shape[1], *layer.window)
                weight = (
                    torch.randn(size, generator=generator, dtype=x.dtype)
                    * (layer.dense.weight_variance / fan_in) ** 0.5
                )
                bias = torch.randn(width, generator=generator, dtype=x.dtype) * layer.dense.bias_variance**0.5
                padding = layer.padding
                if layer.circular:
                    around = [p for size in reversed(padding) for p in (size, size)]
                    x, padding = F.pad(x, around, mode="circular"), 0
                x = F.conv2d(x, weight, bias, layer.stride, padding, layer.dilation)
            elif isinstance(layer, Average):
                pooled = F.avg_pool2d(x, layer.window, layer.stride, layer.padding) if layer.window else None
                x = x.mean((2, 3)) if pooled is None else pooled
            elif isinstance(layer, Flatten):
                x = x.flatten(1)
            elif isinstance(layer, Sum):
                x = through(layer.branch, x) + through(layer.skip, x)
            elif isinstance(layer, Nonlinear):
                x = layer.activation.function(x)
            else:
                weight = torch.randn(width, x.shape[1], generator=generator, dtype=x.dtype)
                bias = torch.randn(width, generator=generator, dtype=x.dtype) * layer.bias_variance**0.5
                x = F.linear(x, weight * (layer.weight_variance / x.shape[1]) ** 0.5, bias)
        return x

    return through(program, x).T


@pytest.mark.parametrize("name", PROGRAMS)
def test_wide_random_networks_have_this_kernel(name):
    generator = torch.Generator().manual_seed(1)
    draws = torch.stack(
        [(o := sampled(PROGRAMS[name], X, width=128, generator=generator)).T @ o / 128 for _ in range(24)]
    )
    expected = ImageKernel(PROGRAMS[name], kind="nngp")(X)
    error = draws.std(0) / 24**0.5
    # 4.5 errors of the mean for ten numbers, and finite width: of order depth / channels of the size
    assert ((draws.mean(0) - expected).abs() < 4.5 * error + 4 / 128 * expected.abs().max()).all()


@pytest.mark.parametrize("kind", ["nngp", "ntk"])
def test_images_of_one_pixel_are_vectors(kind):
    layers = dense_layers([1.6, 1.6, 1.2], activation="relu", bias_variances=[0.05, 0.05, 0.1])
    plain = Convolution(Dense(1.6, 0.05), (1,), (1,), (0,), (1,))
    program = (plain, RELU, plain, RELU, Flatten(), LAST)
    x = X[:, :, 0, 0].clone()
    x[1] = x[0] * (1 + 1e-9)
    x[3] = x[2] + 1e-5 * x[0]
    found = ImageKernel(program, kind)(x[..., None])
    assert torch.allclose(found, getattr(mlp_kernels(layers, x), kind), rtol=1e-12)


def test_the_tangent_kernel_is_that_of_the_network_it_describes():
    """A wide network in the NTK parametrization, by autograd, averaged over draws."""
    program = (convolution(), RELU, Average((2, 2), (2, 2), (0, 0)), convolution(), RELU, Flatten(), LAST)
    expected = ImageKernel(program)(X[:2])
    generator = torch.Generator().manual_seed(2)
    width, found = 96, []
    for _ in range(12):
        shapes = [(width, 2, 3, 3), (width, width, 3, 3), (1, width * 6)]
        drawn = [torch.randn(s, generator=generator, dtype=X.dtype) for s in shapes]
        weights = [w.requires_grad_() for w in drawn]
        biases = [torch.randn(s[0], generator=generator, dtype=X.dtype).requires_grad_() for s in shapes]

        def output(x, weights=weights, biases=biases):
            scale = [(v / w[0].numel()) ** 0.5 for v, w in zip((1.6, 1.6, 1.2), weights, strict=True)]
            shift = [v**0.5 * b for v, b in zip((0.05, 0.05, 0.1), biases, strict=True)]
            h = F.avg_pool2d(F.conv2d(x, scale[0] * weights[0], shift[0], padding=1).relu(), 2)
            h = F.conv2d(h, scale[1] * weights[1], shift[1], padding=1).relu()
            return F.linear(h.flatten(1), scale[2] * weights[2], shift[2])

        rows = [
            torch.cat([g.flatten() for g in torch.autograd.grad(output(X[i : i + 1]), weights + biases)])
            for i in (0, 1)
        ]
        found.append(torch.stack(rows) @ torch.stack(rows).T)
    draws = torch.stack(found)
    assert ((draws.mean(0) - expected).abs() < 4 * draws.std(0) / 12**0.5 + 0.03 * expected.abs().max()).all()


@pytest.mark.parametrize("name", PROGRAMS)
def test_blocks_products_diagonal_and_two_sets_agree(name, monkeypatch):
    kernel = ImageKernel(PROGRAMS[name])
    whole = kernel(X)
    assert torch.allclose(whole, whole.T)
    monkeypatch.setitem(conv_kernels.PAIRS_AT_ONCE, "cpu", 2 * 900)
    assert torch.allclose(kernel(X), whole, rtol=1e-9)
    assert torch.allclose(kernel(X[:3], X[1:]), whole[:3, 1:], rtol=1e-9)
    assert torch.allclose(kernel.diagonal(X), whole.diagonal(), rtol=1e-9)
    vectors = torch.randn(4, 2, generator=torch.Generator().manual_seed(3), dtype=X.dtype)
    assert torch.allclose(kernel.product(X, vectors), whole @ vectors)
    assert kernel(X.float()).dtype == torch.float32


def test_images_that_are_nearly_alike_lose_no_digits():
    """The tangent kernel falls linearly with the angle: from steps of 1e-9 as from steps of 1e-5."""
    kernel = ImageKernel((convolution(), RELU, convolution(), RELU, Flatten(), LAST))
    direction = torch.randn(X[:1].shape, generator=torch.Generator().manual_seed(4), dtype=X.dtype)
    falls = []
    for step in (1e-5, 1e-7, 1e-9):
        pair = torch.cat([X[:1], X[:1] + step * direction])
        found = kernel(pair)
        falls.append(((found[0, 0] + found[1, 1]) / 2 - found[0, 1]).item() / step)
    assert falls == pytest.approx([falls[0]] * 3, rel=1e-3)


def test_a_like_image_changes_no_other_pair_and_threads_change_nothing(monkeypatch):
    """Tiles with patches that are alike are computed by distances too; all else is the same to the last bit."""
    kernel = ImageKernel((convolution(), Sum((RELU, convolution())), GELU, convolution(), RELU, Flatten(), LAST))
    others = torch.randn(8, 2, 6, 5, generator=torch.Generator().manual_seed(6), dtype=X.dtype)
    alike = torch.cat([others, others[:1] + 1e-8 * others[1:2], 0 * others[:2]])  # black images: all patches alike
    monkeypatch.setitem(conv_kernels.PAIRS_AT_ONCE, "cpu", 4 * 30)
    plain, found = kernel.both(others), kernel.both(alike)
    assert torch.allclose(found.ntk[:8, :8], plain.ntk, rtol=1e-14)
    assert found.ntk[0, 8] == pytest.approx(found.ntk[0, 0].item(), rel=1e-6)
    assert found.ntk[9, 10].item() == pytest.approx(found.ntk[9, 9].item(), rel=1e-14)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        both = kernel.both(alike)
        assert torch.get_num_threads() == 2
        torch.set_num_threads(1)
        assert torch.equal(both.ntk, kernel.both(alike).ntk)
    finally:
        torch.set_num_threads(before)


def test_no_images_give_no_numbers():
    kernel = ImageKernel(PROGRAMS["flatten"])
    assert kernel(X[:0]).shape == (0, 0)
    assert kernel(X[:0], X).shape == (0, 4)
    assert kernel.diagonal(X[:0]).shape == (0,)


@pytest.mark.parametrize(
    ("program", "x", "words"),
    [
        ((convolution(), RELU), X, "output is an image"),
        ((convolution(), LAST), X, "flattened or averaged"),
        ((convolution(9), RELU, Flatten(), LAST), X, "at least the window"),
        ((convolution(), Sum((RELU, convolution(2))), Average(), LAST), X, "one size"),
        ((convolution(), Average(), LAST), X.flatten(1), "expected images"),
        ((convolution(), Average(), LAST), X / 0, "finite"),
    ],
)
def test_what_cannot_be_is_said(program, x, words):
    with pytest.raises(ValueError, match=words):
        ImageKernel(program)(x)


def test_all_pixels_pairs_by_brute_force():
    """The recursion of novak2019 written out for every pair of pixels, against the blocks."""
    x = X[:2, :, :3, :3]
    program = (convolution(), RELU, Average(), LAST)
    found = ImageKernel(program, kind="nngp")(x)
    size, total = range(3), 0.0

    def first(i, j, p, q):
        value = 0.05
        for dy, dx in itertools.product((-1, 0, 1), repeat=2):
            a, b, c, d = p[0] + dy, p[1] + dx, q[0] + dy, q[1] + dx
            if all(v in size for v in (a, b, c, d)):
                value += 1.6 / 9 * (x[i, :, a, b] * x[j, :, c, d]).mean().item()
        return value

    pixels = list(itertools.product(size, repeat=2))
    for p, q in itertools.product(pixels, repeat=2):
        a, b, k = first(0, 0, p, p), first(1, 1, q, q), first(0, 1, p, q)
        angle = torch.acos(torch.tensor(k / (a * b) ** 0.5, dtype=torch.float64))
        total += ((a * b) ** 0.5 * (torch.sin(angle) + (torch.pi - angle) * torch.cos(angle)) / (2 * torch.pi)).item()
    assert found[0, 1].item() == pytest.approx(0.1 + 1.2 * total / 81, rel=1e-12)


def test_a_circular_kernel_does_not_see_where_the_image_begins():
    def kernel(circular):
        layer = convolution(circular=circular)
        return ImageKernel((layer, RELU, layer, RELU, Flatten(), LAST))

    circle, edge = kernel(True), kernel(False)
    moved = torch.roll(X, (2, 3), dims=(2, 3))
    assert torch.allclose(circle(moved), circle(X), rtol=1e-12)
    assert not torch.allclose(edge(moved), edge(X), rtol=1e-3)
    with pytest.raises(ValueError, match="^expected circular padding"):
        ImageKernel((convolution(3, 1, 7, circular=True), RELU, Flatten(), LAST))(X)


@pytest.mark.parametrize("whole", [False, True])
def test_normalization_adds_its_epsilon_to_each_variance(whole):
    point = Convolution(Dense(1.6, 0.05), (1, 1), (1, 1), (0, 0), (1, 1))
    plain = 0.05 + 1.6 * torch.einsum("ichw,jchw->ijhw", X, X) / X.shape[1]
    own = plain.diagonal().permute(2, 0, 1)
    own = own.mean((1, 2), keepdim=True).expand_as(own) if whole else own
    size = (own + 0.5).sqrt()
    wanted = 0.1 + 1.2 * (plain / size[:, None] / size[None]).mean((2, 3))
    found = ImageKernel((point, Normalized(0.5, whole=whole), Flatten(), LAST), kind="nngp")(X)
    assert torch.allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("whole", [True, False])
def test_behind_a_normalization_an_image_and_a_slightly_brighter_one_are_the_same(whole):
    kernel = ImageKernel((Normalized(whole=whole), convolution(), RELU, Flatten(), LAST))
    found = kernel(torch.cat([X[:1], X[:1] * (1 + 1e-6)]))
    assert torch.allclose(found, found[0, 0], rtol=1e-12)
