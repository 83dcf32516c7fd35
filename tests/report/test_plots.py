"""Figures of many readings: the most telling ones are drawn, the rest is counted."""

from theodolite.core.reading import Band, Reading, Series
from theodolite.report.plots import MOST_FIGURES, plots_of


def readings(count, outside=()):
    return [
        Reading(
            quantity="alpha",
            where=f"layer {place}",
            measured=9.0 if place in outside else 1.0,
            expected=Band(0.0, 2.0),
            series=Series(x=(1.0, 2.0), measured=(float(place), 1.0), x_label="x", y_label="y"),
        )
        for place in range(count)
    ]


def test_few_are_all_drawn():
    assert [plot.caption for plot in plots_of(readings(3), "a")] == ["layer 0", "layer 1", "layer 2"]


def test_of_many_those_that_left_their_band_are_drawn_and_the_rest_is_counted():
    *drawn, last = plots_of(readings(60, outside=(7, 31, 58)), "a")
    assert len(drawn) == MOST_FIGURES
    assert {"layer 7", "layer 31", "layer 58"} <= {plot.caption for plot in drawn}
    assert last.caption == "36 more, not drawn"
    assert "<svg" not in last.svg and "json()" in last.svg
