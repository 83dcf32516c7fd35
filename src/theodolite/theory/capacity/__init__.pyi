from .corrective_networks import (
    Contraction as Contraction,
    corrective_contraction as corrective_contraction,
    cosine_density as cosine_density,
    dual_kernel as dual_kernel,
    dual_scale as dual_scale,
    memorization_bounds as memorization_bounds,
    polynomial_units as polynomial_units,
    separation as separation,
    smoothed_cosine_density as smoothed_cosine_density,
)
from .entropy import (
    contraction_bound as contraction_bound,
    cube_entropy_number as cube_entropy_number,
    ellipsoid_stable_width as ellipsoid_stable_width,
    embedding_dimension as embedding_dimension,
    lipschitz_entropy_number as lipschitz_entropy_number,
    separated_points_bounds as separated_points_bounds,
)
from .memory_bounds import (
    MemoryBounds as MemoryBounds,
    certain_capacity as certain_capacity,
    classifier_capacity as classifier_capacity,
    construction_capacity as construction_capacity,
    impossible_from as impossible_from,
    memory as memory,
    most_pieces as most_pieces,
    theorem_capacity as theorem_capacity,
    theorem_widths as theorem_widths,
)
from .ridge_integrals import (
    RadialFunction as RadialFunction,
    gaussian as gaussian,
    one_group_error as one_group_error,
    ridge_directions as ridge_directions,
)
from .smoothing import (
    smoothed_relu as smoothed_relu,
    smoothed_relu_slope as smoothed_relu_slope,
    smoothing_density as smoothing_density,
    smoothing_transform as smoothing_transform,
)
