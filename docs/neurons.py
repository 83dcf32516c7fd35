"""Draws docs/neurons.svg: how many units theorems ask for to memorize n points, against n, beside what it takes.

Run by `make docs`, or alone: `python docs/neurons.py`. tests/test_docs.py fails when the picture is not what this file draws.
"""

from __future__ import annotations

from pathlib import Path

from theodolite.report.drawing.charts import Figure, Mark, Points, Polyline
from theodolite.report.drawing.scales import Scale, scale_of
from theodolite.report.drawing.shapes import group_color
from theodolite.report.rendering import picture_file
from theodolite.theory.capacity import memorization_bounds, theorem_widths

PICTURE = Path(__file__).parent / "neurons.svg"
POINTS = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
INPUTS, THETA = 10, 0.5
MOST = 1e16  # units; beyond, a line leaves the figure
TITLE = f"Units that memorize n points of {INPUTS} inputs, {THETA} apart; constants and logarithms left out"


def curves() -> dict[str, list[float]]:
    """The name of each bound, and its units at each number of points."""
    found: dict[str, list[float]] = {}
    for n in POINTS:
        for name, units in memorization_bounds(n, INPUTS, THETA).items():
            found.setdefault(name, []).append(units)
        built = "Yun, Sra, Jadbabaie 2019, two hidden layers: 4 sqrt n"
        found.setdefault(built, []).append(float(sum(theorem_widths(n))))
    return found


def picture() -> str:
    """The figure: both axes logarithmic, a line for each bound, and a broken one for what was measured."""
    marks: list[Mark] = []
    keys: list[Mark] = []
    for group, (name, units) in enumerate(sorted(curves().items(), key=lambda pair: -pair[1][-1])):
        inside = [(float(n), u) for n, u in zip(POINTS, units, strict=True) if 1 <= u <= MOST]
        x, y = [n for n, _ in inside], [u for _, u in inside]
        marks += [Polyline(x, y, group_color(group)), Points(x, y, group=group)]
        beyond = "" if len(inside) > 1 else " (beyond the figure)"
        keys.append(Polyline(color=group_color(group), mark=group, label=name + beyond))
    seen = Polyline(POINTS, POINTS, "ink", "dashed", "seen: least squares on random units, N = n")
    scales = scale_of(POINTS, log=True), Scale(1.0, MOST, log=True)
    labels = f"points n of {INPUTS} inputs, {THETA} apart", "units, constants and logarithms left out"
    return picture_file(Figure(*scales, [*marks, seen], [*keys, seen], *labels, spoken=TITLE).svg()) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
    print(f"The picture: {PICTURE}")
