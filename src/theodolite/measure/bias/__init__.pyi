from .last_layer import Readout as Readout, readout as readout
from .rotations import (
    RotationGap as RotationGap,
    random_rotation as random_rotation,
    rotated_rows as rotated_rows,
    rotation_gap as rotation_gap,
)
