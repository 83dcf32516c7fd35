from .hadamard import (
    hadamard_matrix as hadamard_matrix,
    hadamard_transform as hadamard_transform,
    hadamard_transform_ as hadamard_transform_,
    next_power_of_two as next_power_of_two,
)
