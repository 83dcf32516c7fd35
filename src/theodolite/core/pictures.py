"""What a reading may show beside its number when a curve is not enough."""

from __future__ import annotations

from dataclasses import dataclass

from theodolite.core.reading import Series

Corners = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Cells(Series):
    """Polygons of a plane, each with its group (such as the class answered there), and points marked among them."""

    polygons: tuple[Corners, ...] = ()
    groups: tuple[int, ...] = ()
    points: Corners = ()
