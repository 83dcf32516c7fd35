"""Counts with certificates: cells fill the polygon, each lies in one region by the model's own signs, no two in the same."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from theodolite.construct.regions import sawtooth
from theodolite.measure.regions import (
    cell_at,
    facets,
    largest_ball,
    network_line_counts,
    origin_sides,
    regions_in_polygon,
    regions_on_line,
    regions_on_lines,
    slice_through,
)

SQUARE = [(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)]


def mlp(widths, seed, activation=nn.ReLU, outputs=1, bias=0.5):
    generator = torch.Generator().manual_seed(seed)
    layers = []
    for a, b in zip(widths, (*widths[1:], outputs), strict=True):
        layer = nn.Linear(a, b, dtype=torch.float64)
        with torch.no_grad():
            layer.weight.normal_(0, (2 / a) ** 0.5, generator=generator)
            layer.bias.normal_(0, bias, generator=generator)
        layers += [layer, activation()]
    return nn.Sequential(*layers[:-1])


def signs(model, x):
    """Which side of zero every ReLU's own input lies on, by hooks: shares nothing with the counter."""
    seen = []
    hooks = [
        m.register_forward_hook(lambda m, a, o: seen.append((a[0] > 0).flatten(1)))
        for m in model.modules()
        if isinstance(m, nn.ReLU)
    ]
    with torch.no_grad():
        model(x)
    for hook in hooks:
        hook.remove()
    return torch.cat(seen, 1)


def certify_plane(model, found, area):
    """The count is exact: the cells fill the polygon, each has one pattern at all its corners, no two share it."""
    assert math.isclose(found.areas.sum(), area, rel_tol=1e-9)
    patterns = set()
    for k in range(found.regions):
        corners = found.polygon(k)
        inner = corners + 1e-4 * (corners.mean(0) - corners)
        own = signs(model, found.plane.points(inner))
        assert (own == own[0]).all()
        patterns.add(tuple(own[0].tolist()))
    assert len(patterns) == found.regions


