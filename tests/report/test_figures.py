"""Figures: well-formed, small, colored by the page, whatever the numbers and names."""

import math
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from theodolite.core.law import Law
from theodolite.core.reading import Band, CellPicture, Reading, Series
from theodolite.report.figures import plots_of, series_figure, small_figure, verdict_figure

SVG = "{http://www.w3.org/2000/svg}"


def words(svg):
    return [node.text or "" for node in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def check(svg):
    """Well-formed, sized, named, without colors or ids of its own, and nothing that is no number."""
    root = ElementTree.fromstring(svg)
    assert root.tag == f"{SVG}svg"
    assert root.attrib["viewBox"].startswith("0 0 ")
    assert root.attrib["role"] == "img" and root.attrib["aria-label"]
    assert not [node for node in root.iter() if {"id", "fill", "stroke"} & set(node.attrib)]
    for node in root.iter():
        for name in ("d", "x", "y"):
            assert not re.search("nan|inf|e[+-]", node.attrib.get(name, ""))
    assert len(svg) < 12_000
    return root


def dots(svg):
    """Where the measured points stand, the one of the legend left out."""
    found = [n for n in ElementTree.fromstring(svg).iter(f"{SVG}path") if n.attrib["class"].startswith("th-g-dot")]
    places = [
        tuple(map(float, place)) for n in found for place in re.findall(r"M(-?[\d.]+),(-?[\d.]+)h0", n.attrib["d"])
    ]
    return places[: len(places) - (len(found) > 1)]


def test_series_with_names_hostile_and_many(survey, hostile):
    series = survey[1][1].readings[0].series
    svg = series_figure(series)
    check(svg)
    assert "<script" not in svg
    assert "<img" not in svg
    assert any("±" in text and "standard error" in text for text in words(svg))
    many = Series(x=tuple(f"block.{place}.weight" for place in range(300)), measured=(1.0,) * 300)
    shown = [text for text in words(series_figure(many)) if text.startswith("block")]
    assert 5 < len(shown) <= 14


@pytest.mark.parametrize("log", ["", "x", "y", "xy"])
@pytest.mark.parametrize(
    "values",
    [
        (1.0, 2.0, 3.0),
        (1e-9, 1.0, 1e9),
        (0.0, -1.0, 5.0),
        (0.0, 0.0, 0.0),
        (math.nan, math.inf, 1.0),
        (-1.0, -2.0, -3.0),
        (math.nan,) * 3,
        (3.0, 3.0 + 1e-12, 3.0),
        (1e300, 1e299, -1e300),
    ],
)
def test_series_survives_any_numbers(values, log):
    check(series_figure(Series(x=(1.0, 2.0, 3.0), measured=values, stderr=(0.1, 0.0, 0.2), log=log)))
    check(
        series_figure(Series(x=(0.0, 10.0, 1e4), measured=values, low=(0.5,) * 3, high=(math.inf, 2.0, 2.0), log=log))
    )


def test_series_of_one_point_and_of_none():
    check(series_figure(Series(x=(5.0,), measured=(1.0,), low=(0.9,), high=(1.1,), log="x")))
    check(series_figure(Series(x=("only",), measured=(1.0,), high=(2.0,))))
    check(series_figure(Series(x=(), measured=())))


def test_values_that_cannot_be_drawn_are_told():
    svg = series_figure(Series(x=(1.0, 2.0, 3.0), measured=(1.0, math.nan, 2.0)))
    assert any("1 of 3 cannot be drawn" in text for text in words(svg))


def test_many_points_stay_small():
    x = tuple(float(place) for place in range(1, 5001))
    svg = series_figure(Series(x=x, measured=tuple(1 / v for v in x), low=tuple(0.9 / v for v in x), log="xy"))
    check(svg)


def test_thinning_keeps_the_point_that_sticks_out():
    values = [1.0] * 400
    values[237] = 9.0
    svg = series_figure(Series(x=tuple(f"l{place}" for place in range(400)), measured=tuple(values)))
    assert len({y for _, y in dots(svg)}) == 2
    assert any("thinned" in text for text in words(svg))
    check(svg)


def test_the_band_of_a_series_is_open_where_it_says_so():
    series = Series(x=(1.0, 2.0, 3.0), measured=(1.0, 2.0, 3.0), low=(0.5, 1.5, 2.5), log="y")
    root = check(series_figure(series))
    (area,) = (
        n for n in root.iter(f"{SVG}path") if n.attrib["class"] == "th-g-area th-theory" and "Z" in n.attrib["d"]
    )
    corners = [tuple(map(float, place.split(","))) for place in area.attrib["d"][1:-1].split("L")]
    top = min(y for _, y in corners)
    assert [y for _, y in corners[3:]] == [top] * 3, "to the upper end of the axis"
    assert [x for x, _ in corners[:3]] == [x for x, _ in dots(series_figure(series))]


def test_mathematics_in_names_is_not_parsed_and_foreign_letters_are_silent():
    svg = series_figure(Series(x=("$x^2$", "层.一", "a_b$"), measured=(1.0, 2.0, 3.0), y_label=r"$\broken{"))
    assert {"$x^2$", "层.一", "a_b$"} <= set(words(svg))
    assert r"$\broken{" in words(svg)


def test_the_same_series_is_the_same_figure_and_a_heading_may_name_its_axis(survey):
    series = survey[1][1].readings[0].series
    assert series_figure(series) == series_figure(series)
    untitled = set(words(series_figure(series, titled=False)))
    assert untitled < set(words(series_figure(series)))


def test_every_verdict_has_its_figure(verdicts):
    for verdict in verdicts.values():
        check(verdict_figure(verdict))


def test_groups_have_their_own_colors_and_names(verdicts):
    svg = verdict_figure(verdicts["powers"])
    assert {"base=0.5", "base=1.0", "base=2.0"} <= set(words(svg))
    assert all(f"th-c{place}" in svg for place in range(3))
    assert "exponent" in words(svg)
    assert {"0.01", "1", "100"} <= set(words(svg))


def test_exponent_shows_fit_prediction_and_refuted_slope(verdicts):
    shown = words(verdict_figure(verdicts["spread"]))
    assert any(text.startswith(("fit: slope −1.0", "fit: slope −0.9")) for text in shown)
    assert "theory: slope −1 ± 0.3" in shown
    assert "form in print: slope −0.5" in shown
    assert {"8", "32", "128"} <= set(shown)


def test_exponent_without_points_is_an_empty_figure(verdicts):
    bare = [replace(reading, series=None) for reading in verdicts["spread"].readings]
    check(verdict_figure(replace(verdicts["spread"], readings=tuple(bare))))


def test_refuted_form_is_dashed(verdicts):
    svg = verdict_figure(verdicts["wrong"])
    assert "form in print" in words(svg)
    assert 'class="th-g-line th-g-dashed th-wrong"' in svg


def test_full_size_and_cases_without_the_axis():
    law = Law(
        name="l",
        claim="c",
        formula="f",
        assumes={},
        source="",
        along="n",
        tolerance=0.1,
        predict=lambda **_: 2.0,
        measure=lambda **_: 2.0,
        cases=({"n": 1}, {"m": 2}),
        full=({"n": 1000},),
    )
    assert {"n=1", "m=2", "n=1000"} <= set(words(verdict_figure(law.check(size="full"))))
    one_sided = Law(
        name="l",
        claim="c",
        formula="f",
        assumes={},
        source="",
        predict=lambda: Band(low=1.0),
        measure=lambda: 2.0,
        cases=({},),
    )
    check(verdict_figure(one_sided.check()))


def many_spectra(count):
    """Readings with a series each, the last one outside its band."""
    x = tuple(1.0 + k for k in range(12))
    return [
        Reading(
            quantity="alpha",
            where=f"layer {place}",
            measured=9.0 if place == count - 1 else 1.0,
            expected=Band(0.0, 2.0),
            series=Series(
                x=x,
                measured=tuple(1 / (v + place) for v in x),
                low=tuple(0.5 / v for v in x),
                high=tuple(0.5 / v for v in x),
                x_label="<eigenvalue>",
                y_label="density",
                log="xy",
            ),
        )
        for place in range(count)
    ]


def test_of_many_figures_those_worth_seeing_are_drawn_in_full_and_the_others_small():
    few, many = plots_of(many_spectra(5)), plots_of(many_spectra(30))
    small = [plot for plot in many if 'viewBox="0 0 320 150"' in plot.svg]
    assert not any('viewBox="0 0 320 150"' in plot.svg for plot in few)
    assert len(many) == 30
    assert len(small) == 27
    assert 'viewBox="0 0 320 150"' not in many[-1].svg, "the one outside its band is drawn in full"


def test_of_hundreds_of_figures_those_to_be_seen_first_are_drawn_and_the_others_counted():
    plots = plots_of(many_spectra(130))
    assert len([plot for plot in plots if plot.svg]) == 100
    assert any('viewBox="0 0 320 150"' not in plot.svg and plot.svg for plot in plots), "the one outside its band"
    assert plots[-1].caption.startswith("30 more")


def test_a_small_figure_is_well_formed_and_shows_every_point():
    series = many_spectra(1)[0].series
    svg = small_figure(series)
    check(svg)
    assert len(dots(svg)) == 12
    assert words(svg) == ["<eigenvalue> 1 to 12; density 0.0417 to 1"]


def test_a_slope_is_drawn_as_steep_as_it_is_and_cut_where_the_axis_ends(verdicts):
    root = check(verdict_figure(verdicts["spread"]))
    lines = {}
    for node in root.iter(f"{SVG}path"):
        found = re.fullmatch(r"M([\d.]+),([\d.]+)L([\d.]+),([\d.]+)", node.attrib["d"])
        if found:
            x1, y1, x2, y2 = map(float, found.groups())
            lines[node.attrib["class"]] = (y2 - y1) / (x2 - x1)
    theory, wrong = lines["th-g-line th-theory"], lines["th-g-line th-g-dashed th-wrong"]
    assert theory / wrong == pytest.approx(2.0, rel=0.02), "slopes of -1 and -1/2"
    assert lines["th-g-line th-g-dotted"] == pytest.approx(theory, rel=0.1)


def test_few_are_all_drawn_and_named():
    assert [plot.caption for plot in plots_of(many_spectra(3))] == ["layer 0", "layer 1", "layer 2"]


def test_places_are_drawn_side_by_side_where_no_reading_has_a_series():
    readings = [Reading(quantity="q", measured=v, where=f"l{v}", expected=Band(0, 2)) for v in (1.0, 2.0, 3.0)]
    (plot,) = plots_of(readings)
    assert {"l1.0", "l2.0", "l3.0"} <= set(words(plot.svg)) and plot.caption == ""
    assert plots_of(readings[:2]) == []


def test_cells_are_a_picture():
    cells = CellPicture(
        x=("cells",), measured=(1.0,), polygons=(((0, 0), (1, 0), (0, 1)),), groups=(0,), points=((0, 0),)
    )
    assert "th-g-cell" in series_figure(cells)
    (plot,) = plots_of([Reading(quantity="q", measured=1.0, series=cells)])
    assert plot.svg == series_figure(cells)
