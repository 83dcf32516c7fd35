"""Charts: every mark at the place that the ticks beside it say, within the paper, with a legend that names it."""

import math
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from theodolite.report.drawing.charts import MOST_POINTS, WIDTH, Area, Bars, Canvas, Figure, Points, Polyline, stepped
from theodolite.report.drawing.scales import Scale, named_scale, scale_of

SVG = "{http://www.w3.org/2000/svg}"


def kinds(svg, kind):
    """The paths of a kind, as lists of the numbers in them."""
    root = ElementTree.fromstring(svg)
    found = [node for node in root.iter(f"{SVG}path") if f"th-g-{kind}" in node.attrib["class"].split()]
    return [[float(v) for v in re.findall(r"-?[\d.]+", node.attrib["d"])] for node in found]


def pairs(numbers):
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def tick_places(svg, *, across):
    """Each number at an axis with its place on the paper, read off the figure itself."""
    found = {}
    for node in ElementTree.fromstring(svg).iter(f"{SVG}text"):
        names = node.attrib.get("class", "").split()
        if names == (["th-g-middle"] if across else ["th-g-end"]):
            found[float(node.text.replace("−", "-"))] = float(node.attrib["x" if across else "y"]) - (
                0 if across else 4
            )
    return found


def read_off(ticks, place, *, log):
    """The number that stands at a place, by the two ticks at the ends."""
    (a, pa), (b, pb) = min(ticks.items()), max(ticks.items())
    part = (place - pa) / (pb - pa)
    return a * (b / a) ** part if log else a + part * (b - a)


@pytest.mark.parametrize("log", [False, True])
def test_points_and_their_bars_stand_where_the_ticks_say(log):
    x, y, errors = [1.0, 40.0, 90.0], [2.0, 30.0, 95.0], [0.5, 10.0, 1.0]
    chart = Figure(scale_of(x, log=log), scale_of([0.5, 100.0], log=log), [Points(x, y, errors)])
    svg = chart.svg()
    across, up = tick_places(svg, across=True), tick_places(svg, across=False)
    (dots,) = kinds(svg, "dot")
    (bars,) = kinds(svg, "bar")
    for place, (value, error) in enumerate(zip(y, errors, strict=True)):
        left, top = dots[3 * place], dots[3 * place + 1]
        assert read_off(across, left, log=log) == pytest.approx(x[place], rel=0.02, abs=0.2)
        assert read_off(up, top, log=log) == pytest.approx(value, rel=0.02, abs=0.2)
        at, low, high = bars[3 * place : 3 * place + 3]
        assert at == left
        assert read_off(up, low, log=log) == pytest.approx(value - error, rel=0.03, abs=0.2)
        assert read_off(up, high, log=log) == pytest.approx(value + error, rel=0.03, abs=0.2)


def test_a_line_goes_through_its_points_in_order_and_leaves_out_what_has_no_place():
    canvas = Canvas(Scale(0, 4), Scale(0, 10), 0, 400, 0, 100)
    (line,) = kinds(
        f'<svg xmlns="{SVG[1:-1]}">{Polyline([4, 0, 1, 2], [10, 0, math.nan, 5]).drawn(canvas)}</svg>', "line"
    )
    assert pairs(line) == [(0, 100), (200, 50), (400, 0)]


def test_an_area_lies_between_its_curves_and_what_is_open_reaches_the_end_without_an_edge():
    canvas = Canvas(Scale(0, 2), Scale(0, 10), 0, 200, 0, 100)
    drawn = Area([0, 1, 2], [2, 3, 2], [math.inf] * 3).drawn(canvas)
    svg = f'<svg xmlns="{SVG[1:-1]}">{drawn}</svg>'
    (area,), (edge,) = kinds(svg, "area"), kinds(svg, "line")
    assert pairs(area) == [(0, 80), (100, 70), (200, 80), (200, 0), (100, 0), (0, 0)]
    assert pairs(edge) == [(0, 80), (100, 70), (200, 80)]
    assert Area([0, 1], [5, 5], [4, 4]).drawn(canvas) == "", "theory says nothing where low is above high"


def test_bars_stand_on_zero():
    canvas = Canvas(named_scale(["a", "b"]), Scale(0, 10), 0, 200, 0, 100)
    (bars,) = kinds(f'<svg xmlns="{SVG[1:-1]}">{Bars([0, 1], [5, 10], width=0.5).drawn(canvas)}</svg>', "mark")
    assert bars == [25, 100, 50, 75, 100, 125, 100, 0, 175, 100]


def test_names_make_steps_and_a_single_place_a_short_bar():
    assert stepped([0, 1], named_scale(["a", "b"]), [1, 1])[0] == [-0.5, 1.5], "equal steps are one line"
    x, ((a, b),) = stepped([5.0], Scale(0, 10), [3.0])
    assert x == [4.6, 5.4] and a == b == 3.0


def test_many_points_are_thinned_and_the_lowest_and_highest_of_each_stretch_are_kept():
    x = list(range(5000))
    y = [math.sin(v / 500) for v in x]
    y[2371], y[118] = 9.0, -9.0
    canvas = Canvas(scale_of(x), scale_of(y), 0, 400, 0, 100)
    shown = Points(x, y).shown(canvas)
    assert {2371, 118, 0, 4999} <= set(shown) and len(shown) <= MOST_POINTS + 2
    assert shown == sorted(shown)


@pytest.mark.parametrize("labels", [["short"], ["theory expects", "measured ± 1 standard error", "a long label " * 3]])
def test_the_legend_names_its_marks_and_stands_within_the_paper_above_the_plot(labels):
    keys = [Polyline(label=label) for label in labels]
    root = ElementTree.fromstring(Figure(Scale(0, 1), Scale(0, 1), [], keys, x_label="x", y_label="y").svg())
    words = {node.text: node for node in root.iter(f"{SVG}text")}
    axis = next(node for node in root.iter(f"{SVG}path") if node.attrib["class"] == "th-g-axis")
    top = float(re.match(r"M[\d.]+,([\d.]+)V", axis.attrib["d"])[1])
    for label in labels:
        assert float(words[label.strip() if label.strip() in words else label].attrib["y"]) < top
    assert {"x", "y"} <= set(words)


def test_everything_stands_within_the_paper_whatever_the_names():
    names = ["encoder.layers.0.attention.query", "b", "<c>"] * 5
    svg = Figure(named_scale(names), scale_of([1e-9, 3e12], log=True), [], x_label="layer", y_label="long " * 20).svg()
    root = ElementTree.fromstring(svg)
    tall = float(root.attrib["viewBox"].split()[3])
    for node in root.iter(f"{SVG}text"):
        assert 0 <= float(node.attrib["x"]) <= WIDTH and 0 <= float(node.attrib["y"]) <= tall
    assert "<c>" in {node.text for node in root.iter(f"{SVG}text")}


def test_ticks_with_long_words_are_fewer():
    few = tick_places(
        Figure(Scale(0, 1e-7), Scale(0, 1), []).svg().replace("×10⁻⁸", "e-8").replace("10⁻⁷", "1e-7"), across=True
    )
    many = tick_places(Figure(Scale(0, 1), Scale(0, 1), []).svg(), across=True)
    assert len(few) <= len(many)
    places = sorted(few.values())
    assert all(b - a > 45 for a, b in pairwise(places))
