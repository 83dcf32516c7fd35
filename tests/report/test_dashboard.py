"""The picture of a run: curves on one axis of steps, layers as heat, phases, marks; and nothing a user wrote runs."""

import math
from xml.etree import ElementTree

from theodolite.report.dashboard import LEFT, PHONE, RIGHT, WIDE, Dashboard, Heat, Panel, RunLine

SVG = "{http://www.w3.org/2000/svg}"


def drawn(**parts):
    return ElementTree.fromstring(Dashboard([0.0, 10.0, 40.0], **parts).svg())


def paths(root, kind):
    """The paths of a kind."""
    return [node for node in root.iter(f"{SVG}path") if f"th-g-{kind}" in node.attrib["class"].split()]


def numbers(line):
    return [tuple(float(v) for v in point.split(",")) for point in line.attrib["d"][1:].split("L")]


def test_curves_stand_at_their_steps_and_leave_out_what_is_not_finite():
    root = drawn(
        panels=[Panel("loss", [RunLine("probe", [1.0, math.nan, 3.0]), RunLine("edge", [2.0] * 3, dashed=True)])]
    )
    probe, edge = paths(root, "line")
    assert [x for x, _ in numbers(probe)] == [LEFT, WIDE - RIGHT]
    assert numbers(probe)[0][1] > numbers(probe)[1][1]
    assert [x for x, _ in numbers(edge)] == [LEFT, LEFT + 0.25 * (WIDE - LEFT - RIGHT), WIDE - RIGHT]
    assert "th-g-dashed" in edge.attrib["class"] and "th-g-dashed" not in probe.attrib["class"]
    assert probe.find(f"{SVG}title").text == "probe"


def test_decades_are_drawn_on_a_logarithmic_axis_whose_ticks_stand_at_their_curve():
    root = drawn(panels=[Panel("loss", [RunLine("probe", [1.0, 10.0, 100.0])])])
    heights = [y for _, y in numbers(paths(root, "line")[0])]
    assert math.isclose(heights[0] - heights[1], heights[1] - heights[2], abs_tol=0.11)
    ticks = {
        node.text: float(node.attrib["y"]) - 4
        for node in root.iter(f"{SVG}text")
        if node.attrib.get("class") == "th-g-soft th-g-end"
    }
    assert [ticks[words] for words in ("1", "10", "100")] == heights


def test_a_layer_is_darker_the_larger_its_number_red_where_it_is_not_finite_and_empty_at_zero():
    root = drawn(heats=[Heat("gradient", ["a", "b"], [[1.0, 10.0, 100.0], [0.0, math.inf, 1.0]])])
    shades = {node.attrib["class"].split()[-1]: node.attrib["d"] for node in paths(root, "heat")}
    assert [d.count("M") for d in shades.values()] == [2, 1, 1]
    places = {dark: d.split(",")[0] for dark, d in shades.items()}
    assert places == {"th-g-heat0": f"M{LEFT:g}", "th-g-heat6": "M372", "th-g-heat12": f"M{WIDE - RIGHT:g}"}
    (bad,) = paths(root, "bad")
    assert bad.attrib["d"].startswith("M372,")


def test_phases_have_their_colors_and_marks_their_words():
    root = drawn(phases=[(0.0, "lazy"), (10.0, "dead")], marks=[(10.0, "<b>dead</b>", True)])
    (calm,), (dead, mark) = paths(root, "calm"), paths(root, "bad")
    assert calm.attrib["d"].startswith(f"M{LEFT:g},") and dead.attrib["d"].startswith("M372,")
    assert calm.find(f"{SVG}title").text == "lazy from step 0"
    assert mark.attrib["d"].startswith("M372,0V") and mark.find(f"{SVG}title").text == "<b>dead</b>"


def test_on_a_phone_the_words_stand_above_and_everything_within():
    board = Dashboard(
        [0.0, 40.0],
        [Panel("loss", [RunLine("on the probe", [1.0, 3.0]), RunLine("held out", [2.0, 4.0])])],
        [Heat("gradient by layer", ["first"], [[1.0, 10.0]])],
    )
    root = ElementTree.fromstring(board.svg(PHONE))
    wide, tall = (float(v) for v in root.attrib["viewBox"].split()[2:])
    assert wide == PHONE.wide
    for node in root.iter(f"{SVG}text"):
        assert 0 <= float(node.attrib["x"]) <= wide and 0 <= float(node.attrib["y"]) <= tall
    assert numbers(paths(root, "line")[0])[0][0] == PHONE.left
    assert board.pictures() == board.svg() + board.svg(PHONE)


def test_one_look_is_no_picture():
    assert Dashboard([3.0], [Panel("loss", [RunLine("probe", [1.0])])]).svg() == ""
