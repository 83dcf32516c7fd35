"""Linear regions of a digits network before and after training, and three short experiments on them.

The pictures go to survey/regions-0.svg and survey/regions-300.svg, named by the steps of training: the plane through three
images, one cell for each affine piece of the network, colored by the class it predicts.
"""

import copy
from itertools import pairwise

import numpy as np
import torch
from sklearn.datasets import make_moons
from torch import nn
from torch.nn.functional import cross_entropy

from theodolite.io.datasets import digits
from theodolite.measure.regions import regions_in_polygon, regions_on_line, regions_on_lines, slice_through
from theodolite.measure.regions._cell_propagation import activation_patterns
from theodolite.report.drawing.planes import region_figure
from theodolite.theory.regions import line_regions, origin_cell_sides


def network(*widths, bias=0.1, seed=0):
    generator, layers = torch.Generator().manual_seed(seed), []
    for fan_in, width in pairwise(widths):
        layer = nn.Linear(fan_in, width)
        layer.weight.data.normal_(0, (2 / fan_in) ** 0.5, generator=generator)
        layer.bias.data.normal_(0, bias, generator=generator)
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def trained(model, x, y, steps):
    """The model every so many steps of training, the start included."""
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(steps + 1):
        if step in (0, 1, 3, 10, 30, 100, 300):
            yield step, copy.deepcopy(model)
        optimizer.zero_grad()
        loss = cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()


def picture(models, x):
    plane, corners = slice_through(x[0], x[1], x[2])
    middle = corners.mean(0)
    polygon = middle + 2.2 * (corners - middle)  # a larger triangle about the three images
    for step, model in (models[0], models[-1]):
        found = regions_in_polygon(model, polygon, plane=plane)
        with torch.no_grad():
            classes = model(plane.points(found.cells.centers()).float()).argmax(1).tolist()
        path = region_figure(found, f"survey/regions-{step}.svg", groups=classes, points=corners)
        print(f"after {step} steps: {found.regions:,} regions, in {path}")


def along_training(models, x, y):
    starts, ends = x[:20], x[23:43]  # no pair of one digit: they come in turn
    law = line_regions((32, 32, 32))
    print(f"regions along training: whole lines through two images (law at initialization {law:.2f}), and between them")
    print("  steps  on the line  of one class  of different classes")
    for step, model in models:
        whole = np.mean([r.regions for r in regions_on_lines(model, starts, ends, whole=True)])
        inside = np.mean([r.regions for r in regions_on_lines(model, starts, ends)])
        order = torch.argsort(y[:200], stable=True)
        class_mates = np.mean([r.regions for r in regions_on_lines(model, x[order[:190:10]], x[order[1:191:10]])])
        print(f"  {step:5d}{whole:13.1f}{class_mates:14.1f}{inside:22.1f}")


def bounded(widths, nets, far=1e4):
    """By layer: how many units have a zero set in the plane at all, and of these the share whose zero set is bounded."""
    rows = []
    square = far * np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
    for depth in range(1, len(widths)):
        some, closed = 0, 0
        for seed in range(nets):
            model = network(*widths[: depth + 1], bias=1.0, seed=seed).double()  # ends in the layer's own signals
            sides = torch.from_numpy(np.stack([square, np.roll(square, -1, 0)]))
            edge = torch.cat(
                [
                    line(torch.cat([torch.zeros(1), line.breakpoints, torch.ones(1)]))
                    for line in (regions_on_line(model, a, b) for a, b in zip(*sides, strict=True))
                ]
            )
            cells = regions_in_polygon(model, square)
            with torch.no_grad():
                corners = model(torch.from_numpy(cells.cells.corners.reshape(-1, 2)))
            crossed = (corners.amax(0) > 0) & (corners.amin(0) < 0)
            outside = (edge.amax(0) > 0) & (edge.amin(0) < 0)
            some, closed = some + int(crossed.sum()), closed + int((crossed & ~outside).sum())
        rows.append((depth, some / nets, closed / max(some, 1)))
    return rows


def sides(model, x):
    found = regions_in_polygon(model, [(-2, -2), (3, -2), (3, 2.5), (-2, 2.5)])
    random = np.random.default_rng(0).uniform((-1.5, -1), (2.5, 1.5), (len(x), 2))
    patterns = {tuple(p): k for k, p in enumerate(found.patterns().tolist())}

    def mean_sides(points):
        own = activation_patterns(found.program, torch.as_tensor(points, dtype=torch.float64)).tolist()
        return np.mean([found.cells.count[patterns[tuple(p)]] for p in own if tuple(p) in patterns])

    return found.cells.count.mean(), mean_sides(x), mean_sides(random)


def main():
    x, y = digits()
    models = list(trained(network(64, 32, 32, 32, 10), x[:1000], y[:1000], 300))
    picture(models, x)
    along_training(models, x, y)
    print("\nbounded zero sets in the plane, widths 2-12-12-12: units with a zero set, share of them bounded")
    for layer, units, share in bounded((2, 12, 12, 12), 12):
        print(f"  layer {layer}: {units:.1f} of 12, {share:.3f}")
    points, labels = make_moons(300, noise=0.1, random_state=0)
    moons = list(trained(network(2, 24, 24, 2, bias=0.5), torch.tensor(points).float(), torch.tensor(labels), 300))
    print(f"\nsides of a cell, two moons (the origin's among random lines: {origin_cell_sides():.2f})")
    for step, model in (moons[0], moons[-1]):
        every, data, random = sides(model, points)
        print(
            f"  after {step} steps: mean over cells {every:.2f}, at data points {data:.2f}, at random points {random:.2f}"
        )


if __name__ == "__main__":
    main()
