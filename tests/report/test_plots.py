"""Figures of many readings: those that left their band are drawn in full, the others small."""

from theodolite.report.plots import FEW_FIGURES, plots_of

from theodolite.core.reading import Band, Reading, Series


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


def test_of_many_those_that_left_their_band_are_drawn_in_full_and_the_others_small():
    outside = (7, 31, 58)
    plots = plots_of(readings(60, outside=outside), "a")
    assert [plot.caption for plot in plots] == [f"layer {place}" for place in range(60)]
    full = {place for place, plot in enumerate(plots) if len(plot.svg) > 4 * min(len(p.svg) for p in plots)}
    assert full == set(outside)
    assert len(plots) > FEW_FIGURES
