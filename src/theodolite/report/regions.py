"""A picture of the linear regions in a polygon of a slice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from theodolite.core.reading import CellPicture
from theodolite.report.svg import INK, drawing, inline_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from theodolite.measure.regions import PlaneRegions

MOST = 60_000  # cells whose edges are drawn


def draw_regions(
    axes: Axes, found: PlaneRegions, *, groups: Sequence[int] | None = None, points: Any = None, title: str = ""
) -> None:
    """Every cell as a polygon: its color is that of its ``group`` (such as the predicted class), in a shade of its own.

    ``points`` (P, 2) are marked, in the coordinates of the slice.
    """
    import numpy as np
    from matplotlib.collections import PolyCollection

    edge = 0.15 if found.regions <= MOST else 0.0
    polygons = [found.polygon(k) for k in range(found.regions)]
    colors = _colors(groups if groups is not None else [0] * found.regions)
    axes.add_collection(PolyCollection(polygons, facecolors=colors, edgecolors="white", linewidths=edge))
    if points is not None:
        marks = np.asarray(points)
        axes.plot(marks[:, 0], marks[:, 1], "o", color="black", markerfacecolor="white", markersize=6)
    axes.autoscale_view()
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_title(title or f"{found.regions:,} regions", fontsize=10)


def _colors(groups: Sequence[int]) -> Any:
    """A color for each group and a shade for each cell: the golden ratio keeps neighbors apart."""
    import matplotlib
    import numpy as np

    shade = ((0.6180339887 * np.arange(len(groups))) % 1)[:, None]
    palette = matplotlib.colormaps["tab10"]
    base = np.array([palette(int(group) % 10)[:3] for group in groups]).reshape(-1, 3)
    return np.clip(base * (0.55 + 0.3 * shade) + 0.45 - 0.3 * shade, 0, 1)


def cells_figure(cells: CellPicture, *, key: str = "") -> str:
    """The picture as an inline SVG; the cells themselves as pixels, for there may be thousands."""
    from matplotlib.collections import PolyCollection

    with drawing(width=380, height=330) as (figure, axes):
        figure.set_dpi(160)
        polygons = [list(corners) for corners in cells.polygons]
        axes.add_collection(
            PolyCollection(
                polygons, facecolors=_colors(cells.groups), edgecolors="white", linewidths=0.15, rasterized=True
            )
        )
        axes.plot(*zip(*cells.points, strict=True), "o", color=INK, markerfacecolor="white", markersize=6)
        axes.autoscale_view()
        axes.set_aspect("equal")
        axes.set_axis_off()
        return inline_svg(figure, f"{len(polygons)} cells of a plane through {len(cells.points)} inputs", key=key)


def region_figure(
    found: PlaneRegions, path: str | Path, *, groups: Sequence[int] | None = None, points: Any = None
) -> Path:
    """The picture of one slice, written to a file whose ending says how (png, svg, pdf)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 5), layout="constrained")
    draw_regions(figure.add_subplot(), found, groups=groups, points=points)
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=200)
    return target
