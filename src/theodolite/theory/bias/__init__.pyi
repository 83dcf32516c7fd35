from .diagonal_nets import (
    least_divergence as least_divergence,
    least_l1_norm as least_l1_norm,
    least_potential as least_potential,
    least_weighted_norm as least_weighted_norm,
    potential as potential,
    sinh_solution as sinh_solution,
)
from .margins import (
    Margin as Margin,
    power_tail_direction as power_tail_direction,
    residual_weight as residual_weight,
    widest_class_margin as widest_class_margin,
    widest_margin as widest_margin,
)
from .rotation_bounds import (
    gaussian_lower_bound as gaussian_lower_bound,
    hadamard_lower_bound as hadamard_lower_bound,
    largest_norm as largest_norm,
    multiplicative_loss as multiplicative_loss,
    multiplicative_safe_lr as multiplicative_safe_lr,
    random_sign_least_squares_loss as random_sign_least_squares_loss,
    unflipped_lower_bound as unflipped_lower_bound,
    unseen_share as unseen_share,
)