@pytest.mark.parametrize("seed", range(40))
def test_plane_counts_are_exact(seed):
    widths = ((2, 6), (2, 5, 5), (2, 4, 4, 4), (2, 2, 9, 3))[seed % 4]
    model = mlp(widths, seed)
    found = regions_in_polygon(model, SQUARE)
    certify_plane(model, found, 4.0)
    centers = found.cells.centers()
    maps = torch.einsum("cok,ck->co", found.maps, torch.from_numpy(np.column_stack([np.ones(len(centers)), centers])))
    torch.testing.assert_close(maps, model(torch.from_numpy(centers)), rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_line_counts_are_exact(seed):
    widths = ((3, 8), (3, 5, 5), (3, 3, 3, 3), (3, 2, 9, 4))[seed % 4]
    model = mlp(widths, seed)
    start, end = torch.randn(2, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    found = regions_on_line(model, start, end)
    edges = torch.cat([torch.zeros(1), found.breakpoints, torch.ones(1)]).double()
    low, high = edges[:-1], edges[1:]
    inner = [signs(model, start + (low + share * (high - low))[:, None] * (end - start)) for share in (1e-4, 1 - 1e-4)]
    assert (inner[0] == inner[1]).all()
    assert (inner[0][1:] != inner[0][:-1]).any(1).all()
    t = torch.linspace(0, 1, 201, dtype=torch.float64)
    torch.testing.assert_close(found(t), model(start + t[:, None] * (end - start)), rtol=0, atol=1e-12)


def test_a_large_polygon_holds_all_cells_of_an_arrangement():
    for units in (1, 4, 12):
        far = 1e5 * np.asarray(SQUARE)
        assert regions_in_polygon(mlp((2, units), 3), far).regions == sum(math.comb(units, i) for i in range(3))


@pytest.mark.parametrize("folds", range(1, 13))
def test_sawtooth(folds):
    assert regions_on_line(sawtooth(folds), [0.0], [1.0]).pieces == 2**folds
    assert regions_on_line(sawtooth(folds, compact=True), [0.0], [1.0]).pieces == 2**folds
    assert regions_on_line(sawtooth(folds), [0.0], [1.0], whole=True).pieces == 2**folds + (2 if folds > 1 else 1)


def test_zeros_upon_edges_cut_nothing():
    """Without biases all lines of the first layer meet in the origin, and later ones pass through it as well."""
    for seed in range(10):
        model = mlp((2, 5, 5), seed, bias=0.0)
        found = regions_in_polygon(model, SQUARE)
        certify_plane(model, found, 4.0)
        around = torch.linspace(0, 2 * math.pi, 200_001, dtype=torch.float64)[:-1]  # cells are sectors: walk around
        own = signs(model, 0.5 * torch.stack([around.cos(), around.sin()], 1))
        assert found.regions == int((own != own.roll(1, 0)).any(1).sum())


def test_a_unit_met_twice_and_a_unit_that_is_zero():
    model = mlp((2, 6, 4), 1)
    with torch.no_grad():
        model[0].weight[1], model[0].bias[1] = 2 * model[0].weight[0], 2 * model[0].bias[0]
        model[0].weight[2], model[0].bias[2] = -model[0].weight[0], -model[0].bias[0]
        model[0].weight[3], model[0].bias[3] = 0.0, 0.0
    certify_plane(model, regions_in_polygon(model, SQUARE), 4.0)


def test_networks_without_biases_are_not_overcounted():
    """A naive count of roots inside open intervals gives 7.75 here, the exact mean is 7.03125."""
    generator = torch.Generator().manual_seed(0)
    sizes = ((3, 3), (3, 4), (4, 3), (3, 1))
    weights = [torch.randn(20_000, b, a, generator=generator, dtype=torch.float64) for a, b in sizes]
    start, end = torch.eye(3, dtype=torch.float64)[:2]
    regions, pieces = network_line_counts(weights, [None] * 4, start=start, end=end, whole=True)
    assert abs(regions.double().mean() - 7.03125) < 4 * 0.017
    assert abs(pieces.double().mean() - 6.2421875) < 4 * 0.02
    chosen = torch.randperm(20_000, generator=generator)[:20]
    for k in chosen.tolist():
        layers = [nn.Linear(a, b, bias=False, dtype=torch.float64) for a, b in sizes]
        for layer, weight in zip(layers, weights, strict=True):
            layer.weight.data = weight[k]
        model = nn.Sequential(*[m for layer in layers for m in (layer, nn.ReLU())][:-1])
        alone = regions_on_line(model, start, end, whole=True)
        assert (alone.regions, alone.pieces) == (regions[k], pieces[k])


class Residual(nn.Module):
    """Everything that is read, in one network."""

    def __init__(self):
        super().__init__()
        self.a, self.norm = nn.Conv2d(1, 3, 3, padding=1), nn.BatchNorm2d(3)
        self.b, self.prelu = nn.Conv2d(3, 3, 3, padding=1, bias=False), nn.PReLU(3)
        self.pool, self.head = nn.MaxPool2d(2), nn.Linear(12, 4)

    def forward(self, x):
        x = torch.relu(self.norm(self.a(x)))
        x = nn.functional.hardtanh(self.pool(x + self.prelu(self.b(x))), -0.7, 0.7)
        x = nn.functional.avg_pool2d(x, 1).view(x.size(0), -1)
        return torch.maximum(self.head(x), 0.5 * self.head(x).abs() - 0.1)


def test_convolutions_norms_pools_residual_sums_and_other_bends():
    torch.manual_seed(0)
    model = Residual().eval()
    with torch.no_grad():
        model.norm.running_mean.normal_()
        model.prelu.weight.copy_(torch.tensor([-0.5, 0.2, 1.5]))
    a, b, c = torch.randn(3, 1, 4, 4, dtype=torch.float64)
    plane, corners = slice_through(a, b, c)
    found = regions_in_polygon(model, corners, plane=plane)
    assert math.isclose(found.areas.sum(), 0.5 * corners[1, 0] * corners[2, 1], rel_tol=1e-9)
    same = model.double()
    inner = [found.polygon(k) + 1e-6 * (found.polygon(k).mean(0) - found.polygon(k)) for k in range(found.regions)]
    for k, corner in enumerate(inner):  # the map of every cell is the network's own at each of its corners
        values = found.maps[k] @ torch.from_numpy(np.column_stack([np.ones(len(corner)), corner]).T)
        torch.testing.assert_close(values.T, same(plane.points(corner)), rtol=0, atol=1e-9)
    line = regions_on_line(model, a, b)
    t = torch.linspace(0, 1, 301, dtype=torch.float64)
    torch.testing.assert_close(line(t), same(a + t[:, None, None, None] * (b - a)), rtol=0, atol=1e-9)
    edge = regions_in_polygon(
        model, [corners[0], corners[1], corners[1] + [0, 1e-7], corners[0] + [0, 1e-7]], plane=plane
    )
    assert edge.regions == line.regions  # a very thin strip along the line has the cells of the line


def test_many_lines_at_once_are_the_lines_one_by_one():
    model, x = mlp((3, 7, 7), 5, outputs=2), torch.randn(2, 6, 3, generator=torch.Generator().manual_seed(1))
    for found, a, b in zip(regions_on_lines(model, x[0], x[1]), x[0], x[1], strict=True):
        torch.testing.assert_close(found.breakpoints, regions_on_line(model, a, b).breakpoints)


def test_the_cell_of_a_point_is_the_polygon_around_it():
    model = mlp((2, 8, 8), 2)
    found = regions_in_polygon(model, 50 * np.asarray(SQUARE))
    for k in np.argsort(found.areas)[5::9]:
        corners = found.polygon(k)
        if np.abs(corners).max() > 49:
            continue
        cell = cell_at(model, corners.mean(0))
        assert len(facets(cell)) == len(corners)
        edges = np.roll(corners, -1, 0) - corners
        normals = np.column_stack([edges[:, 1], -edges[:, 0]]) / np.linalg.norm(edges, axis=1, keepdims=True)
        distance = np.abs(((corners - corners.mean(0)) * normals).sum(1)).min()
        assert math.isclose(cell.distance, distance, rel_tol=1e-6)
        center, radius = largest_ball(cell)
        assert cell.holds(center)
        assert radius >= cell.distance * (1 - 1e-9)
        torch.testing.assert_close(
            cell.weight @ corners.mean(0) + cell.bias, found.maps[k].numpy() @ [1, *corners.mean(0)]
        )


def test_what_cannot_be_read_is_named_and_the_model_is_left_alone():
    good = mlp((2, 3), 0)
    for layer in (nn.Tanh(), nn.LayerNorm(3), nn.Softmax(-1)):
        with pytest.raises(ValueError, match=rf"^expected piecewise linear layers, got {type(layer).__name__} at '1'"):
            regions_on_line(nn.Sequential(nn.Linear(2, 3), layer), [0.0, 0.0], [1.0, 0.0])
    with pytest.raises(ValueError, match="NaN or infinity in '0.bias'"):
        broken = mlp((2, 3), 0)
        broken[0].bias.data[0] = math.nan
        regions_in_polygon(broken, SQUARE)
    with pytest.raises(ValueError, match="two different inputs"):
        regions_on_line(good, [0.0, 0.0], [0.0, 0.0])
    with pytest.raises(ValueError, match="convex polygon"):
        regions_in_polygon(good, [(0, 0), (1, 0), (2, 0)])
    with pytest.raises(ValueError, match="span a plane"):
        slice_through(torch.zeros(3), torch.ones(3), 2 * torch.ones(3))
    good.train()
    before = {k: v.clone() for k, v in good.state_dict().items()}
    regions_in_polygon(good.float(), SQUARE)
    assert good.training
    assert good[0].weight.dtype == torch.float32
    assert all(torch.equal(v.float(), good.state_dict()[k]) for k, v in before.items())


def test_sides_of_the_origins_cell_by_duality_and_by_linear_programming():
    for seed in range(5):
        model = mlp((2, 30), seed, outputs=30)
        sides = origin_sides(model[0].weight.detach().numpy(), model[0].bias.detach().numpy())
        assert sides == len(facets(cell_at(model, [0.0, 0.0])))


class Maxout(nn.Module):
    def forward(self, z):
        return z.reshape(z.shape[0], -1, 2).amax(-1)


class Clamped(nn.Module):
    def forward(self, z):
        return torch.clamp(z, min=-0.3) + z.clamp(max=0.8).abs()


@pytest.mark.parametrize(
    ("activation", "bends"),
    [
        (nn.ReLU6(), 2),
        (nn.LeakyReLU(0.1), 1),
        (nn.Hardtanh(-0.4, 0.9), 2),
        (nn.Hardsigmoid(), 2),
        (nn.Softshrink(0.2), 2),
        (nn.PReLU(init=-0.3), 1),
        (Clamped(), 3),
        (nn.Identity(), 0),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_every_activation_bends_where_it_should(activation, bends):
    model = nn.Sequential(mlp((1, 5), 0, outputs=1)[0], activation, nn.Linear(5, 1, dtype=torch.float64))
    found = regions_on_line(model, [0.0], [1.0], whole=True)
    assert found.regions == 1 + 5 * bends
    t = torch.linspace(-20, 20, 997, dtype=torch.float64)
    torch.testing.assert_close(found(t), model.double()(t[:, None]), rtol=0, atol=1e-9)


def test_maxout_bends_where_the_largest_changes():
    model = nn.Sequential(mlp((2, 8), 3, outputs=1)[0], Maxout(), mlp((4, 6), 1)[0], nn.ReLU())
    found = regions_in_polygon(model, 1e5 * np.asarray(SQUARE)[:, :])
    first = nn.Sequential(model[0], Maxout())
    assert regions_in_polygon(first, 1e5 * np.asarray(SQUARE)).regions == 11  # four lines in general position
    corners = torch.from_numpy(found.cells.corners.reshape(-1, 2))
    with torch.no_grad():
        own = model(corners).reshape(found.regions, -1, 6)
    rows = torch.cat([torch.ones(len(corners), 1), corners], 1).reshape(found.regions, -1, 3)
    torch.testing.assert_close(torch.einsum("cok,cpk->cpo", found.maps, rows), own, rtol=0, atol=1e-7)
