"""Networks that are written down: they answer every point, refuse what no function can do, and travel through files."""

import numpy as np
import pytest
import torch
from torch import nn

import theodolite as th
from theodolite.construct.capacity import fit_error, in_float32, load, memorize, save
from theodolite.theory.capacity import theorem_widths


def points(n, d, seed=0):
    generator = np.random.default_rng(seed)
    return generator.standard_normal((n, d)), generator.uniform(-1, 1, (n, 1))


@pytest.mark.parametrize("activation", ["relu", "hardtanh"])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 16, 33, 257])
@pytest.mark.parametrize("d", [1, 3])
def test_every_point_is_answered_at_the_theorem_s_widths(activation, n, d):
    x, y = points(n, d)
    net = th.memorize(x, y, activation=activation)
    assert net.report.widths == theorem_widths(n, activation=activation)
    assert [layer.out_features for layer in net if isinstance(layer, nn.Linear)] == [*net.report.widths, 1]
    with torch.no_grad():
        error = (net(torch.from_numpy(x)) - torch.from_numpy(y)).abs().max().item()
    assert error < 1e-8  # weights are of the order of 1e5 at most, and rounding is 1e-16 of that
    assert net.report.error == pytest.approx(error, abs=1e-10)


def test_several_outputs_and_targets_of_any_size():
    x, y = points(300, 4)
    targets = np.hstack([1e4 * y + 7e4, -y, 0.5 * np.ones_like(y)])
    net = th.memorize(x, targets, activation="hardtanh")
    assert np.abs(net(torch.from_numpy(x)).detach().numpy() - targets).max() < 1e-5  # 1e-9 of the range
    assert th.memorize(x[:5], np.full(5, 8.0)).report.error < 1e-9


@pytest.mark.parametrize("activation", ["relu", "hardtanh"])
def test_labels_are_exact(activation):
    x, _ = points(500, 6)
    labels = np.random.default_rng(1).integers(0, 7, 500)
    net = th.memorize(x.astype(np.float32), labels, activation=activation)
    answers = net(torch.from_numpy(x.astype(np.float32)))
    assert (answers.argmax(1).numpy() == labels).all()
    assert net.report.labels_right == 1.0
    assert net.report.error < 1e-9
    assert len(net.report.widths) == 3


def test_classes_need_not_count_from_zero_and_one_class_is_enough():
    x, _ = points(20, 2)
    assert th.memorize(x, np.where(x[:, 0] > 0, 5, -3)).report.classes == (-3, 5)
    assert th.memorize(x, np.ones(20, dtype=int)).report.labels_right == 1.0


def test_spare_width_goes_to_a_second_projection_and_lowers_the_weights():
    x, y = points(3000, 8)
    tight, wide = (th.memorize(x, y, activation="hardtanh", widths=w).report for w in ((55, 56), (90, 90)))
    assert len(tight.blocks) == 1
    assert len(wide.blocks) == 2
    assert sum(wide.blocks) == 3000
    assert wide.error < 1e-8
    assert tight.error < 1e-8
    assert wide.largest_weight < tight.largest_weight


def test_relu_stays_within_the_theorem_s_budget():
    x, y = points(2500, 10)
    report = th.memorize(x, y).report
    assert report.widths[0] * report.widths[1] <= 4.4 * 2500
    assert report.error < 1e-8


def test_images_flatten_themselves_and_integers_are_welcome():
    images = np.random.default_rng(0).integers(0, 256, (60, 5, 5), dtype=np.uint8)
    net = th.memorize(images, np.arange(60) % 4)
    assert isinstance(net[0], nn.Flatten)
    assert (net(torch.from_numpy(images)).argmax(1).numpy() == np.arange(60) % 4).all()


def test_repeated_rows_are_merged_and_contradictions_named():
    x, y = points(30, 3)
    x[17], y[17] = x[3], y[3]
    assert th.memorize(x, y).report.merged == 1
    y[17] = -y[3]
    with pytest.raises(
        ValueError, match=r"^expected .*rows 3 and 17 are equal|^expected .*rows 3 and 17 that are equal"
    ):
        th.memorize(x, y)


def test_float32_says_what_it_costs():
    x, y = points(2000, 5)
    net = th.memorize(x, y)
    rounded = in_float32(net, x, y)
    assert net.report.error < 1e-8 < 1e-4 < rounded.report.error
    assert rounded[0].weight.dtype == torch.float32
    assert net[0].weight.dtype == torch.float64
    assert fit_error(rounded, torch.from_numpy(x), torch.from_numpy(y))[0] == rounded.report.error


def test_a_network_comes_back_from_its_file(tmp_path):
    images = np.random.default_rng(0).standard_normal((40, 2, 3))
    for net in (th.memorize(images, np.arange(40) % 3), th.memorize(images, images[:, 0, 0], activation="hardtanh")):
        again = load(save(net, tmp_path / "net.safetensors"))
        assert torch.equal(again(torch.from_numpy(images)), net(torch.from_numpy(images)))
        assert again.report == net.report
    assert [path.name for path in tmp_path.iterdir()] == ["net.safetensors"]
    (tmp_path / "bad.safetensors").write_bytes(b"no")
    with pytest.raises(ValueError, match="^expected"):
        load(tmp_path / "bad.safetensors")


def test_the_same_seed_gives_the_same_network_and_global_randomness_is_left_alone():
    x, y = points(100, 4)
    before = torch.get_rng_state()
    first, second = th.memorize(x, y, seed=3), th.memorize(torch.from_numpy(x), torch.from_numpy(y), seed=3)
    assert torch.equal(first[2].weight, second[2].weight)
    assert torch.equal(before, torch.get_rng_state())


X, Y = points(50, 2)


@pytest.mark.parametrize(
    ("x", "y", "keywords"),
    [
        (X, Y, {"activation": "tanh"}),
        (X, Y, {"widths": (4, 4)}),
        (X, Y, {"widths": (40,)}),
        (X, Y[:9], {}),
        (X[:0], Y[:0], {}),
        (X[:, 0], Y, {}),
        (np.where(X > 1, np.nan, X), Y, {}),
        (X, np.where(Y > 0.5, np.inf, Y), {}),
        (np.array([["a"]]), Y[:1], {}),
        (X, np.arange(50) % 3, {"widths": (40, 40, 11)}),
    ],
)
def test_bad_input_gets_one_clear_line(x, y, keywords):
    with pytest.raises(ValueError, match="^expected"):
        th.memorize(x, y, **keywords)


def test_memorize_says_when_two_points_cannot_be_told_apart():
    random = np.random.default_rng(0)
    x, y = random.standard_normal((20, 2)), random.standard_normal(20)
    x[1] = x[0]
    x[1, 0] += 1e-15
    with pytest.raises(ValueError, match="expected points that double precision can tell apart"):
        memorize(x, y)
