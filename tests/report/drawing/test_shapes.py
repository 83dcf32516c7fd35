"""Shapes: well-formed, escaped, named for who cannot see them, and no color of their own."""

import re
from xml.etree import ElementTree

from theodolite.report.drawing.shapes import MARKERS, flowing, joined, markers, path, picture, text

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = """<script>"&'</script>\x1b"""


def test_words_of_users_are_escaped_everywhere():
    svg = picture([text(1, 2, HOSTILE), path("M0,0H1", "line", title=HOSTILE)], (10, 20), HOSTILE)
    root = ElementTree.fromstring(svg)
    shown = HOSTILE.replace("\x1b", "�")
    assert root.attrib["aria-label"] == root.find(f"{SVG}text").text == shown
    assert root.find(f"{SVG}path/{SVG}title").text == shown
    assert root.attrib["role"] == "img" and root.attrib["viewBox"] == "0 0 10 20"


def test_a_path_has_its_kind_and_its_color_as_classes():
    root = ElementTree.fromstring(path("M0,0H1", "line dashed", "c3"))
    assert root.attrib == {"class": "th-g-line th-g-dashed th-c3", "d": "M0,0H1"}
    assert path("", "line") == "" and joined([(1, 1)]) == ""


def test_a_dozen_groups_differ_by_color_or_shape():
    drawn = {(m.attrib["class"].split()[-1], m.attrib["d"]) for m in map(ElementTree.fromstring, map(_mark, range(12)))}
    assert len(drawn) == 12
    assert {color for color, _ in drawn} == {f"th-c{group}" for group in range(6)}


def _mark(group):
    return markers([(5.0, 5.0)], group)


def test_markers_close_where_they_began_and_are_about_their_point():
    for shape in MARKERS[1:]:
        corners, here = [], [0.0, 0.0]
        for letter, rest in re.findall(r"([mlhvz])([^mlhvz]*)", shape):
            numbers = [float(v) for v in re.findall(r"-?[\d.]+", rest)]
            step = {"h": lambda n: (n[0], 0), "v": lambda n: (0, n[0]), "z": lambda n: (0, 0)}.get(letter, tuple)(
                numbers
            )
            here = [here[0] + step[0], here[1] + step[1]]
            corners.append(tuple(here))
        width = [max(c[axis] for c in corners) - min(c[axis] for c in corners) for axis in (0, 1)]
        assert 4 < width[0] < 7 and 4 < width[1] < 7
        assert all(abs(max(c[axis] for c in corners) + min(c[axis] for c in corners)) < 1.2 for axis in (0, 1))


def test_things_flow_into_lines():
    assert flowing([50, 50, 50], 10, 120) == [(10, 0), (60, 0), (10, 1)]
    assert flowing([500], 0, 100) == [(0, 0)] and flowing([], 0, 1) == []
