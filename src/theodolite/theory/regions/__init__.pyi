from .counts import (
    curve_zeros as curve_zeros,
    frozen_gate_breakpoints as frozen_gate_breakpoints,
    hyperplane_cells as hyperplane_cells,
    interval_bound as interval_bound,
    interval_breakpoints as interval_breakpoints,
    line_pieces as line_pieces,
    line_regions as line_regions,
    origin_cell_sides as origin_cell_sides,
    region_bound as region_bound,
    sawtooth_pieces as sawtooth_pieces,
    segment_breakpoints as segment_breakpoints,
    swept_angle as swept_angle,
)
