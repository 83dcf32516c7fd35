"""A picture of the linear regions in a polygon of a slice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from theodolite.measure.regions import PlaneRegions

MOST = 60_000  # cells whose edges are drawn


def draw_regions(
    axes: Axes, found: PlaneRegions, *, groups: Sequence[int] | None = None, points: Any = None, title: str = ""
) -> None:
    """Every cell as a polygon: its colour is that of its ``group`` (such as the predicted class), in a shade of its own.

    ``points`` (P, 2) are marked, in the coordinates of the slice.
    """
    import matplotlib
    import numpy as np
    from matplotlib.collections import PolyCollection

    shade = (0.6180339887 * np.arange(found.regions)) % 1  # the golden ratio keeps neighbours apart
    palette = matplotlib.colormaps["tab10"]
    base = np.array([palette(int(g) % 10)[:3] for g in (groups if groups is not None else [0] * found.regions)])
    colours = base * (0.55 + 0.3 * shade[:, None]) + 0.45 - 0.3 * shade[:, None]
    edge = 0.15 if found.regions <= MOST else 0.0
    polygons = [found.polygon(k) for k in range(found.regions)]
    axes.add_collection(
        PolyCollection(polygons, facecolors=np.clip(colours, 0, 1), edgecolors="white", linewidths=edge)
    )
    if points is not None:
        marks = np.asarray(points)
        axes.plot(marks[:, 0], marks[:, 1], "o", color="black", markerfacecolor="white", markersize=6)
    axes.autoscale_view()
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_title(title or f"{found.regions:,} regions", fontsize=10)


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
