"""Pictures of a plane without axes, one unit as long as the other: points by their class, and polygons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from theodolite.core.checks import InputError
from theodolite.io.files import write_atomically
from theodolite.report.drawing.charts import Canvas
from theodolite.report.drawing.scales import Scale
from theodolite.report.drawing.shapes import GROUPS, LETTER, Point, flowing, group_color, markers, path, picture, text
from theodolite.report.rendering import picture_file

if TYPE_CHECKING:
    from theodolite.measure.regions import PlaneRegions

WIDTH, HEIGHT, ENLARGED = 430.0, 330.0, 1.32
MOST_CLASSES, SHADES, FINE = 12, 5, 4
"""Classes that get a color and a mark; shades of a color; and how many places there are to a unit of the picture."""

GOLDEN = 0.6180339887


def scatter_figure(places: Sequence[Point], labels: Sequence[str] = (), *, spoken: str) -> str:
    """The points as an inline SVG; up to a dozen classes get a color and a mark each."""
    names = sorted(set(labels), key=lambda name: (len(name), name))
    told = names if len(labels) == len(places) and 1 < len(names) <= MOST_CLASSES else []
    keys = flowing([30 + LETTER * len(name) for name in told], 6.0, WIDTH)
    top = 10.0 + 16 * (keys[-1][1] + 1 if keys else 0)
    canvas = _even_canvas(places, top)
    parts = [markers(canvas.places([x for x, _ in places], [y for _, y in places]))] if not told else []
    for group, (name, (x, line)) in enumerate(zip(told, keys, strict=True)):
        own = [place for place, label in zip(places, labels, strict=True) if label == name]
        parts += [markers(canvas.places([a for a, _ in own], [b for _, b in own]), group)]
        parts += [markers([(x + 6, 10.0 + 16 * line)], group), text(x + 14, 14.0 + 16 * line, name)]
    return picture(parts, (WIDTH, HEIGHT), spoken, "th-figure th-scatter", enlarged=ENLARGED)


def cells_figure(
    polygons: Sequence[Sequence[Point]], groups: Sequence[int], points: Sequence[Point] = (), *, spoken: str = ""
) -> str:
    """Polygons as an inline SVG: the color is that of the group, and shades keep neighbors apart; points are marked.

    There may be thousands: all of one color and shade are one path, each corner told from the one before.
    """
    canvas = _even_canvas([corner for polygon in polygons for corner in polygon], 6.0)
    paths: dict[tuple[int, int], list[str]] = {}
    for place, (polygon, group) in enumerate(zip(polygons, groups, strict=True)):
        corners = [(round(FINE * canvas.across(x)), round(FINE * canvas.down(y))) for x, y in polygon]
        shade = int(SHADES * (GOLDEN * place % 1))
        paths.setdefault((group % GROUPS, shade), []).append(_outline(corners))
    cells = (path("".join(own), f"cell shade{shade}", group_color(group)) for (group, shade), own in paths.items())
    rings = path("".join(f"M{canvas.across(x):.1f},{canvas.down(y):.1f}h0" for x, y in points), "dot ring")
    dots = path("".join(f"M{canvas.across(x):.1f},{canvas.down(y):.1f}h0" for x, y in points), "dot inner")
    scaled = f'<g transform="scale({1 / FINE})">{"".join(cells)}</g>'
    said = spoken or f"{len(polygons)} cells of a plane through {len(points)} inputs"
    return picture([scaled, rings, dots], (WIDTH, HEIGHT), said, enlarged=ENLARGED)


def region_figure(
    found: PlaneRegions,
    path: str | Path,
    *,
    groups: Sequence[int] | None = None,
    points: Iterable[Sequence[float]] = (),
) -> Path:
    """The linear regions of a slice, written to an SVG file: the color of a cell is that of its ``group``, such as a class.

    ``points`` (P, 2) are marked, in the coordinates of the slice.
    """
    target = Path(path)
    if target.suffix != ".svg":
        raise InputError(
            f"expected a path that ends in .svg, got {str(path)!r}; a browser shows and prints such a file"
        )
    polygons = [[(float(u), float(v)) for u, v in found.polygon(k)] for k in range(found.regions)]
    marked = [(float(u), float(v)) for u, v in points]
    svg = cells_figure(polygons, [0] * found.regions if groups is None else groups, marked)
    return write_atomically(target, picture_file(svg))


def _outline(corners: Sequence[tuple[int, int]]) -> str:
    """A closed polygon in whole numbers, as short as it can be said; corners that fall together are one.

    >>> _outline([(1, 1), (5, 1), (5, 1), (3, 0)])
    'M1 1l4 0-2-1z'
    """
    steps, here = "", corners[0]
    for x, y in corners[1:]:
        if (x, y) != here:
            steps += f" {x - here[0]} {y - here[1]}"
        here = (x, y)
    return f"M{corners[0][0]} {corners[0][1]}l{steps[1:].replace(' -', '-')}z" if steps else ""


def _even_canvas(places: Sequence[Point], top: float) -> Canvas:
    """Axes that hold all places, with units of one length, in the middle of the picture."""
    room = WIDTH - 12, HEIGHT - 6 - top
    ends = [(min(values), max(values)) if (values := [p[axis] for p in places]) else (0.0, 1.0) for axis in (0, 1)]
    unit = max((high - low) / side for (low, high), side in zip(ends, room, strict=True)) or 1.0
    scales = [
        Scale((low + high) / 2 - unit * side / 2, (low + high) / 2 + unit * side / 2)
        for (low, high), side in zip(ends, room, strict=True)
    ]
    return Canvas(scales[0], scales[1], 6.0, WIDTH - 6.0, top, HEIGHT - 6.0)
