"""The picture of a run: curves on one axis of steps, layers as heat, phases, marks; and nothing a user wrote runs."""

import math
from xml.etree import ElementTree

from theodolite.report.dashboard import LEFT, RIGHT, WIDE, Dashboard, Heat, Panel, RunLine

SVG = "{*}"


def drawn(**parts):
    return ElementTree.fromstring(Dashboard([0.0, 10.0, 40.0], **parts).svg())


def numbers(line):
    return [tuple(float(v) for v in point.split(",")) for point in line.attrib["points"].split()]


def test_curves_stand_at_their_steps_and_leave_out_what_is_not_finite():
    root = drawn(
        panels=[Panel("loss", [RunLine("probe", [1.0, math.nan, 3.0]), RunLine("edge", [2.0] * 3, dashed=True)])]
    )
    probe, edge = root.findall(f".//{SVG}polyline")
    assert [x for x, _ in numbers(probe)] == [LEFT, WIDE - RIGHT]
    assert numbers(probe)[0][1] > numbers(probe)[1][1]
    assert [x for x, _ in numbers(edge)] == [LEFT, LEFT + 0.25 * (WIDE - LEFT - RIGHT), WIDE - RIGHT]
    assert "th-d-dashed" in edge.attrib["class"] and "th-d-dashed" not in probe.attrib["class"]


def test_decades_are_drawn_on_a_logarithmic_axis():
    root = drawn(panels=[Panel("loss", [RunLine("probe", [1.0, 10.0, 100.0])])])
    heights = [y for _, y in numbers(root.find(f".//{SVG}polyline"))]
    assert math.isclose(heights[0] - heights[1], heights[1] - heights[2], abs_tol=0.11)


def test_a_layer_is_darker_the_larger_its_number_red_where_it_is_not_finite_and_empty_at_zero():
    root = drawn(heats=[Heat("gradient", ["a", "b"], [[1.0, 10.0, 100.0], [0.0, math.inf, 1.0]])])
    cells = root.findall(f".//{SVG}g/{SVG}rect")
    assert len(cells) == 5
    dark = [float(cell.attrib["fill-opacity"]) for cell in cells[:3]]
    assert dark == sorted(dark) and dark[0] < dark[2]
    assert cells[3].attrib["class"] == "th-d-bad"


def test_phases_have_their_colors_and_marks_their_words():
    root = drawn(phases=[(0.0, "lazy"), (10.0, "dead")], marks=[(10.0, "<b>dead</b>", True)])
    kinds = [rect.attrib["class"] for rect in root.findall(f"{SVG}rect")]
    assert kinds == ["th-d-calm", "th-d-bad"]
    (mark,) = root.findall(f"{SVG}line")
    assert mark.attrib["class"] == "th-d-bad"
    assert mark.find(f"{SVG}title").text == "<b>dead</b>"


def test_one_look_is_no_picture():
    assert Dashboard([3.0], [Panel("loss", [RunLine("probe", [1.0])])]).svg() == ""
