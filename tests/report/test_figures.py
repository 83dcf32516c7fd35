"""Figures: well-formed, small, colored by the page, with ids of their own, whatever the numbers and names."""

import math
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from theodolite.report.plots import plots_of
from theodolite.report.small_figures import small_figure

from theodolite.core.law import Law
from theodolite.core.reading import Band, Reading, Series
from theodolite.report.figures import series_figure, verdict_figure
from theodolite.report.formulas import formula, prose

SVG = "{http://www.w3.org/2000/svg}"


def words(svg):
    return [node.text or "" for node in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def check(svg):
    root = ElementTree.fromstring(svg)
    assert root.tag == f"{SVG}svg"
    assert root.attrib["width"] == "100%"
    assert root.attrib["viewBox"].startswith("0 0 ")
    assert root.attrib["role"] == "img"
    assert not re.search(r"#0[1-5]0[1-5]", svg), "a sentinel color was left"
    assert "currentColor" in svg
    assert "NaN" not in svg.replace("NaN ", "")
    ids = [node.attrib["id"] for node in root.iter() if "id" in node.attrib]
    assert len(ids) == len(set(ids))
    for found in re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', svg):
        assert (found[0] or found[1]) in ids
    assert len(svg) < 24_000
    return root


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
    marks = list(ElementTree.fromstring(svg).iter(f"{SVG}circle"))[:-1]  # the last one stands in the legend
    assert len({mark.attrib["cy"] for mark in marks}) == 2
    assert any("thinned" in text for text in words(svg))
    assert len(svg) < 24_000


def test_mathematics_in_names_is_not_parsed_and_foreign_letters_are_silent():
    svg = series_figure(Series(x=("$x^2$", "层.一", "a_b$"), measured=(1.0, 2.0, 3.0), y_label=r"$\broken{"))
    assert {"$x^2$", "层.一", "a_b$"} <= set(words(svg))
    assert r"$\broken{" in words(svg)


def test_ids_differ_by_key_and_output_is_reproducible(survey):
    series = survey[1][1].readings[0].series
    one, two = series_figure(series, key="a"), series_figure(series, key="b")
    assert one == series_figure(series, key="a")
    assert not set(re.findall(r' id="([^"]+)"', one)) & set(re.findall(r' id="([^"]+)"', two))


def test_settings_of_the_caller_are_untouched(verdicts):
    import matplotlib

    before = dict(matplotlib.rcParams)
    matplotlib.rcParams["axes.facecolor"] = "black"
    try:
        svg = verdict_figure(verdicts["gain"])
        assert matplotlib.rcParams["axes.facecolor"] == "black"
    finally:
        matplotlib.rcParams["axes.facecolor"] = before["axes.facecolor"]
    assert svg == verdict_figure(verdicts["gain"])
    assert dict(matplotlib.rcParams) == before


def test_every_verdict_has_its_figure(verdicts):
    for verdict in verdicts.values():
        check(verdict_figure(verdict))


def test_groups_have_their_own_colors_and_names(verdicts):
    svg = verdict_figure(verdicts["powers"])
    assert {"base=0.5", "base=1.0", "base=2.0"} <= set(words(svg))
    assert all(f"--th-group{place}" in svg for place in range(3))
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
    assert "stroke-dasharray" in svg
    assert "--th-wrong" in svg


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


@pytest.mark.parametrize(
    "tex",
    [
        r"\lambda_{\max}\to(1+\sqrt{p/n})^2",
        r"K^*=\tfrac{3+\sqrt{17}}{2}",
        r"\lVert x\rVert_2\le 1",
        r"\mathbb{E}[z^2]",
        r"\operatorname{tr} H = \sum_i \lambda_i",
        r"$a \ne b$",
    ],
)
def test_formula_is_drawn(tex):
    svg = formula(tex)
    root = ElementTree.fromstring(svg)
    assert root.tag == f"{SVG}svg"
    assert root.attrib["aria-label"] == tex.strip("$")
    assert "em;" in root.attrib["style"]
    assert "vertical-align" in root.attrib["style"]


@pytest.mark.parametrize(
    "tex", [r"\begin{cases}a\\b\end{cases}", "<script>", "a$b", "", "层", r"\unknown{x}", r"\frac{a"]
)
def test_formula_falls_back_to_its_source(tex):
    assert formula(tex).startswith(("<code", "<svg"))
    assert "<script" not in formula(tex)


def test_prose_sets_mathematics_and_escapes_the_rest():
    html = prose("as $n^{-1}$ & <b>")
    assert html.startswith("as <svg")
    assert html.endswith(" &amp; &lt;b&gt;")
    assert prose("costs $5") == "costs $5"


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
    few, many = plots_of(many_spectra(5), "g"), plots_of(many_spectra(30), "g")
    small = [plot for plot in many if 'viewBox="0 0 320 150"' in plot.svg]
    assert not any('viewBox="0 0 320 150"' in plot.svg for plot in few)
    assert len(many) == 30
    assert len(small) == 27
    assert 'viewBox="0 0 320 150"' not in many[-1].svg, "the one outside its band is drawn in full"


def test_of_hundreds_of_figures_those_to_be_seen_first_are_drawn_and_the_others_counted():
    plots = plots_of(many_spectra(130), "g")
    assert len([plot for plot in plots if plot.svg]) == 100
    assert any('viewBox="0 0 320 150"' not in plot.svg and plot.svg for plot in plots), "the one outside its band"
    assert plots[-1].caption.startswith("30 more")


def test_a_small_figure_is_well_formed_and_shows_every_point():
    series = many_spectra(1)[0].series
    drawn = ElementTree.fromstring(small_figure(series))
    kinds = [element.tag.rpartition("}")[2] for element in drawn.iter()]
    (dots,) = (element for element in drawn.iter() if element.get("class") == "th-few-dots")
    assert dots.attrib["d"].count("h0") == 12
    assert kinds.count("polyline") == 1  # both ends of the band are one line
    assert "&lt;eigenvalue&gt;" in small_figure(series)
