"""Linear regions of piecewise linear networks, counted exactly: on lines, in polygons of a slice, around one input."""

from theodolite.measure.cells import Cell, cell_at, facets, largest_ball, origin_sides
from theodolite.measure.polygons import Polygons
from theodolite.measure.regions_line import LineRegions, network_line_counts, regions_on_line, regions_on_lines
from theodolite.measure.regions_plane import PlaneRegions, Slice, regions_in_polygon, slice_through

__all__ = [
    "Cell", "LineRegions", "PlaneRegions", "Polygons", "Slice", "cell_at", "facets", "largest_ball",
    "network_line_counts", "origin_sides", "regions_in_polygon", "regions_on_line", "regions_on_lines", "slice_through",
]  # fmt: skip
