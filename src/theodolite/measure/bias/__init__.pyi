from .last_layer import Readout as Readout, linear_map as linear_map, readout as readout
from .rotations import (
    RotationGap as RotationGap,
    random_rotation as random_rotation,
    rotated_rows as rotated_rows,
    rotation_gap as rotation_gap,
)
