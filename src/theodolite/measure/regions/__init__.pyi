from .around_input import (
    Cell as Cell,
    cell_at as cell_at,
    facets as facets,
    largest_ball as largest_ball,
    origin_sides as origin_sides,
)
from .in_planes import (
    PlaneCells as PlaneCells,
    PlaneRegions as PlaneRegions,
    Slice as Slice,
    region_parts_in_polygon as region_parts_in_polygon,
    regions_in_polygon as regions_in_polygon,
    slice_through as slice_through,
)
from .on_lines import (
    Intervals as Intervals,
    LineRegions as LineRegions,
    network_line_counts as network_line_counts,
    regions_on_line as regions_on_line,
    regions_on_lines as regions_on_lines,
)
from ._polygons import Polygons as Polygons
