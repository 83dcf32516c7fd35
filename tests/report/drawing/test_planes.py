"""Pictures of a plane: units of one length, colors by class, polygons where they are."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from torch import nn

from theodolite.measure.regions import regions_in_polygon
from theodolite.report.drawing.planes import FINE, cells_figure, region_figure, scatter_figure

SVG = "{http://www.w3.org/2000/svg}"


def paths(svg, kind):
    root = ElementTree.fromstring(svg)
    return [node for node in root.iter(f"{SVG}path") if f"th-g-{kind}" in node.attrib["class"].split()]


def test_units_are_as_long_across_as_upright():
    (dots,) = paths(scatter_figure([(0, 0), (10, 0), (0, 2)], spoken="three"), "dot")
    (a, b), (c, d), (e, f) = re.findall(r"M([\d.]+),([\d.]+)", dots.attrib["d"])
    across, up = float(c) - float(a), float(b) - float(f)
    assert across == pytest.approx(5 * up, rel=0.01) and across > 300 and b == d and a == e


def test_classes_have_colors_and_names_and_too_many_have_none():
    places = [(k % 7, k // 7) for k in range(49)]
    svg = scatter_figure(places, [f"<{k % 3}>" for k in range(49)], spoken="s")
    root = ElementTree.fromstring(svg)
    assert [node.text for node in root.iter(f"{SVG}text")] == ["<0>", "<1>", "<2>"]
    assert sum(node.attrib["d"].count("M") for node in root.iter(f"{SVG}path")) == 49 + 3
    assert "<text" not in scatter_figure(places, [str(k) for k in range(49)], spoken="s")


def corners_of(path):
    """The polygons of a path, in the units of the picture."""
    found = []
    for first, rest in re.findall(r"M(-?\d+ -?\d+)l([^zM]*)z", path):
        here = np.array([int(v) for v in first.split()])
        steps = np.array([int(v) for v in re.findall(r"-?\d+", rest)]).reshape(-1, 2)
        found.append(np.vstack([here, here + steps.cumsum(0)]) / FINE)
    return found


def area(corners):
    x, y = corners.T
    return abs(x @ np.roll(y, 1) - y @ np.roll(x, 1)) / 2


def test_polygons_keep_their_areas_and_groups_their_colors():
    squares = [[(k, 0), (k + 1, 0), (k + 1, k + 1), (k, k + 1)] for k in range(4)]
    svg = cells_figure(squares, [0, 1, 0, 2], [(0, 0), (4, 4)])
    cells = paths(svg, "cell")
    areas = sorted(area(corners) for node in cells for corners in corners_of(node.attrib["d"]))
    assert [a / areas[0] for a in areas] == pytest.approx([1, 2, 3, 4], rel=0.02)
    assert {node.attrib["class"].split()[-1] for node in cells} == {"th-c0", "th-c1", "th-c2"}
    assert all(node.attrib["d"].count("M") == 2 for node in paths(svg, "dot"))
    assert ElementTree.fromstring(svg).attrib["aria-label"] == "4 cells of a plane through 2 inputs"


def test_the_regions_of_a_network_fill_the_polygon_and_the_file_has_its_own_style(tmp_path):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 24), nn.ReLU(), nn.Linear(24, 2)).double()
    found = regions_in_polygon(model, [(-1, -1), (1, -1), (1, 1), (-1, 1)])
    path = region_figure(found, tmp_path / "new" / "r.svg", groups=[k % 3 for k in range(found.regions)])
    svg = path.read_text()
    cells = [corners for node in paths(svg, "cell") for corners in corners_of(node.attrib["d"])]
    assert len(cells) == found.regions > 10
    everything = np.vstack(cells)
    assert sum(area(corners) for corners in cells) == pytest.approx(np.prod(np.ptp(everything, axis=0)), rel=0.01)
    style = ElementTree.fromstring(svg).find(f"{SVG}style").text
    assert ".th-g-cell" in style and "--th-group0: #" in style
    with pytest.raises(ValueError, match="expected a path that ends in .svg"):
        region_figure(found, tmp_path / "r.png")
